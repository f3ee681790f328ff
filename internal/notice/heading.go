package notice

import (
	"strings"
	"unicode"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
)

// Heading is what the progress comment of a run begins with when nobody works on the
// task any more, by state and without the marks of a heading. There is none for a state
// in which only the run knows what to say.
func Heading(state task.State, in task.Language) (text string, found bool) {
	return messages.Find(in, "notice.heading_"+string(state))
}

// WithHeading returns the text of a progress comment with the heading of a state, in the
// language of the heading that it has.
func WithHeading(comment string, state task.State) string {
	first, rest, _ := strings.Cut(comment, "\n")
	heading, found := Heading(state, languageOf(first))
	if !found || !strings.HasPrefix(first, "## ") {
		return comment
	}
	return "## " + heading + "\n" + rest
}

// languageOf is the language of the first line of a comment, which is one of our texts: those in
// Japanese have hiragana.
func languageOf(line string) task.Language {
	if strings.ContainsFunc(line, func(r rune) bool { return unicode.Is(unicode.Hiragana, r) }) {
		return task.Japanese
	}
	return task.English
}

// WithLink returns the text of a comment with a link to the page of the task, in the language of
// its first line: below the heading of a progress comment, at the end of any other. Without an
// address it is the comment as it is.
func WithLink(comment, address string) string {
	if address == "" {
		return comment
	}
	first, rest, _ := strings.Cut(comment, "\n")
	link := messages.Text(languageOf(first), "notice.task_page", address)
	if !strings.HasPrefix(first, "## ") {
		return strings.TrimRight(comment, "\n") + "\n\n" + link + "\n"
	}
	return first + "\n\n" + link + "\n" + rest
}
