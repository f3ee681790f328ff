package agent_test

import (
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
	if err := a.PutAway(t.Context()); err == nil {
		t.Error("nobody says that the server cannot be asked")
	}
	up = true
	if err := a.PutAway(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, folder := range []string{contexts.Completed, contexts.Paused} {
		if _, err := os.Stat(filepath.Join(dir, folder, runs[i])); err != nil {
			t.Error(err)
		}
	}
}
