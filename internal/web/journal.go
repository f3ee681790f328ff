package web

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/toryo-dev/toryo/internal/journal"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// stepView is a step of the journal as the page shows it.
type stepView struct {
	journal.Step
	title string
	open  bool
}

// stepsOf lays entries out as steps.
func stepsOf(v visit, events []task.Event) []stepView {
	var steps []stepView
	for _, step := range journal.Steps(events) {
		title := v.t("journal.continued")
		if step.Entries[0].Begins() {
			title = titleOf(v, step.Entries[0])
		}
		steps = append(steps, stepView{Step: step, title: title})
	}
	return steps
}

// titleOf is one line about a step that begins with the entry.
func titleOf(v visit, e journal.Entry) string {
	switch {
	case e.Kind == task.StateChanged:
		return v.t("journal.state", v.t("state."+string(e.To)))
	case e.Kind == task.PhaseChanged:
		return v.t("phase."+string(e.Phase)) + ": " + v.textOr("status."+e.Status, e.Status)
	case e.Kind == task.MessageSent && e.Message != nil && e.Message.Kind == "begin":
		return v.t("journal.begin", e.Conversation)
	case e.Kind == task.MessageSent && e.Message != nil && e.Message.Said != nil:
		text := paragraphs(e.Texts())
		if _, is := asJSON(text); is {
			return v.t("journal.structured")
		}
		if line := firstLine(text); line != "" {
			return line
		}
		var names []string
		for _, part := range e.Message.Said.Parts {
			if part.Call != nil {
				names = append(names, part.Call.Name)
			}
		}
		if len(names) > 0 {
			return strings.Join(names, ", ")
		}
	}
	return v.textOr("kind."+string(e.Kind), string(e.Kind))
}

// paragraphs are texts as one.
func paragraphs(texts []string) string { return strings.Join(texts, "\n\n") }

// asJSON is a text that is a JSON object, laid out for people.
func asJSON(text string) (laidOut string, is bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") || len(text) > maxLaidOut || depth(text) > maxDepth {
		return "", false
	}
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return "", false
	}
	return out.String(), true
}

const (
	// maxLaidOut is how long JSON is that is laid out.
	maxLaidOut = 64 << 10
	// maxDepth is how deep JSON is nested that is laid out: each level indents all
	// that is below.
	maxDepth = 40
)

// depth is how deep JSON may be nested.
func depth(text string) (deepest int) {
	now := 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// marks are what Markdown has in a line that a heading does not need.
var marks = strings.NewReplacer("**", "", "`", "", "# ", "", "#", "")

// firstLine is the beginning of a text, short enough for a heading.
func firstLine(text string) string {
	const longest = 120
	return textfmt.Shorten(strings.TrimSpace(marks.Replace(textfmt.FirstLine(text))), longest)
}
