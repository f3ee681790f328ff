package environment

import (
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const commentErrorLength = 4000

// Comment is the comment for the issue or pull request about a failed set-up, or
// nothing when it did not fail.
func (r Result) Comment(language task.Language) string {
	if r.OverallStatus == Succeeded || len(r.Errors) == 0 {
		return ""
	}
	last := r.Errors[len(r.Errors)-1]
	message := last.Message
	if last.Log != "" {
		message += "\n" + last.Log
	}
	if len(message) > commentErrorLength {
		cut := (commentErrorLength - 10) / 2
		message = strings.ToValidUTF8(message[:cut]+"\n...\n"+message[len(message)-cut:], "")
	}
	message = strings.TrimRight(message, "\n")
	fence := textfmt.Fence(message)
	return messages.Text(language, "setup.failed", r.environmentText(language), fence, message, fence, r.SetupResult.NetworkRetries,
		r.SetupResult.Regenerations, mostRegenerations, fmt.Sprintf("%s (%s)", last.Classification.Class, last.Classification.Kind))
}

// CloneComment is the comment about a project that could not be cloned: then there is
// no execution phase to go on to.
func CloneComment(language task.Language, message string) string {
	fence := textfmt.Fence(message)
	return messages.Text(language, "setup.not_cloned", fence, strings.TrimRight(message, "\n"), fence, fmt.Sprintf("%s (%s)", Fatal, Container))
}

// environmentText is the environment on one line.
func (r Result) environmentText(language task.Language) string {
	name := textfmt.OneLine(r.SetupResult.Environment)
	if r.SetupResult.Guess == "" {
		return name
	}
	return messages.Text(language, "setup.guess", name, textfmt.OneLine(r.SetupResult.Guess))
}
