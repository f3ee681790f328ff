package web

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/journal/journaltest"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// journalWriter writes entries as a run does.
type journalWriter struct {
	t     testing.TB
	house *house
	task  task.Task
	next  int64
}

func (h *house) journal(t testing.TB, of task.Task) *journalWriter {
	t.Helper()
	return &journalWriter{t: t, house: h, task: of}
}

func (j *journalWriter) add(kind task.EventKind, entries ...phase.Entry) {
	j.t.Helper()
	var events []task.Event
	for _, entry := range entries {
		data, err := json.Marshal(entry)
		must(j.t, err)
		j.next++
		events = append(events, task.Event{
			Task: j.task.ID, Generation: j.task.Generation, Source: task.FromAgent, Sequence: j.next, Kind: kind, At: time.Now(), Data: data,
		})
	}
	_, err := j.house.store.Report(context.WithoutCancel(j.t.Context()), store.RunReport{Task: j.task.ID, Generation: j.task.Generation, Events: events})
	must(j.t, err)
}

func entryWithText(text string) phase.Entry {
	return phase.Entry{Phase: task.Execution, Conversation: "execution", Message: &conversation.Entry{
		Kind: conversation.MessageEntry, Message: &llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Text: text}}},
	}}
}

func called(id, name, arguments, output string, failed bool) phase.Entry {
	return phase.Entry{Phase: task.Execution, Step: 1, Call: &llm.Call{ID: id, Name: name, Arguments: arguments},
		Result: &phase.CallResult{Text: output, Failed: failed}}
}

// run writes a journal with an entry of every kind, as the phases write them.
func (j *journalWriter) run() {
	must(j.t, j.house.store.SetPhase(j.t.Context(), j.task.ID, j.task.Generation, task.Execution))
	j.add(task.PhaseChanged, phase.Entry{Phase: task.Planning, Status: phase.PhaseActive}, phase.Entry{Phase: task.Planning, Status: phase.PhaseCompleted})
	plan := phase.Plan{Revision: 2, GoalUnderstanding: phase.Goal{Goal: "A gate that does not squeak"}}
	plan.ActionPlan.Actions = []phase.Action{{ID: "a1", What: "Oil the hinges", Done: true}, {ID: "a2", What: "Test the gate"}}
	j.add(task.Planned, phase.Entry{Plan: &plan})
	j.add(task.Prepared, phase.Entry{Setup: &phase.SetupEntry{
		Handover: environment.Handover{EnvironmentReady: true, SetupStatus: environment.Succeeded},
		Receipt: environment.Receipt{Environment: "go", Sandbox: "bubblewrap", Image: "golang:1.26", SetupCommands: []string{"go mod download"},
			Baseline: &environment.Baseline{Command: "go test ./...", Failing: []string{"TestGate"}}},
	}})
	j.add(task.PhaseChanged, phase.Entry{Phase: task.EnvironmentSetup, Status: phase.PhaseCompleted}, phase.Entry{Phase: task.Execution, Status: phase.PhaseActive})
	j.add(task.MessageSent, entryWithText("I look at the **hinges** first."))
	j.add(task.ToolCalled, phase.Entry{Phase: task.Execution, Step: 1, Call: &llm.Call{ID: "c1", Name: "shell", Arguments: `{"command":"go test ./..."}`}})
	j.add(task.ToolCalled, called("c1", "shell", `{"command":"go test ./..."}`, "\x1b[32mok\x1b[0m  gate\n\x1b[1;31mFAIL\x1b[0m hinge", true))
	j.add(task.ToolCalled, called("c2", "edit", `{"path":"gate.go"}`, "diff --git a/gate.go b/gate.go\n--- a/gate.go\n+++ b/gate.go\n@@ -1 +1 @@\n-squeak\n+silence\n", false))
	for i := range int64(12) {
		j.add(task.ModelUsed, phase.Entry{Usage: &phase.Usage{Model: "small", Scripted: true, Usage: llm.Usage{Input: 900 + 300*i, Output: 80}, Cost: llm.Money(1500 + 400*i)}})
	}
	j.add(task.Saved, phase.Entry{Step: 1, Commit: "0123abcd"})
	j.add(task.SignalTaken, phase.Entry{Step: 1, Signal: &phase.SignalEntry{Signal: task.SignalComments, Position: 2, Comments: []task.CommentEntry{
		{Comment: task.Comment{ID: "1", Author: "alice"}, Position: 1, Change: "new"}, {Comment: task.Comment{ID: "2", Author: "mallory"}, Position: 2, Change: "new", Refused: "no_write_access"},
	}}})
	j.add(task.NoteTaken, phase.Entry{Text: "Something for people."})
}

// The pages read what the phases write: every kind of entry shows on the page.
func TestTaskPageShowsTheJournal(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	one := h.runningTask(t, 1, "Fix the gate")
	h.journal(t, one).run()
	status, page := h.visitor(t, "vera").get("/tasks/" + string(one.ID))
	if status != 200 {
		t.Fatalf("the page answers %d", status)
	}
	for what, text := range map[string]string{
		"the plan":             "A gate that does not squeak",
		"a step that is done":  `<li class="done">Oil the hinges`,
		"the revision":         "Revision 2",
		"a phase":              `<h3 class="phase">Planning</h3>`,
		"a message":            "I look at the <strong>hinges</strong> first.",
		"an output in colours": `<span class="f2">ok</span>`,
		"both looks":           `<span class="t1 f1">FAIL</span>`,
		"a diff":               `<span class="plus">+silence`,
		"the receipt":          "bubblewrap",
		"the baseline":         "(1 failing)",
		"the ledger":           "alice",
		"a refused comment":    "Not included",
		"the lease":            "mill",
		"why it runs":          "An agent took the task",
		"the code of that":     "<code>claimed</code>",
		"what was saved":       "0123abcd",
		"a note":               "Something for people.",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not show %s: %q is missing", what, text)
		}
	}
	if phaseBar(page) != "Pre-planning=skipped Planning=completed Environment=completed Execution*=active" {
		t.Errorf("the phase bar says %q", phaseBar(page))
	}
	_, cost := h.visitor(t, "vera").get("/tasks/" + string(one.ID) + "?tab=cost")
	for what, text := range map[string]string{"the chart": `<rect class="tokens"`, "the cost": `<polyline class="cost"`, "that it was scripted": "The answers come from a script"} {
		if !strings.Contains(cost, text) {
			t.Errorf("the page does not show %s: %q is missing", what, text)
		}
	}
	if strings.Count(page, `data-call="1/c1"`) != 1 {
		t.Error("the beginning of a call that has ended is shown too")
	}
	if strings.Contains(page, "style=") || strings.Contains(page, "<script>") {
		t.Error("the page has styles or scripts of its own, which its policy forbids")
	}
}

// Whatever is in a journal, the page shows what it can.
func TestOddEntries(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "x")
	events := append(journaltest.Readable(), journaltest.Unreadable()...)
	for i := range events {
		events[i].Task, events[i].Sequence = one.ID, int64(i+1)
	}
	_, err := h.store.Append(t.Context(), events)
	must(t, err)
	vera := h.visitor(t, "vera")
	paths := []string{"", "?parts", "?tab=checks", "?tab=cost", "?tab=changes", "?tab=nothing", "?q=x", "?at=20", "?at=x", "/journal?before=100", "/journal?before=500"}
	last, err := h.store.LastPosition(t.Context(), one.ID)
	must(t, err)
	for position := range last {
		paths = append(paths, fmt.Sprintf("/entries/%d", position+1), fmt.Sprintf("/entries/%d?part", position+1))
	}
	for _, path := range paths {
		if status, page := vera.get("/tasks/" + string(one.ID) + path); status != 200 {
			t.Errorf("%s answers %d: %s", path, status, page)
		}
	}
	for _, path := range []string{"/journal", "/journal?before=0", "/journal?before=x"} {
		if status, _ := vera.get("/tasks/" + string(one.ID) + path); status != 422 {
			t.Errorf("%s answers %d", path, status)
		}
	}
}

// A journal whose old entries were removed is shown whole, and the page asks for nothing before it.
func TestJournalThatWasTrimmed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.runningTask(t, 1, "x")
	events := make([]task.Event, 3*journalPage)
	for i := range events {
		events[i] = task.Event{Task: one.ID, Generation: one.Generation, Source: task.FromAgent, Sequence: int64(i + 1), Kind: task.NoteTaken, At: time.Now(), Data: []byte(`{"text": "a note"}`)}
	}
	_, err := h.store.Append(t.Context(), events)
	must(t, err)
	_, err = h.store.Move(t.Context(), store.Change{Task: one.ID, Generation: one.Generation, Trigger: task.Finished, Reason: task.ReasonCompleted})
	must(t, err)
	vera := h.visitor(t, "vera")
	if _, page := vera.get("/tasks/" + string(one.ID)); strings.Contains(page, `data-earliest="1"`) {
		t.Error("all of a long journal is on the page")
	}
	for more := true; more; {
		_, more, err = h.store.Prune(t.Context(), store.KeptJournals, time.Now().Add(time.Hour), 1000)
		must(t, err)
	}
	_, page := vera.get("/tasks/" + string(one.ID))
	if !strings.Contains(page, `data-earliest="1"`) || strings.Contains(page, "a note") {
		t.Errorf("the page is\n%s", page)
	}
	_, steps, _ := strings.Cut(page, `id="journal"`)
	steps, _, _ = strings.Cut(steps, "<aside>")
	if !strings.Contains(steps, "<code>claimed</code>") {
		t.Error("the first moves are not in the journal")
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"plain <b>":                          "plain &lt;b&gt;",
		"\x1b[31mred\x1b[0m":                 `<span class="f1">red</span>`,
		"\x1b[1m\x1b[32mx\x1b[39my":          `<span class="t1 f2">x</span><span class="t1">y</span>`,
		"\x1b[38;5;196mx\x1b[m":              "x",
		"\x1b]8;;https://evil.example\x07go": "go",
		"\x1b[2J\x1b[Hcleared":               "cleared",
		"a\rb\x08c\x00":                      "abc",
		"\x1b[":                              "",
		"\x1b[31m":                           "",
		"":                                   "",
	} {
		var got strings.Builder
		must(t, terminal(output).Render(t.Context(), &got))
		if got.String() != want {
			t.Errorf("%q becomes %q, want %q", output, got.String(), want)
		}
	}
	var long strings.Builder
	must(t, terminal(strings.Repeat("é", maxOutput)).Render(t.Context(), &long))
	if long.Len() > maxOutput+100 || !strings.Contains(long.String(), "⋯") {
		t.Errorf("a long output has %d bytes", long.Len())
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	got := []string{money(1_500_000), money(1234), money(0), count(1234), count(12_345), count(1_460_000)}
	if want := []string{"1.50", "0.0012", "0.00", "1234", "12.3k", "1.46M"}; !slices.Equal(got, want) {
		t.Errorf("figures are %q, want %q", got, want)
	}
}

var runOfX = regexp.MustCompile(`x{60,}`)

// The pages show every kind of entry as they did before.
func TestPagesShowEveryKind(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *Options) { o.Now = func() time.Time { return journaltest.Began.Add(time.Hour) } })
	one := h.runningTask(t, 1, "x")
	last, err := h.store.LastPosition(t.Context(), one.ID)
	must(t, err)
	events := journaltest.Readable()
	for i := range events {
		events[i].Task = one.ID
	}
	_, err = h.store.Append(t.Context(), events)
	must(t, err)
	_, page := h.visitor(t, "vera").get(fmt.Sprintf("/tasks/%s/journal?before=%d", one.ID, last+int64(len(events))+1))
	_, page, _ = strings.Cut(page, `entry-request"`) // what is before has the time of the test
	page = strings.NewReplacer("><", ">\n<", "\x00", "NUL", string(one.ID), "TASK").Replace(runOfX.ReplaceAllString(page, "x..x"))
	testkit.Golden(t, "testdata/journal.html", page)
}

// asData is something as JSON.
func asData(of any) json.RawMessage {
	data, err := json.Marshal(of)
	if err != nil {
		panic(err) // it has only what can be written
	}
	return data
}
