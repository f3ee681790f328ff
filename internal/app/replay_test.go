package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// recorded makes a run that is over in a data directory.
func recorded(t *testing.T, data string) string {
	t.Helper()
	c, err := contexts.Open(filepath.Join(data, "contexts"), contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j, err := c.Begin(t.Context(), phase.Work{
		Task: "task1", Generation: 1, Type: task.Development, Role: "BACKENDCODER", Title: "Fix \x1b[31mit",
		Item: task.Key{Forge: task.Board, Repository: "o/n", Kind: task.Issue, Number: 3},
	}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer := llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Text: "I look."}, {Call: &llm.Call{ID: "1", Name: "run", Arguments: `{"line":"ls"}`}}}}
	for _, e := range []struct {
		kind  task.EventKind
		entry phase.Entry
	}{
		{task.PhaseChanged, phase.Entry{Phase: task.EnvironmentSetup, Status: phase.PhaseActive}},
		{task.Planned, phase.Entry{Plan: &phase.Plan{Revision: 1, GoalUnderstanding: phase.Goal{Goal: "fix"}, ActionPlan: phase.Actions{Actions: []phase.Action{{ID: "a1", What: "look", Done: true}}}}}},
		{task.MessageSent, phase.Entry{Conversation: "execution", Message: &conversation.Entry{Kind: conversation.MessageEntry, Message: &answer}}},
		{task.ModelUsed, phase.Entry{Step: 1, Usage: &phase.Usage{Model: "demo", Scripted: true, Usage: llm.Usage{Input: 10, Output: 2}, Cost: 1500}}},
		{task.ToolCalled, phase.Entry{Call: &llm.Call{ID: "1", Name: "run", Arguments: `{"line":"ls"}`}, Result: &phase.CallResult{Text: "bad\x1b]0;x\x07\n" + strings.Repeat("line\n", 40), Failed: true}}},
		{task.SignalTaken, phase.Entry{Signal: &phase.SignalEntry{Signal: task.SignalComments, Comments: []task.CommentEntry{{Comment: task.Comment{ID: "7", Author: "ann"}, Change: "new", Refused: "no write access"}}}}},
		{task.Saved, phase.Entry{Commit: "abc123"}},
		{task.NoteTaken, phase.Entry{Text: "That is all."}},
	} {
		if err := j.Append(t.Context(), e.kind, e.entry); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.End(task.Stopped, task.ReasonUnassigned); err != nil {
		t.Fatal(err)
	}
	return j.ID()
}

func replayed(t *testing.T, input string, args ...string) (output string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := site.Program{Stdin: strings.NewReader(input), Stdout: &stdout, Stderr: &stderr, Now: time.Now}
	code = run(t.Context(), p, append([]string{"replay"}, args...))
	return stdout.String() + stderr.String(), code
}

func TestReplay(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	id := recorded(t, data)
	output, code := replayed(t, "", id[:8], "--data", data)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, output)
	}
	for _, want := range []string{
		id, "board:o/n#3", "BACKENDCODER", "Environment Setup: active", "plan 1: fix", "[x] a1 look", "I look.", `wants run {"line":"ls"}`,
		"demo (scripted), 10 tokens in, 2 out, cost 0.0015", "result of run (failed)", "more lines (--full)", "comment 7 by ann (new), not included: no write access",
		"commit abc123", "That is all.", "8 entries; stopped: the bot was unassigned",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is missing in:\n%s", want, output)
		}
	}
	if strings.ContainsAny(output, "\x1b\x07") {
		t.Error("what is shown commands the terminal")
	}
	if full, _ := replayed(t, "", id, "--data", data, "--full"); strings.Count(full, "line\n") != 40 {
		t.Errorf("--full shows %d of 40 lines", strings.Count(full, "line\n"))
	}
}

func TestReplayStepByStep(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	id := recorded(t, data)
	for input, want := range map[string]int{"\n\nq\n": 3, "\na\n": 8, "": 8, "q\n": 1} {
		output, code := replayed(t, input, id, "--data", data, "--step")
		shown := 0
		for line := range strings.SplitSeq(output, "\n") {
			if len(line) > 20 && strings.TrimSpace(line[:5]) != "" && strings.HasPrefix(line, "    ") {
				shown++
			}
		}
		if code != 0 || shown != want {
			t.Errorf("after %q: %d entries, want %d:\n%s", input, shown, want, output)
		}
	}
}

// Entries have the shape that they have in the API, wherever they come from.
func TestReplayAsJSON(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	id := recorded(t, data)
	output, _ := replayed(t, "", id, "--data", data, "--json")
	journal, err := os.ReadFile(filepath.Join(data, "contexts", "completed", id, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	shown, kept := strings.Split(strings.TrimSpace(output), "\n"), strings.Split(strings.TrimSpace(string(journal)), "\n")
	if len(shown) != 8 || len(kept) != 8 {
		t.Fatalf("%d entries of %d:\n%s", len(shown), len(kept), output)
	}
	for i := range kept {
		var line contexts.Line
		var event wire.Event
		if err := errors.Join(json.Unmarshal([]byte(kept[i]), &line), json.Unmarshal([]byte(shown[i]), &event)); err != nil {
			t.Fatal(err)
		}
		want := wire.Event{Position: line.Sequence, Generation: line.Generation, Source: string(task.FromAgent), Kind: string(line.Kind), At: line.At, Data: line.Data}
		if diff := cmp.Diff(want, event); diff != "" {
			t.Errorf("entry %d is another than in the journal:\n%s", i+1, diff)
		}
	}
}

func TestReplayOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	recorded(t, data)
	for _, id := range []string{"0000-nothing", "", "abc", "../../etc"} {
		if output, code := replayed(t, "", id, "--data", data); code != task.NotFound.Info().Exit {
			t.Errorf("%q: exit %d: %s", id, code, output)
		}
	}
}
