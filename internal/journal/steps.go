package journal

import "github.com/toryo-dev/toryo/internal/task"

// Step is the entries from one that begins a step up to the next such.
type Step struct {
	Entries []Entry // at least one
}

// Begins reports whether the entry is the first of a step: a turn of the model, or
// something that happens to the task as a whole.
func (e Entry) Begins() bool {
	switch e.Kind {
	case task.StateChanged, task.PhaseChanged, task.Planned, task.Prepared, task.Summed:
		return true
	case task.MessageSent:
		m := e.Message
		return m != nil && (m.Kind == "begin" || m.Said != nil && m.Said.Role == "assistant")
	default:
		return false
	}
}

// Empty reports whether there is nothing in the entry for people. The calls and
// results in messages have entries of their own.
func (e Entry) Empty() bool {
	if e.Kind != task.MessageSent || e.Begins() {
		return false
	}
	m := e.Message
	if m == nil || m.Said == nil {
		return m == nil || m.Compaction == nil && m.Block == nil
	}
	return len(e.Texts()) == 0 && len(e.Thinking()) == 0
}

// Steps folds entries that follow one another into steps. The first one may be the rest of
// a step: then its first entry begins none. Of a call that has ended only the end is there.
func Steps(events []task.Event) []Step {
	ended := make(map[string]bool)
	entries := make([]Entry, 0, len(events))
	for _, event := range events {
		entry := Read(event)
		if entry.Result != nil {
			ended[entry.CallID()] = true
		}
		entries = append(entries, entry)
	}
	var steps []Step
	for _, entry := range entries {
		id := entry.CallID()
		if entry.Empty() || entry.Result == nil && id != "" && ended[id] {
			continue
		}
		if len(steps) == 0 || entry.Begins() {
			steps = append(steps, Step{})
		}
		last := &steps[len(steps)-1]
		last.Entries = append(last.Entries, entry)
	}
	return steps
}
