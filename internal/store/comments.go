package store

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// CommentChange says what an entry of a comment log is about.
type CommentChange string

// The changes.
const (
	CommentPresent CommentChange = "present" // it was there when the task was handed out
	CommentNew     CommentChange = "new"
	CommentEdited  CommentChange = "edited"
	CommentDeleted CommentChange = "deleted"
)

// CommentEntry is one entry of a task's comment log.
type CommentEntry struct {
	Position int64 // 1, 2, 3… within the task, given by the store
	Change   CommentChange
	Comment  task.Comment // of a deleted one, as it was last
	Access   string       // what its author may do in the repository; empty if it is not known
	Refused  task.Reason  // why a run is not told of it; empty if it is
	At       time.Time
}

// CommentMark is what the log of a task says besides its entries.
type CommentMark struct {
	// Start is the position up to which the run has been told with its assignment.
	Start int64
	// Assigned says that the bot was seen among the assignees since then.
	Assigned bool
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
	// CommentMark returns the task's mark, the zero value if there is none.
	CommentMark(ctx context.Context, id task.ID) (CommentMark, error)
	// StartComments makes a new mark with the given start; NotFound if there is no
	// such task.
	StartComments(ctx context.Context, id task.ID, start int64) error
	// NoteAssigned sets Assigned in the task's mark; NotFound as before.
	NoteAssigned(ctx context.Context, id task.ID) error
}
