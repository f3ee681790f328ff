package notify

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/notify/format"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// mostNeeds is how many needs a message tells of in words; the others are counted.
	mostNeeds = 10
	// mostText is how many bytes of a text of others are taken into a message.
	mostText = 2000
)

// Pages is where people find the pages of the server, without a slash at the end; empty if
// that is not known.
type Pages string

// Path is the page of what a need is about.
func Path(need task.Need) string {
	switch {
	case need.Task != nil:
		return "/tasks/" + string(need.Task.ID)
	case need.Kind == task.NeedAgent:
		return "/agents"
	default:
		return "/"
	}
}

// Message is what a target is told about needs. It has no id yet.
func (p Pages) Message(in task.Language, at time.Time, needs []task.Need) format.Message {
	m := format.Message{
		Type: "needs", At: at.UTC().Truncate(time.Second), Title: messages.Text(in, "notifications.title", len(needs)),
		URL: p.address("/"), Count: len(needs), More: func(count int) string { return messages.Text(in, "notifications.more", count) },
	}
	for _, need := range needs[:min(len(needs), mostNeeds)] {
		m.Needs = append(m.Needs, p.entry(in, need))
	}
	if len(needs) == 1 {
		m.Title = m.Needs[0].What
	}
	return m
}

// WithoutTexts is the same without texts of others, for a service that has refused a message with
// them.
func (p Pages) WithoutTexts(in task.Language, at time.Time, needs []task.Need) format.Message {
	short := make([]task.Need, 0, len(needs))
	for _, need := range needs {
		need.Detail, need.Hint, need.By = "", "", ""
		if need.Task != nil {
			of := *need.Task
			of.Title, need.Task = leftOut, &of
		}
		if need.Kind != task.NeedServer && need.Subject != "" {
			need.Subject = leftOut
		}
		short = append(short, need)
	}
	m := p.Message(in, at, short)
	if len(m.Needs) > 0 {
		m.Needs[0].Detail = messages.Text(in, "notifications.without_texts")
	}
	return m
}

// leftOut stands for a text that is left out.
const leftOut = "…"

// Test is a message that tells that messages arrive.
func (p Pages) Test(in task.Language, at time.Time) format.Message {
	m := p.Message(in, at, nil)
	m.ID, m.Type, m.Title, m.Count = "msg_"+uuid.NewString(), "test", messages.Text(in, "notifications.test"), 1
	m.Needs = []format.Entry{{Key: "test", Kind: "test", What: m.Title, Detail: messages.Text(in, "notifications.test_detail"), URL: m.URL}}
	return m
}

func (p Pages) entry(in task.Language, need task.Need) format.Entry {
	said := messages.Need(in, need)
	clip := func(text string) string { return strings.ToValidUTF8(textfmt.Clip(text, mostText), "") }
	entry := format.Entry{
		Key: need.Key, Kind: string(need.Kind), Reason: string(need.Reason),
		What: clip(said.What), Why: clip(said.Why), Detail: clip(need.Detail), Fix: clip(said.Fix), URL: p.address(Path(need)),
	}
	if !need.Since.IsZero() {
		since := need.Since.UTC()
		entry.Since = &since
	}
	if need.Task != nil {
		entry.Task, entry.Item = string(need.Task.ID), need.Task.Key.String()
	}
	return entry
}

func (p Pages) address(path string) string {
	if p == "" {
		return ""
	}
	return string(p) + path
}

// wanted are the needs that a target is told of, by their keys.
func wanted(to Target, needs []task.Need) map[string]task.Need {
	all := make(map[string]task.Need)
	for _, need := range needs {
		if to.Wants(need) {
			all[keyOf(need)] = need
		}
	}
	return all
}

// inOrder are the needs with some keys, which are sorted, in the order in which they are listed.
func inOrder(needs []task.Need, keys []string) []task.Need {
	return slices.DeleteFunc(slices.Clone(needs), func(need task.Need) bool {
		_, found := slices.BinarySearch(keys, keyOf(need))
		return !found
	})
}
