package agent_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// The files of a run whose task was stopped while it was paused are put away; those
// of one that may go on stay, also when the server cannot be asked.
func TestFilesOfRunsThatAreOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files, err := contexts.Open(dir, contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var runs []string
	for _, id := range []task.ID{"stopped", "waits"} {
		journal, err := files.Begin(t.Context(), phase.Work{Task: id, Generation: 3}, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := journal.Pause(task.ReasonPauseRequested); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, journal.ID())
	}
	up := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked wire.RunsAsked
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.URL.Path != "/v1/tasks/over" || len(asked.Runs) != 2 {
			t.Errorf("%s is asked %+v, %v", r.URL.Path, asked, err)
		}
		if !up {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		answer(w, wire.RunsOver{Over: []wire.RunOver{{RunRef: wire.RunRef{TaskID: "stopped", Generation: 3}, State: "stopped", Reason: string(task.ReasonUnassigned)}}})
	}))
	t.Cleanup(server.Close)
	a := &agent.Agent{Client: &wire.Client{Server: server.URL, HTTP: server.Client()}, Contexts: files, Log: slog.New(slog.DiscardHandler)}
	if err := a.MoveEndedContexts(t.Context()); err == nil {
		t.Error("nobody says that the server cannot be asked")
	}
	up = true
	if err := a.MoveEndedContexts(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, folder := range []string{contexts.Completed, contexts.Paused} {
		if _, err := os.Stat(filepath.Join(dir, folder, runs[i])); err != nil {
			t.Error(err)
		}
	}
}

// Files that cannot be moved stay whole where they are, the server is told of it once, and
// they are moved when that is possible, also after a restart of the agent.
func TestFilesThatCannotBeMoved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end    func(*contexts.Journal) error
		folder string
		again  bool // the agent starts again in between
	}{
		"stopped":                  {func(j *contexts.Journal) error { return j.End(task.Stopped, task.ReasonUnassigned) }, contexts.Completed, false},
		"paused":                   {func(j *contexts.Journal) error { return j.Pause(task.ReasonPauseRequested) }, contexts.Paused, false},
		"stopped, after a restart": {func(j *contexts.Journal) error { return j.End(task.Stopped, task.ReasonUnassigned) }, contexts.Completed, true},
		"paused, after a restart":  {func(j *contexts.Journal) error { return j.Pause(task.ReasonPauseRequested) }, contexts.Paused, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files := mustOpen(t, dir)
			journal, err := files.Begin(t.Context(), phase.Work{Task: "mine", Generation: 3}, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := journal.Append(t.Context(), task.NoteTaken, phase.Entry{Text: "said"}); err != nil {
				t.Fatal(err)
			}
			inTheWay := filepath.Join(dir, test.folder, journal.ID())
			if err := os.Mkdir(inTheWay, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := test.end(journal); task.CodeOf(err) != task.DataDir {
				t.Fatalf("the move ended with %v", err)
			}
			if test.again {
				files = mustOpen(t, dir)
			}
			var told []wire.RunUnmoved
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var asked wire.RunsAsked
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
					t.Error(err)
				}
				told = append(told, asked.Unmoved...)
				var over []wire.RunOver
				if test.folder == contexts.Completed {
					for _, run := range asked.Runs {
						over = append(over, wire.RunOver{RunRef: run, State: "stopped", Reason: string(task.ReasonUnassigned)})
					}
				}
				answer(w, wire.RunsOver{Over: over})
			}))
			t.Cleanup(server.Close)
			a := &agent.Agent{Client: &wire.Client{Server: server.URL, HTTP: server.Client()}, Contexts: files, Log: slog.New(slog.DiscardHandler)}
			for range 3 {
				if err := a.MoveEndedContexts(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if len(told) != 1 || told[0].TaskID != "mine" || told[0].Generation != 3 || told[0].Folder != test.folder || told[0].Cause == "" {
				t.Errorf("the server is told %+v", told)
			}
			said, err := os.ReadFile(filepath.Join(dir, contexts.Running, journal.ID(), "journal.jsonl"))
			if err != nil || len(said) == 0 {
				t.Fatalf("the files are not where they were: %v", err)
			}
			if err := os.Remove(inTheWay); err != nil {
				t.Fatal(err)
			}
			if err := a.MoveEndedContexts(t.Context()); err != nil {
				t.Error(err)
			}
			if now, err := os.ReadFile(filepath.Join(inTheWay, "journal.jsonl")); err != nil || !bytes.Equal(now, said) {
				t.Errorf("the journal is %q, %v; want %q", now, err, said)
			}
		})
	}
}

func mustOpen(t *testing.T, dir string) *contexts.Contexts {
	t.Helper()
	files, err := contexts.Open(dir, contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
