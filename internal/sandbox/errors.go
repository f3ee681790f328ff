package sandbox

import (
	"errors"

	"github.com/toryo-dev/toryo/internal/task"
)

// ErrOutOfMemory is in the chain of the error of a sandbox that the kernel ended with
// its programs.
var ErrOutOfMemory = errors.New("the programs in the sandbox took more memory than they may, and the kernel ended it with them")

// OutOfMemory gives the error of a sandbox that is gone the reason [ErrOutOfMemory].
func OutOfMemory(err error) error {
	return task.Wrap(task.Unavailable, outOfMemoryError{err}, ErrOutOfMemory.Error())
}

// outOfMemoryError is [ErrOutOfMemory] besides what it wraps. Its text is that of what it
// wraps, because the reason is said before that.
type outOfMemoryError struct{ error }

func (e outOfMemoryError) Is(target error) bool { return target == ErrOutOfMemory }

func (e outOfMemoryError) Unwrap() error { return e.error }
