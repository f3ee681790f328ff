package sandbox

import (
	"errors"
	"slices"
	"strings"
	"syscall"

	"github.com/toryo-dev/toryo/internal/task"
)

// ErrOutOfMemory is in the chain of the error of a sandbox that the kernel ended with
// its programs.
var ErrOutOfMemory = errors.New("the programs in the sandbox took more memory than they may, and the kernel ended it with them")

// OutOfMemory gives the error of a sandbox that is gone the reason [ErrOutOfMemory].
func OutOfMemory(err error) error {
	return task.Wrap(task.Unavailable, reasonError{err, ErrOutOfMemory}, ErrOutOfMemory.Error())
}

// ErrExhausted is in the chain of the error of an engine or a sandbox for which there is no
// memory, disk space, process or quota left. Errors of the operating system that say so need
// not have it: see [IsExhausted].
var ErrExhausted = errors.New("there is no memory, disk space, process or quota left for the sandbox")

// Exhausted adds the reason [ErrExhausted] to an error, whose text and code stay.
func Exhausted(err error) error { return reasonError{err, ErrExhausted} }

// exhaustedTexts are errors of the operating system as other programs print them, in lower
// case.
var exhaustedTexts = []string{"no space left on device", "disk quota exceeded", "cannot allocate memory", "out of memory",
	"oom-kill", "oomkilled", "oom killed", "resource temporarily unavailable", "too many open files", "failed to create new os thread"}

// WithTextReason adds the reason [ErrExhausted] to an error if a text says so. Only texts of
// programs and services that pass the errors of their operating system on as text are read
// for it: bwrap, the Docker Engine, a cluster, a guest. Errors of this program have the
// reason in their chain.
func WithTextReason(err error, text string) error {
	text = strings.ToLower(text)
	if slices.ContainsFunc(exhaustedTexts, func(part string) bool { return strings.Contains(text, part) }) {
		return Exhausted(err)
	}
	return err
}

// IsExhausted reports whether a sandbox failed for lack of memory, disk space, processes or
// quota, be it its own or that of the machine that it is on.
func IsExhausted(err error) bool {
	for _, reason := range []error{ErrOutOfMemory, ErrExhausted, syscall.ENOSPC, syscall.EDQUOT, syscall.ENOMEM,
		syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// reasonError has a reason in its chain besides the error that it wraps. Its text is that of
// the error.
type reasonError struct {
	error

	reason error
}

func (e reasonError) Is(target error) bool { return target == e.reason }

func (e reasonError) Unwrap() error { return e.error }

// UnusableError says that no sandbox can be had on this machine, whatever is to run in it: the
// engine is missing or does not answer, the image cannot be had, or there is no room or memory
// left for it.
type UnusableError struct {
	Err error
}

func (e *UnusableError) Error() string { return e.Err.Error() }

// Unwrap gives the error of the engine.
func (e *UnusableError) Unwrap() error { return e.Err }

// StartError makes an [*UnusableError] of an error of [Engine.Start] that is about the machine,
// and returns others as they are.
func StartError(err error) error {
	if task.CodeOf(err) != task.NotReady && !IsExhausted(err) {
		return err
	}
	return &UnusableError{Err: err}
}
