package agent

import (
	"strings"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/wire"
)

// failureText is what people are told of a run that ended with an error: what
// happened and how to fix it. What is behind the error is for the log.
func failureText(kind task.Type, in task.Language, err error) string {
	said := notice.Notice{Review: kind == task.Review, Detail: messages.Text(in, "command.failed", failureDetail(err))}
	return said.Broke(in) + "\n\n" + said.Next(in)
}

// failureDetail is what an error means to people.
func failureDetail(err error) string {
	message := task.CodeOf(err).Info().Meaning
	if coded, found := task.AsError(err); found && coded.Code != task.Internal {
		message = coded.Message
		if coded.Hint != "" {
			message += " (" + coded.Hint + ")"
		}
	}
	return message
}

// failureOf is what is kept with a failed task: what happened, and how to fix it. Unlike on the
// forge, that is what is behind an error too: who sees the pages may know it, and needs it.
func failureOf(err error) (detail, hint string) {
	if coded, found := task.AsError(err); found && coded.Code != task.Internal {
		detail = coded.Message
		if coded.Err != nil {
			detail += ": " + coded.Err.Error()
		}
		return detail, coded.Hint
	}
	return err.Error(), ""
}

// longestFailure is how many bytes of what went wrong are looked at. The server keeps less. It is
// not cut to that here, before secrets are taken out: a half of one would not be found.
const longestFailure = 100_000

// explained puts what went wrong into a result.
func explained(result wire.Result, err error) wire.Result {
	detail, hint := failureOf(err)
	result.Detail, result.Hint = textfmt.Clip(textfmt.Plain(textfmt.StripEscapes(detail)), longestFailure), textfmt.Clip(hint, longestFailure)
	return result
}

// quoted is output in a block of its own, which nothing in it can leave.
func quoted(text string) string {
	fence := textfmt.Fence(text)
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

// ending is the last part of a text that is shown, from the beginning of a line if there is one.
func ending(text string) string {
	if len(text) <= shownOutput {
		return text
	}
	text = strings.ToValidUTF8(text[len(text)-shownOutput:], "")
	if _, rest, found := strings.Cut(text, "\n"); found && rest != "" {
		text = rest
	}
	return text
}
