package store

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// CommentChange says what an entry of a comment log is about.
type CommentChange = task.CommentChange

// The changes.
const (
	CommentPresent CommentChange = "present" // it was there when the task was handed out
	CommentNew                   = task.CommentNew
	CommentEdited                = task.CommentEdited
	CommentDeleted               = task.CommentDeleted
)

// CommentEntry is one entry of a task's comment log.
type CommentEntry struct {
	Position int64 // 1, 2, 3… within the task, given by the store
	Change   CommentChange
	Comment  task.Comment // of a deleted one, as it was last
	Access   string       // what its author may do in the repository; empty if it is not known
	Refused  task.Reason  // why a run is not told of it; empty if it is
	Before   string       // the beginning of what an edited one said before; empty if a run was not told of that
	At       time.Time
}

// CommentLog keeps what people said about a task's item: each version of each
// comment once, whichever server looks.
type CommentLog interface {
	// KnownComments returns the last entry of each comment, by position, and the
	// position of the last entry of all, 0 if there is none.
	KnownComments(ctx context.Context, id task.ID) (known []CommentEntry, last int64, err error)
	// AppendComments appends entries behind the given position. It fails with
	// Conflict if there are entries behind it already: then someone else has looked
	// in the meantime.
	AppendComments(ctx context.Context, id task.ID, after int64, entries []CommentEntry) error
	// CommentsAfter returns entries whose position is greater than the given one,
	// in order.
	CommentsAfter(ctx context.Context, id task.ID, position int64, limit int) ([]CommentEntry, error)
	// StartComments notes the position up to which the task was told with its
	// assignment; NotFound if there is no such task.
	StartComments(ctx context.Context, id task.ID, start int64) error
	// CommentsStart returns that position, 0 if none was noted.
	CommentsStart(ctx context.Context, id task.ID) (int64, error)
}
