package contexts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// TestFollowedEntries: an entry that another one follows reaches the server with that one, in
// order, and is not lost if that one never comes.
func TestFollowedEntries(t *testing.T) {
	t.Parallel()
	s := &server{}
	kept := open(t, t.TempDir(), contexts.Options{})
	journal, err := kept.Begin(t.Context(), work(1, nil), 1, s.as(1))
	if err != nil {
		t.Fatal(err)
	}
	write := func(kind task.EventKind, text string, followed bool) {
		if err := journal.Append(t.Context(), kind, phase.Entry{Text: text, Followed: followed}); err != nil {
			t.Fatal(err)
		}
	}
	write(task.ModelUsed, "first", true)
	if len(s.events) != 0 {
		t.Errorf("the server has %d entries that are not durable here", len(s.events))
	}
	write(task.NoteTaken, "second", false)
	if len(s.events) != 2 || s.events[0].Kind != task.ModelUsed || s.events[1].Kind != task.NoteTaken {
		t.Errorf("the server has %+v", s.events)
	}
	write(task.ModelUsed, "third", true)
	if left := journal.Pass(t.Context()); left != 0 || len(s.events) != 3 {
		t.Errorf("%d entries wait and the server has %d", left, len(s.events))
	}
	write(task.ModelUsed, "fourth", true)
	if err := journal.Leave(); err != nil {
		t.Fatal(err)
	}
	again, err := kept.Begin(t.Context(), work(1, s.events), 1, s.as(1))
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Past()) != 4 {
		t.Errorf("%d entries are left", len(again.Past()))
	}
	if left := again.Pass(t.Context()); left != 0 || len(s.events) != 4 {
		t.Errorf("%d entries wait and the server has %d", left, len(s.events))
	}
	if err := again.Leave(); err != nil {
		t.Fatal(err)
	}
}

// TestTheStateAtTurningPoints: task_state.json is replaced when the branch is finished, and not
// with each save before, which it shows then too.
func TestTheStateAtTurningPoints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	journal, err := open(t, dir, contexts.Options{}).Begin(t.Context(), work(1, nil), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, contexts.Running, journal.ID(), "task_state.json")
	for _, one := range []struct {
		commit, status string
		shown          bool
	}{{"aaa", "", false}, {"bbb", phase.SavedBranch, true}, {"ccc", "", false}} {
		if err := journal.Append(t.Context(), task.Saved, phase.Entry{Commit: one.commit, Status: one.status}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(text), one.commit) != one.shown {
			t.Errorf("after the commit %s the file has %s, %v", one.commit, text, err)
		}
	}
	if err := journal.Leave(); err != nil {
		t.Fatal(err)
	}
}
