package contexts_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/task"
)

// The files of runs that ended long ago go, whole. Those of runs that are paused or running,
// however old, and of runs that ended lately stay.
func TestOldRunsGo(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := open(t, dir, contexts.Options{Now: func() time.Time { return now }})
	begin := func(generation int64) *contexts.Journal {
		j, err := c.Begin(t.Context(), work(generation, nil), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		note(t, j, "one")
		return j
	}
	end := func(j *contexts.Journal) {
		if err := j.Pause(task.ReasonPauseRequested); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(j.ID(), task.Stopped, task.ReasonUnassigned); err != nil {
			t.Fatal(err)
		}
	}
	old, young, paused, runs := begin(1), begin(2), begin(3), begin(4)
	end(old)
	if err := paused.Pause(task.ReasonPauseRequested); err != nil {
		t.Fatal(err)
	}
	now = now.AddDate(0, 2, 0)
	end(young)
	half := filepath.Join(dir, contexts.Completed, ".removing-"+runs.ID())
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if count, err := c.Prune(t.Context(), now.AddDate(0, -1, 0)); err != nil || count != want {
			t.Fatalf("%d runs went, %v, want %d", count, err, want)
		}
	}
	for folder, want := range map[string]string{contexts.Completed: young.ID(), contexts.Paused: paused.ID(), contexts.Running: runs.ID()} {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if err != nil || len(entries) != 1 || entries[0].Name() != want {
			t.Errorf("%s has %v, %v", folder, entries, err)
		}
	}
}
