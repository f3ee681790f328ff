package journal

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
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
// there, which has the output, and pieces of output that follow one another are one entry. Later are
// events that come after them: they are not shown, but a call that ends among them is shown there.
// An entry at the position apart, unless that is 0, is not added to the one before, so that it can be linked to.
func Shown(events, later []task.Event, apart int64) []Entry {
	s := showing{begun: make(map[string]int), wrote: make(map[string][]int), ended: make(map[string]bool)}
	for _, event := range events {
		s.add(Read(event), true)
	}
	for _, event := range later {
		if event.Kind == task.ToolCalled {
			s.add(Read(event), false)
		}
	}
	shown := make([]Entry, 0, len(s.entries))
	for _, one := range s.entries {
		if one.dropped {
			continue
		}
		if last := len(shown) - 1; last >= 0 && (apart == 0 || one.Position != apart) && one.goesOn(shown[last]) {
			shown[last].Text += one.Text
			continue
		}
		shown = append(shown, one.Entry)
	}
	return shown
}

// showing goes through a journal in order. Calls are known by [Entry.CallKey], which may come
// again: some models number their calls from 1 in each turn.
type showing struct {
	entries []shownEntry
	begun   map[string]int   // where the beginning of a call is that has not ended
	wrote   map[string][]int // where its output is
	ended   map[string]bool
}

type shownEntry struct {
	Entry
	dropped bool
}

func (s *showing) add(entry Entry, shown bool) {
	call, output := entry.CallKey(), entry.OutputKey()
	switch {
	case call != "" && entry.Result != nil:
		s.end(call)
	case call != "":
		s.begin(call, shown)
	case output != "":
		if s.ended[output] { // it came late
			return
		}
		s.wrote[output] = append(s.wrote[output], len(s.entries))
	}
	if shown && !entry.Empty() {
		s.entries = append(s.entries, shownEntry{Entry: entry})
	}
}

// begin notes that a call begins. One of the same name that has not ended was interrupted.
func (s *showing) begin(call string, shown bool) {
	if at, is := s.begun[call]; is {
		s.entries[at].Interrupted = true
	}
	delete(s.begun, call)
	delete(s.wrote, call)
	s.ended[call] = false
	if shown {
		s.begun[call] = len(s.entries)
	}
}

// end leaves out what there was of a call before its end.
func (s *showing) end(call string) {
	if at, is := s.begun[call]; is {
		s.entries[at].dropped = true
	}
	for _, at := range s.wrote[call] {
		s.entries[at].dropped = true
	}
	delete(s.begun, call)
	delete(s.wrote, call)
	s.ended[call] = true
}

// WholeOutput is output with the pieces that follow it: events begin with the first of them. It is
// nothing if that is no output.
func WholeOutput(events []task.Event) (whole Entry) {
	for i, event := range events {
		switch entry := Read(event); {
		case i == 0 && entry.IsOutput():
			whole = entry
		case i == 0 || !entry.goesOn(whole):
			return whole
		default:
			whole.Text += entry.Text
		}
	}
	return whole
}

// goesOn reports whether the entry is output that goes on where the one before ends.
func (e Entry) goesOn(before Entry) bool {
	return e.IsOutput() && before.IsOutput() && before.Generation == e.Generation && before.OutputKey() == e.OutputKey() && len(before.Text) < longestOutput
}

// longestOutput is how long an entry is to which no more output is added.
const longestOutput = 256 << 10

// IsOutput reports whether the entry is what a program wrote, as it came.
func (e Entry) IsOutput() bool { return e.Kind == task.NoteTaken && e.Status == "output" }

// OutputKey names the call that the entry has output of, as CallKey does; empty if it is none, or of
// no call.
func (e Entry) OutputKey() string {
	if !e.IsOutput() || e.Call == nil {
		return ""
	}
	return e.callKey()
}

func (e Entry) callKey() string {
	if e.Call.ID == "" {
		return ""
	}
	return strconv.FormatInt(e.Generation, 10) + "/" + e.Call.ID
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
var exitLine = lazyregexp.New(`\n?\[exit code (-?\d+)\]\s*$`)

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
	case task.NoteTaken:
		return e.outputActivity()
	default:
		return "", false
	}
}

// outputActivity is what a run does that has just written output: the program still runs.
func (e Entry) outputActivity() (Activity, bool) {
	switch {
	case !e.IsOutput():
		return "", false
	case e.Call != nil || e.Phase == task.Execution:
		return Calling, true
	default:
		return begins[e.Phase], begins[e.Phase] != ""
	}
}
