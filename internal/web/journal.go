package web

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// entryData is what the pages read of the data of a journal entry. Which fields
// are there follows from the kind; what is unknown is left alone.
type entryData struct {
	Phase        task.Phase   `json:"phase"`
	Step         int64        `json:"step"`
	Status       string       `json:"status"`
	Conversation string       `json:"conversation"`
	Message      *messageData `json:"message"`
	Call         *callData    `json:"call"`
	Result       *resultData  `json:"result"`
	Usage        *usageData   `json:"usage"`
	Plan         *planData    `json:"plan"`
	Setup        *setupData   `json:"setup"`
	Commit       string       `json:"commit"`
	Signal       *signalData  `json:"signal"`
	Text         string       `json:"text"`

	Trigger task.Trigger `json:"trigger"` // of a state entry, with:
	From    task.State   `json:"from"`
	To      task.State   `json:"to"`
	Reason  task.Reason  `json:"reason"`
}

type (
	messageData struct {
		Kind    string      `json:"kind"`
		Begin   []blockData `json:"begin"`
		Block   *blockData  `json:"block"`
		Message *struct {
			Role  string `json:"role"`
			Parts []struct {
				Text     string    `json:"text"`
				Call     *callData `json:"call"`
				Thinking *struct {
					Text string `json:"text"`
				} `json:"thinking"`
			} `json:"parts"`
		} `json:"message"`
		Compaction *struct {
			Before int64 `json:"before"`
			After  int64 `json:"after"`
		} `json:"compaction"`
	}
	blockData struct {
		Name string `json:"name"`
		Text string `json:"text"`
	}
	callData struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	resultData struct {
		Text   string `json:"text"`
		Whole  string `json:"whole"`
		Failed bool   `json:"failed"`
	}
	usageData struct {
		Model    string `json:"model"`
		Scripted bool   `json:"scripted"`
		Usage    struct {
			Input  int64 `json:"input"`
			Cached int64 `json:"cached"`
			Output int64 `json:"output"`
		} `json:"usage"`
		Cost int64 `json:"cost"` // millionths
	}
	planData struct {
		Revision int `json:"revision"`
		Goal     struct {
			Goal string `json:"goal"`
		} `json:"goal_understanding"`
		Actions struct {
			Actions []struct {
				ID   string `json:"id"`
				What string `json:"what"`
				Done bool   `json:"done"`
			} `json:"actions"`
		} `json:"action_plan"`
	}
	setupData struct {
		Handover struct {
			Ready  bool   `json:"environment_ready"`
			Status string `json:"setup_status"`
		} `json:"handover"`
		Receipt receiptData `json:"receipt"`
	}
	receiptData struct {
		Environment   string   `json:"environment"`
		Sandbox       string   `json:"sandbox"`
		Image         string   `json:"image"`
		Identity      string   `json:"identity"`
		SetupCommands []string `json:"setup_commands"`
		Verification  []struct {
			Command string `json:"command"`
			Passed  bool   `json:"passed"`
		} `json:"verification"`
		Baseline *struct {
			Command string   `json:"command"`
			Exit    int      `json:"exit_code"`
			Failing []string `json:"failing"`
		} `json:"baseline"`
	}
	signalData struct {
		Signal   task.Signal   `json:"signal"`
		Reason   task.Reason   `json:"reason"`
		Comments []commentData `json:"comments"`
	}
	commentData struct {
		Position int64  `json:"position"`
		ID       string `json:"id"`
		Author   string `json:"author"`
		Change   string `json:"change"`
		Refused  string `json:"refused"`
	}
)

// entryView is one entry of the journal as the page shows it.
type entryView struct {
	position   int64
	generation int64
	kind       task.EventKind
	at         time.Time
	data       entryData
	unreadable bool
}

func entryOf(event task.Event) entryView {
	view := entryView{position: event.Position, generation: event.Generation, kind: event.Kind, at: event.At}
	if len(event.Data) > 0 {
		view.unreadable = json.Unmarshal(event.Data, &view.data) != nil
	}
	return view
}

// begins reports whether the entry is the first of a step: a turn of the model, or
// something that happens to the task as a whole.
func (e entryView) begins() bool {
	switch e.kind {
	case task.StateChanged, task.PhaseChanged, task.Planned, task.Prepared, task.Summed:
		return true
	case task.MessageSent:
		m := e.data.Message
		return m != nil && (m.Kind == "begin" || m.Message != nil && m.Message.Role == "assistant")
	default:
		return false
	}
}

// empty reports whether there is nothing in the entry for people. The calls and
// results in messages have entries of their own.
func (e entryView) empty() bool {
	if e.kind != task.MessageSent || e.begins() {
		return false
	}
	m := e.data.Message
	if m == nil || m.Message == nil {
		return m == nil || m.Compaction == nil && m.Block == nil
	}
	return e.text() == "" && e.thinking() == ""
}

// text is what a message says.
func (e entryView) text() string {
	if e.data.Message == nil || e.data.Message.Message == nil {
		return ""
	}
	var texts []string
	for _, part := range e.data.Message.Message.Parts {
		if part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

func (e entryView) thinking() string {
	if e.data.Message == nil || e.data.Message.Message == nil {
		return ""
	}
	var texts []string
	for _, part := range e.data.Message.Message.Parts {
		if part.Thinking != nil && part.Thinking.Text != "" {
			texts = append(texts, part.Thinking.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// callID names the call of a tool entry, so that its result can take the place of
// its beginning.
func (e entryView) callID() string {
	if e.kind != task.ToolCalled || e.data.Call == nil {
		return ""
	}
	return e.data.Call.ID
}

// title is one line about a step.
func (e entryView) title(v visit) string {
	switch {
	case e.kind == task.StateChanged:
		return v.t("journal.state", v.t("state."+string(e.data.To)))
	case e.kind == task.PhaseChanged:
		return v.t("phase."+string(e.data.Phase)) + ": " + v.textOr("status."+e.data.Status, e.data.Status)
	case e.kind == task.MessageSent && e.data.Message != nil && e.data.Message.Kind == "begin":
		return v.t("journal.begin", e.data.Conversation)
	case e.kind == task.MessageSent && e.data.Message != nil && e.data.Message.Message != nil:
		if _, is := asJSON(e.text()); is {
			return v.t("journal.structured")
		}
		if line := firstLine(e.text()); line != "" {
			return line
		}
		var names []string
		for _, part := range e.data.Message.Message.Parts {
			if part.Call != nil {
				names = append(names, part.Call.Name)
			}
		}
		if len(names) > 0 {
			return strings.Join(names, ", ")
		}
	}
	return v.textOr("kind."+string(e.kind), string(e.kind))
}

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

// quoteMark is a line by which a model is told where a text comes from. People are
// shown the text; a text cannot have such a line itself.
var quoteMark = regexp.MustCompile(`(?m)^</?untrusted\b[^\n>]*>(?:\n|$)`)

// output is what a tool gave, without what is only for the model.
func (r resultData) output() string { return quoteMark.ReplaceAllString(r.Text, "") }

// marks are what Markdown has in a line that a heading does not need.
var marks = strings.NewReplacer("**", "", "`", "", "# ", "", "#", "")

// firstLine is the beginning of a text, short enough for a heading.
func firstLine(text string) string {
	const longest = 120
	return textfmt.Shorten(strings.TrimSpace(marks.Replace(textfmt.FirstLine(text))), longest)
}

// stepView is the entries of one step.
type stepView struct {
	title   string
	first   entryView
	entries []entryView
	open    bool
}

// stepsOf folds entries into steps. Of a call that has ended only the end is
// shown.
func stepsOf(v visit, events []task.Event) []stepView {
	ended := make(map[string]bool)
	entries := make([]entryView, 0, len(events))
	for _, event := range events {
		entry := entryOf(event)
		if entry.data.Result != nil {
			ended[entry.callID()] = true
		}
		entries = append(entries, entry)
	}
	var steps []stepView
	for _, entry := range entries {
		if entry.empty() || entry.data.Result == nil && ended[entry.callID()] && entry.callID() != "" {
			continue
		}
		if len(steps) == 0 || entry.begins() {
			step := stepView{first: entry, title: v.t("journal.continued")}
			if entry.begins() {
				step.title = entry.title(v)
			}
			steps = append(steps, step)
		}
		last := &steps[len(steps)-1]
		last.entries = append(last.entries, entry)
	}
	return steps
}
