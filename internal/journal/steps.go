package journal

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// Empty reports whether there is nothing in the entry for people. The calls and
// results in messages have entries of their own.
func (e Entry) Empty() bool {
	if e.Kind != task.MessageSent {
		return false
	}
	m := e.Message
	switch {
	case m == nil:
		return true
	case m.Kind == "begin":
		return false
	case m.Said == nil:
		return m.Compaction == nil && m.Block == nil
	default:
		return len(e.Texts()) == 0 && len(e.Thinking()) == 0
	}
}

// Shown are the entries that people are shown, in order. Of a call that has ended only the end is
// there, which has the output, and pieces of output that follow one another are one entry.
func Shown(events []task.Event) []Entry {
	ended := make(map[string]bool)
	entries := make([]Entry, 0, len(events))
	for _, event := range events {
		entry := Read(event)
		if entry.Result != nil {
			ended[entry.CallID()] = true
		}
		entries = append(entries, entry)
	}
	shown := entries[:0]
	for _, entry := range entries {
		id := entry.CallID()
		if entry.Empty() || entry.Result == nil && id != "" && ended[id] || entry.OutputOf() != "" && ended[entry.OutputOf()] {
			continue
		}
		if last := len(shown) - 1; last >= 0 && entry.goesOn(shown[last]) {
			shown[last].Text += entry.Text
			continue
		}
		shown = append(shown, entry)
	}
	return shown
}

// goesOn reports whether the entry is output that goes on where the one before ends.
func (e Entry) goesOn(before Entry) bool {
	return e.IsOutput() && before.IsOutput() && before.Generation == e.Generation && before.OutputOf() == e.OutputOf() && len(before.Text) < longestOutput
}

// longestOutput is how long an entry is to which no more output is added.
const longestOutput = 256 << 10

// IsOutput reports whether the entry is what a program wrote, as it came.
func (e Entry) IsOutput() bool { return e.Kind == task.NoteTaken && e.Status == "output" }

// OutputOf names the call that the entry has output of; empty if it is none, or of no call.
func (e Entry) OutputOf() string {
	if !e.IsOutput() || e.Call == nil {
		return ""
	}
	return e.Call.ID
}

// FromModel reports whether the entry is an answer of the model.
func (e Entry) FromModel() bool {
	return e.Kind == task.MessageSent && e.Message != nil && e.Message.Said != nil && e.Message.Said.Role == "assistant"
}

// Calls are the calls of an answer of the model.
func (e Entry) Calls() (calls []Call) {
	for _, part := range e.parts() {
		if part.Call != nil {
			calls = append(calls, *part.Call)
		}
	}
	return calls
}

// Verdict is what verification came to, if the entry says so.
func (e Entry) Verdict() (Verdict, bool) {
	var verdict Verdict
	if e.Kind != task.PhaseChanged || e.Phase != task.Verification || e.Status == task.PhaseActive || len(e.Outcome) == 0 {
		return verdict, false
	}
	return verdict, json.Unmarshal(e.Outcome, &verdict) == nil
}

// exitLine is how a run says to the model that a program has ended, behind its output.
var exitLine = regexp.MustCompile(`\n?\[exit code (-?\d+)\]\s*$`)

// ExitCode is how the program ended that the tool ran. Journals of earlier versions have it
// only in what the model was told.
func (r Result) ExitCode() (code int, known bool) {
	if r.Exit != nil {
		return r.Exit.Code, !r.Exit.TimedOut
	}
	found := exitLine.FindStringSubmatch(r.Text)
	if found == nil {
		return 0, false
	}
	code, err := strconv.Atoi(found[1])
	return code, err == nil
}

// Printed is what a program wrote: all of it where that is known, with its colours, or what the
// model was shown.
func (r Result) Printed() string {
	if r.Whole != "" {
		return r.Whole
	}
	return exitLine.ReplaceAllString(strings.TrimRight(r.Output(), "\n"), "")
}

// Activity is what a run does.
type Activity string

// The activities.
const (
	Preparing  Activity = "preparing"  // the agent gets the files
	Thinking   Activity = "thinking"   // the model was asked
	Calling    Activity = "calling"    // a tool runs
	SettingUp  Activity = "setting_up" // the environment is made
	Verifying  Activity = "verifying"  // build and tests run, and the model judges
	Publishing Activity = "publishing" // the work is handed over
	Halted     Activity = "halted"     // the run is over, or is about to be
)

// begins is what a run does first in a phase.
var begins = map[task.Phase]Activity{
	task.PrePlanning: Thinking, task.Planning: Thinking, task.Execution: Thinking, task.Reflection: Thinking,
	task.EnvironmentSetup: SettingUp, task.Verification: Verifying, task.Complete: Publishing,
}

// Activity is what a run does after the entry, as far as the entry says. Those that say nothing
// leave it as it was.
func (e Entry) Activity() (activity Activity, says bool) {
	switch e.Kind {
	case task.StateChanged:
		if e.To == task.Running {
			return Preparing, true
		}
		return Halted, true
	case task.PhaseChanged:
		if e.Status == task.PhaseActive {
			return begins[e.Phase], begins[e.Phase] != ""
		}
		return Thinking, e.Phase == task.Reflection
	case task.MessageSent:
		if e.FromModel() && len(e.Calls()) > 0 {
			return Calling, true
		}
		return Thinking, !e.FromModel()
	case task.ToolCalled:
		if e.Result == nil {
			return Calling, true
		}
		return Thinking, true
	case task.SignalTaken:
		return Halted, e.Signal != nil && e.Signal.Signal != task.SignalComments
	default:
		return "", false
	}
}
