package workspace

import (
	"errors"
	"slices"
	"syscall"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// gitMessages are what git writes when it fails in a workspace. The first that is
// found counts.
var gitMessages = slices.Concat(git.Messages, []git.Message{
	{Text: "not our ref", Code: task.NotFound},
	{Text: "refusing to fetch into", Code: task.Conflict},
	{Text: "non-fast-forward", Code: task.Conflict},
	{Text: "fsckObjects", Code: task.Invalid},
})

// diskMessages are what git writes when the disk of this machine is full or can only be read.
var diskMessages = []git.Message{
	{Text: "No space left on device", Code: task.DataDir},
	{Text: "Disk quota exceeded", Code: task.DataDir},
	{Text: "Read-only file system", Code: task.DataDir},
	{Text: "Out of diskspace", Code: task.DataDir}, // of fast-import, and what writes packs
	// These do not say why.
	{Text: "unable to write file", Code: task.DataDir},
	{Text: "unable to write new index file", Code: task.DataDir},
	{Text: "unable to write new_index file", Code: task.DataDir},
	{Text: "failed to write new configuration file", Code: task.DataDir},
}

// notWritten reports whether the disk of this machine is full or can only be read.
func notWritten(err error) bool {
	for _, reason := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if errors.Is(err, reason) {
			return true
		}
	}
	failed, is := errors.AsType[*git.RunError](err)
	if !is || failed.Ended || failed.Local().Code(diskMessages) != task.DataDir {
		return false
	}
	_, given := failed.ServerCode()
	return !given
}

// ofMachine gives an error the code DataDir if the disk could not be written: another machine, or
// this one later, can do the task.
func ofMachine(err error) error {
	if !notWritten(err) {
		return err
	}
	return task.Wrap(task.DataDir, err, "the workspace cannot be written").WithHint("make room on the disk of the agent")
}

// failure wraps an error of what is done in the workspace. If it is not the disk's, it is a fault
// of ours.
func failure(err error, message string) error {
	return ofMachine(task.Wrap(task.Internal, err, message))
}

// coded gives an error of git that talked to the server a code: the server's if it
// gave one, else the code of what git wrote. A push that a server refused without a
// code is Unavailable: if the run is over, the next request is answered with 403.
func coded(err error, message string) error {
	failed, is := errors.AsType[*git.RunError](err)
	if err == nil || !is {
		return err
	}
	if failed.Ended {
		return task.Wrap(task.Interrupted, err, message)
	}
	code, given := failed.ServerCode()
	if !given {
		code = failed.Code(gitMessages)
	}
	if !given && code == task.Unavailable {
		code = failed.Local().Code(diskMessages)
	}
	if code == task.Unauthorized || code == task.Forbidden {
		code = task.LeaseLost // the server refuses a token only when the run is over
	}
	return task.Wrap(code, err, message)
}
