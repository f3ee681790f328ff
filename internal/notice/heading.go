package notice

import (
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// headings are what the progress comment of a run begins with when nobody works on the
// task any more, by state.
var headings = map[task.State]map[task.Language]string{
	task.Failed:  {task.English: "Toryo could not finish", task.Japanese: "Toryo は作業を完了できませんでした"},
	task.Stopped: {task.English: "Toryo was stopped", task.Japanese: "Toryo は停止しました"},
	task.Paused:  {task.English: "Toryo is paused", task.Japanese: "Toryo は一時停止中です"},
}

// Heading is what the progress comment begins with when the task is in that state, without
// the marks of a heading. There is none for a state in which only the run knows what to say.
func Heading(state task.State, in task.Language) (text string, found bool) {
	if in != task.Japanese {
		in = task.English
	}
	text, found = headings[state][in]
	return text, found
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
