package notice

import (
	"strings"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
)

// Heading is what the progress comment of a run begins with when nobody works on the
// task any more, by state and without the marks of a heading. There is none for a state
// in which only the run knows what to say.
func Heading(state task.State, in task.Language) (text string, found bool) {
	return messages.Find(in, "notice.heading_"+string(state))
}

// japaneseHeadings begin the headings of progress comments in Japanese, and none in English.
var japaneseHeadings = []string{"## Toryo は", "## Toryo が", "## Toryo の"}

// WithHeading returns the text of a progress comment with the heading of a state, in the
// language of the heading that it has.
func WithHeading(comment string, state task.State) string {
	first, rest, _ := strings.Cut(comment, "\n")
	language := task.English
	for _, prefix := range japaneseHeadings {
		if strings.HasPrefix(first, prefix) {
			language = task.Japanese
		}
	}
	heading, found := Heading(state, language)
	if !found || !strings.HasPrefix(first, "## ") {
		return comment
	}
	return "## " + heading + "\n" + rest
}
