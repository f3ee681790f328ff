package forge

import (
	"errors"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Error is an error of a forge. Its chain has a [*task.Error] with the code; read
// the rest by [RetryAfter], [OutcomeUnknown] and [MovedTo], which work on any
// error.
type Error struct {
	Err            *task.Error
	Status         int           // of the HTTP answer; 0 if there was none
	RetryAfter     time.Duration // how long the forge asked us to wait, 0 if it did not
	OutcomeUnknown bool          // a write that may have happened
	MovedTo        task.Key      // where the item is now, if the forge said so
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the coded error.
func (e *Error) Unwrap() error { return e.Err }

// RetryAfter returns how long the forge asked us to wait before the next try. It
// is 0 if it did not say.
func RetryAfter(err error) time.Duration {
	if failure, ok := errors.AsType[*Error](err); ok {
		return failure.RetryAfter
	}
	return 0
}

// OutcomeUnknown reports whether the error is of a write that may have happened
// all the same, because the answer to it was lost or unreadable.
func OutcomeUnknown(err error) bool {
	failure, ok := errors.AsType[*Error](err)
	return ok && failure.OutcomeUnknown
}

// MovedTo returns the key under which an item is found now, if it was moved and
// the forge said where.
func MovedTo(err error) (task.Key, bool) {
	if failure, ok := errors.AsType[*Error](err); ok && failure.MovedTo != (task.Key{}) {
		return failure.MovedTo, true
	}
	return task.Key{}, false
}

// Temporary reports whether the same call may succeed later: the forge was not to
// be had, or asked us to slow down.
func Temporary(err error) bool { return task.CodeOf(err) == task.Unavailable }
