// Package journaltest has the journals that the readers of journals are tested with: the
// package journal itself, the pages and the terminal.
package journaltest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/task"
)

// Began is the time of the first entry. Each entry comes a second after the one before.
var Began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// events numbers entries.
type events []task.Event

func (e *events) add(kind task.EventKind, data json.RawMessage) {
	sequence := int64(len(*e) + 1)
	*e = append(*e, task.Event{
		Generation: 1, Source: task.FromAgent, Sequence: sequence, Position: sequence, Kind: kind,
		At: Began.Add(time.Duration(sequence-1) * time.Second), Data: data,
	})
}

// entry adds what a run writes.
func (e *events) entry(kind task.EventKind, entry phase.Entry) {
	data, err := json.Marshal(entry)
	if err != nil {
		panic(err) // an entry has only what can be written
	}
	e.add(kind, data)
}

func (e *events) message(of conversation.Entry) {
	e.entry(task.MessageSent, phase.Entry{Phase: task.Execution, Conversation: "execution", Message: &of})
}

func (e *events) said(role llm.Role, parts ...llm.Part) {
	e.message(conversation.Entry{Kind: conversation.MessageEntry, Message: &llm.Message{Role: role, Parts: parts}})
}

// Huge is longer than anything that is shown whole.
var Huge = strings.Repeat("x", 200_000)

// Control has what a terminal takes as commands, and what HTML takes as markup.
const Control = "bad\x1b]0;title\x07 \x1b[31mred\x1b[0m \x00\x7f\u009b1m<b>&amp;\r\nnext\tline"

// Readable is a journal with an entry of every kind, as the phases write them and as
// other versions and hostile runs may. All of it can be read.
func Readable() []task.Event {
	var e events
	e.add(task.StateChanged, json.RawMessage(`{"trigger":"claim","from":"queued","to":"running","reason":"claimed"}`))
	e.add(task.Requested, json.RawMessage(`{"title":"Fix it","body":"Please."}`))
	e.add(task.Remembered, json.RawMessage(`{"notes":["0199","019a"]}`))
	e.entry(task.PhaseChanged, phase.Entry{Phase: task.Planning, Status: phase.PhaseActive})
	e.entry(task.PhaseChanged, phase.Entry{Phase: task.Planning, Status: phase.PhaseCompleted, Outcome: json.RawMessage(`{"any":"thing"}`)})
	plan := phase.Plan{Revision: 2, GoalUnderstanding: phase.Goal{Goal: "A gate that does not squeak"}}
	plan.ActionPlan.Actions = []phase.Action{{ID: "a1", What: "Oil the hinges", Done: true}, {ID: "a2", What: "Test <the> gate"}}
	e.entry(task.Planned, phase.Entry{Plan: &plan})
	e.entry(task.Prepared, phase.Entry{Setup: &phase.SetupEntry{
		Handover: environment.Handover{EnvironmentReady: true, EnvironmentName: "go", SetupStatus: environment.Succeeded},
		Receipt: environment.Receipt{
			Environment: "go", Sandbox: "bubblewrap", Image: "golang:1.26", SetupCommands: []string{"go mod download"},
			Verification: []environment.CheckRun{{Check: environment.Check{Command: "go version"}, Passed: true}, {Check: environment.Check{Command: "make"}}},
			Baseline:     &environment.Baseline{Command: "go test ./...", Failing: []string{"TestGate"}},
		},
	}})
	e.messages()
	e.calls()
	e.entry(task.ModelUsed, phase.Entry{Step: 3, Usage: &phase.Usage{Model: "small", Scripted: true, Usage: llm.Usage{Input: 900, Cached: 10, Output: 80}, Cost: 1500}})
	e.entry(task.ModelUsed, phase.Entry{Step: 4, Usage: &phase.Usage{Model: "large", Usage: llm.Usage{Input: 1_234_567, Output: 8000}, Cost: 2_500_000}})
	e.entry(task.Saved, phase.Entry{Step: 1, Commit: "0123abcd"})
	e.entry(task.Saved, phase.Entry{Step: 1, Commit: "4567cdef", Status: phase.SavedBranch})
	e.entry(task.SignalTaken, phase.Entry{Step: 1, Signal: &phase.SignalEntry{Signal: task.SignalComments, Position: 2, Comments: []task.CommentEntry{
		{Comment: task.Comment{ID: "1", Author: "alice"}, Position: 1, Change: task.CommentNew},
		{Comment: task.Comment{ID: "2", Author: "mallory"}, Position: 2, Change: task.CommentEdited, Refused: task.ReasonNoWriteAccess},
	}}})
	e.entry(task.SignalTaken, phase.Entry{Step: 2, Signal: &phase.SignalEntry{Signal: task.SignalStop, Reason: task.ReasonUnassigned}})
	e.entry(task.Summed, phase.Entry{Text: "What a later run is **told**."})
	e.entry(task.NoteTaken, phase.Entry{Text: "Something for people.", Name: "told", Status: "warning"})
	e.entry(task.NoteTaken, phase.Entry{Text: Control})
	e.entry(task.NoteTaken, phase.Entry{Text: strings.Repeat("a line\n", 30)})
	e.odd()
	return e
}

func (e *events) messages() {
	e.message(conversation.Entry{Kind: conversation.BeginEntry, Begin: []conversation.Block{{Name: "task", Text: "Fix <it>"}, {Name: "huge", Text: Huge}}})
	e.said(llm.User, llm.Part{Text: "Go on."})
	e.said(llm.Assistant, llm.Part{Text: "## I look at the **hinges** first.\n\nThen at the gate."}, llm.Part{Text: "And so on."},
		llm.Part{Thinking: &llm.Thinking{Maker: "p m", Text: "Hm."}}, llm.Part{Call: &llm.Call{ID: "c1", Name: "shell", Arguments: `{"command":"ls"}`}})
	e.said(llm.Assistant, llm.Part{Call: &llm.Call{ID: "c2", Name: "edit", Arguments: `{}`}}, llm.Part{Call: &llm.Call{ID: "c3", Name: "read", Arguments: `{}`}})
	e.said(llm.User, llm.Part{Result: &llm.Result{CallID: "c2", Name: "edit", Text: "done"}})
	e.said(llm.Assistant, llm.Part{Text: `{"verdict": {"good": true}}`})
	e.said(llm.Assistant, llm.Part{Text: Huge})
	e.said(llm.Assistant)
	e.message(conversation.Entry{Kind: conversation.PinEntry, Block: &conversation.Block{Name: "memory", Text: "Keep this."}})
	e.message(conversation.Entry{Kind: conversation.CompactionEntry, Compaction: &conversation.Compaction{Method: conversation.Masked, Before: 5000, After: 700}})
}

func (e *events) calls() {
	begun := phase.Entry{Phase: task.Execution, Conversation: "execution", Step: 1, Call: &llm.Call{ID: "c1", Name: "shell", Arguments: `{"command":"go test ./..."}`}}
	e.entry(task.ToolCalled, begun)
	ended := begun
	ended.Result = &phase.CallResult{Text: "<untrusted source=\"tool\">\n\x1b[32mok\x1b[0m  gate\n\x1b[1;31mFAIL\x1b[0m hinge\n</untrusted>\n", Failed: true}
	e.entry(task.ToolCalled, ended)
	e.entry(task.ToolCalled, phase.Entry{Call: &llm.Call{ID: "c2", Name: "edit", Arguments: `{"path":"gate.go"}`},
		Result: &phase.CallResult{Text: "diff --git a/gate.go b/gate.go\n--- a/gate.go\n+++ b/gate.go\n@@ -1 +1 @@\n-squeak\n+silence\n", Whole: "all of it"}})
	e.entry(task.ToolCalled, phase.Entry{Call: &llm.Call{ID: "c4", Name: "shell", Arguments: Huge}})
	e.entry(task.ToolCalled, phase.Entry{Call: &llm.Call{ID: "c5", Name: Control, Arguments: Control}, Result: &phase.CallResult{Text: Huge, Whole: Huge}})
}

// odd adds what no run of this version writes.
func (e *events) odd() {
	e.add("unheard_of", json.RawMessage(`{"text":"of a later version","new_field":{"a":[1]}}`))
	e.add("<b>", json.RawMessage(`{}`))
	for _, kind := range kinds {
		e.add(kind, json.RawMessage(`{}`))
	}
	e.add(task.MessageSent, json.RawMessage(`{"message":{"kind":"message"}}`))
	e.add(task.MessageSent, json.RawMessage(`{"message":{"kind":"message","message":{"role":"assistant","parts":null}}}`))
	e.add(task.MessageSent, json.RawMessage(`{"message":{"kind":"begin"}}`))
	e.add(task.ToolCalled, json.RawMessage(`{"result":{"text":"no call"}}`))
	e.add(task.ToolCalled, json.RawMessage(`{"call":{}}`))
	e.add(task.PhaseChanged, json.RawMessage(`{"phase":"dancing","status":"glad"}`))
	e.add(task.StateChanged, json.RawMessage(`{"to":"melted","reason":"of a later version"}`))
	e.add(task.SignalTaken, json.RawMessage(`{"signal":{"signal":"whistle","comments":[{}]}}`))
	e.add(task.NoteTaken, json.RawMessage(`{"kind":"tool","Position":7,"at":"never","generation":9,"text":"not its own"}`))
	e.add(task.NoteTaken, json.RawMessage(`{"plan":{},"text":"not its own plan"}`))
	e.add(task.NoteTaken, json.RawMessage(`null`))
}

var kinds = []task.EventKind{
	task.StateChanged, task.PhaseChanged, task.MessageSent, task.ToolCalled, task.ModelUsed, task.Planned, task.Prepared,
	task.Saved, task.SignalTaken, task.Summed, task.NoteTaken, task.Requested, task.Inspected, task.PlanApproved, task.Remembered, "unheard_of",
}

// unreadable are data that are no entry, or one with something of the wrong type in it.
var unreadable = []string{
	``, `[]`, `7`, `"text"`, `true`, `{"step":"one"}`, `{"text":7}`, `{"message":[]}`, `{"call":"shell","text":"beside"}`, `{"plan":{"revision":"two"}}`,
	`{"usage":{"usage":{"input":1.5}}}`, `{"usage":{"cost":99999999999999999999}}`, `{"signal":{"comments":{}}}`, `{"setup":{"receipt":[]}}`, `{"phase":{}}`,
}

// Unreadable is a journal with entries of every kind whose data are not what they should
// be.
func Unreadable() []task.Event {
	var e events
	for _, data := range unreadable {
		for _, kind := range kinds {
			e.add(kind, json.RawMessage(data))
		}
	}
	return e
}
