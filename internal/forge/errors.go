package forge

import (
	"errors"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Error is an error of a forge. Its chain has a [*task.Error] with the code.
// [RetryAfter] reads the wait from any error.
type Error struct {
	Err        *task.Error
	Status     int           // of the HTTP answer; 0 if there was none
	RetryAfter time.Duration // how long the forge asked us to wait, 0 if it did not
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

// Temporary reports whether the same call may succeed later: the forge could not be
// reached, or asked us to slow down.
func Temporary(err error) bool { return task.CodeOf(err) == task.Unavailable }
