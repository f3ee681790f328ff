package eval

import (
	"errors"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

// What the machine does wrong says nothing about the work: a disk that is full must not make an
// attempt one that has failed.
func TestWhoseErrors(t *testing.T) {
	t.Parallel()
	for err, work := range map[error]bool{
		task.Errorf(task.Invalid, "the patch cannot be applied"):                               true,
		task.Errorf(task.TooLarge, "it is too large"):                                          true,
		task.Wrap(task.DataDir, errors.New("no space left"), "the patch cannot be written"):    false,
		task.Errorf(task.Unavailable, "the sandbox is gone"):                                   false,
		errors.New("git: unable to create temporary file: No space left on device"):            false,
		errors.Join(errors.New("cleaning up"), task.Errorf(task.DataDir, "no folder is left")): false,
	} {
		if isOfWork(err) != work {
			t.Errorf("%v: of the work is %t", err, !work)
		}
	}
	if isOfWork(nil) {
		t.Error("no error is one of the work")
	}
}
