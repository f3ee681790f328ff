package store

import (
	"context"

	"github.com/toryo-dev/toryo/internal/task"
)

// CommentLog keeps what people said about a task's item: each version of each
// comment once, whichever server looks. The positions are 1, 2, 3… within the task and
// given by the store.
type CommentLog interface {
	// KnownComments returns the last entry of each comment, by position, and the
	// position of the last entry of all, 0 if there is none.
	KnownComments(ctx context.Context, id task.ID) (known []task.CommentEntry, last int64, err error)
	// AppendComments appends entries behind the given position. It fails with
	// Conflict if there are entries behind it already: then someone else has looked
	// in the meantime. If a generation is named, not 0, what is appended is for the run in it,
	// and StaleGeneration says that the task is in another one.
	AppendComments(ctx context.Context, id task.ID, generation, after int64, entries []task.CommentEntry) error
	// CommentsAfter returns entries whose position is greater than the given one,
	// in order.
	CommentsAfter(ctx context.Context, id task.ID, position int64, limit int) ([]task.CommentEntry, error)
	// LastComment returns the position of the last entry, 0 if there is none.
	LastComment(ctx context.Context, id task.ID) (int64, error)
	// StartComments notes the position up to which the task was told with its
	// assignment, in a generation; NotFound if there is no such task, StaleGeneration if
	// it is in another one.
	StartComments(ctx context.Context, id task.ID, generation, start int64) error
	// CommentsStart returns that position, 0 if none was noted.
	CommentsStart(ctx context.Context, id task.ID) (int64, error)
}
