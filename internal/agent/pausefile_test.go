package agent_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/wire"
)

// A pause file that appears before a run has begun has the task handed back: nothing here
// would let it go on later. The server is told the reason.
func TestPauseFileBeforeTheRun(t *testing.T) {
	t.Parallel()
	goesOn := assignment()
	goesOn.Resume = &wire.Resume{Generation: 2}
	server := newHouse(t, goesOn)
	proxy := testkit.Faults(t, server.URL)
	s := newShop(t, proxy.URL, busy...)
	files, err := contexts.Open(t.TempDir(), contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Contexts, s.PauseFile = files, filepath.Join(t.TempDir(), "pause_signal")
	proxy.Next("", "/journal", func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if err := os.WriteFile(s.PauseFile, nil, 0o600); err != nil {
			t.Error(err)
		}
		testkit.Hang(w, r, forward)
	})
	closing := s.open(t)
	server.await(t, "a result", func() bool { return len(server.results) == 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if result := server.results[0]; result.Outcome != "returned" || result.Reason != "agent_paused" {
		t.Errorf("the result is %+v", result)
	}
}
