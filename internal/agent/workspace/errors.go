package workspace

import (
	"errors"
	"slices"

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
	{Text: "unable to write file", Code: task.DataDir}, // checkout-index does not say why
}

// notWritten gives an error of git the code DataDir if git could not write to the disk.
func notWritten(err error) error {
	failed, is := errors.AsType[*git.RunError](err)
	if !is || failed.Ended || failed.Local().Code(diskMessages) != task.DataDir {
		return err
	}
	if _, given := failed.ServerCode(); given {
		return err
	}
	return task.Wrap(task.DataDir, err, "the workspace cannot be written").WithHint("make room on the disk of the agent")
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
