package agent

import (
	"strings"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
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
