package mirror

import (
	"errors"
	"slices"

	"github.com/toryo-dev/toryo/internal/forge"
	program "github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/task"
)

// messages are what git writes when a forge refuses something. The first that is
// found counts.
var messages = slices.Concat([]program.Message{
	{Text: "protected branch", Code: task.Forbidden},
	{Text: "hook declined", Code: task.Forbidden},
	{Text: "stale info", Code: task.Conflict},
	{Text: "non-fast-forward", Code: task.Conflict},
	{Text: "fetch first", Code: task.Conflict},
	{Text: "remote rejected", Code: task.Forbidden},
}, program.Messages, []program.Message{
	{Text: "repository not found", Code: task.NotFound},
	{Text: "Repository not found", Code: task.NotFound},
	{Text: "unable to update url base from redirection", Code: task.NotFound},
	{Text: "returned error: 301", Code: task.NotFound},
	{Text: "returned error: 302", Code: task.NotFound},
	{Text: "returned error: 307", Code: task.NotFound},
	{Text: "returned error: 308", Code: task.NotFound},
	{Text: "bad config line", Code: task.Internal},
})

// coded gives an error of git that talked to a forge the code of package forge. It is a
// [forge.Error] unless it is our own git that has failed.
func coded(err error, message string) error {
	var already *task.Error
	if err == nil || errors.As(err, &already) {
		return err
	}
	code := task.Unavailable
	if failed, is := errors.AsType[*program.RunError](err); is && !failed.Ended {
		code = failed.Code(messages)
		if code == task.TooLarge && failed.Local().Code(messages) == code {
			return task.Wrap(code, err, message) // a limit of ours
		}
	}
	return &forge.Error{Err: task.Wrap(code, err, message)}
}
