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

// ofMachine gives an error the code DataDir if the disk could not be written: another machine, or
// this one later, can do the task.
func ofMachine(err error) error {
	if !git.NotWritten(err) {
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
		code = failed.Local().Code(git.DiskMessages)
	}
	if code == task.Unauthorized || code == task.Forbidden {
		code = task.LeaseLost // the server refuses a token only when the run is over
	}
	return task.Wrap(code, err, message)
}
