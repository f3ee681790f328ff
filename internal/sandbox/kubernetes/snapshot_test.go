package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox/kubernetes"
)

// claimServer is an API server that has the records of snapshots, and a folder as the volume
// claim. Of pods it runs the command when they are made.
type claimServer struct {
	claim   string
	full    bool // no pod can be made
	now     time.Time
	mutex   sync.Mutex
	records map[string]string
}

func (s *claimServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case path.Base(r.URL.Path) == "toryo-snapshots":
		var patch struct {
			Data map[string]*string `json:"data"`
		}
		if r.Method == http.MethodPatch && json.NewDecoder(r.Body).Decode(&patch) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for key, value := range patch.Data {
			if delete(s.records, key); value != nil {
				s.records[key] = *value
			}
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"data": s.records}); err != nil {
			return // the client is gone
		}
	case r.Method == http.MethodPost && s.full:
		refuse(w, http.StatusForbidden, quota)
	case r.Method == http.MethodPost:
		s.runPod(w, r)
	default:
		_, _ = w.Write([]byte("{}")) // the client may be gone
	}
}

func (s *claimServer) runPod(w http.ResponseWriter, r *http.Request) {
	var made struct {
		Spec struct {
			Containers []struct {
				Command []string `json:"command"`
			} `json:"containers"`
		} `json:"spec"`
	}
	if json.NewDecoder(r.Body).Decode(&made) != nil || len(made.Spec.Containers) != 1 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	command := made.Spec.Containers[0].Command
	if at := slices.Index(command, "/.toryo-shelf"); at >= 0 { // where pods have the claim
		command[at] = s.claim
	}
	phase := "Succeeded"
	if exec.CommandContext(r.Context(), command[0], command[1:]...).Run() != nil {
		phase = "Failed"
	}
	_, _ = fmt.Fprintf(w, `{"metadata": {"name": "x", "resourceVersion": "1"}, "status": {"phase": %q}}`, phase) // the client may be gone
}

func (s *claimServer) engine(t *testing.T) *kubernetes.Engine {
	t.Helper()
	s.claim, s.records = t.TempDir(), map[string]string{}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	return newEngine(t, kubernetes.Config{Kubeconfig: kubeconfigFor(t, server.URL, "x"), NewGate: noGate, Claim: "snapshots", Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return s.now }})
}

// keep makes a snapshot in a folder of the claim, long after the one before.
func (s *claimServer) keep(t *testing.T, engine *kubernetes.Engine, key, folder string) {
	t.Helper()
	s.now = s.now.Add(time.Hour)
	s.keepNow(t, engine, key, folder)
}

func (s *claimServer) keepNow(t *testing.T, engine *kubernetes.Engine, key, folder string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(s.claim, folder), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := engine.Replace(t.Context(), key, folder); err != nil {
		t.Fatal(err)
	}
	if now, err := engine.Folder(t.Context(), key); now != folder || err != nil {
		t.Errorf("%s is in the folder %q, %v", key, now, err)
	}
}

func (s *claimServer) has(t *testing.T, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(s.claim)
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, entry := range entries {
		folders = append(folders, entry.Name())
	}
	if !slices.Equal(folders, want) {
		t.Errorf("the claim has %q, and not %q", folders, want)
	}
}

// The claim has a snapshot once, however often it is made, and the others stay.
func TestASnapshotThatIsMadeAgainTakesTheClaimOnce(t *testing.T) {
	t.Parallel()
	s := &claimServer{}
	engine := s.engine(t)
	s.keep(t, engine, "env-0002", "toryo-other")
	s.keep(t, engine, "env-0001", "toryo-first")
	s.keep(t, engine, "env-0001", "toryo-second")
	s.has(t, "toryo-other", "toryo-second")
	s.keep(t, engine, "env-0001", "toryo-second") // by the same pod
	s.has(t, "toryo-other", "toryo-second")
	if err := engine.RemoveSnapshot(t.Context(), "env-0001"); err != nil {
		t.Fatal(err)
	}
	s.has(t, "toryo-other")
}

// A file that was just used stays for now: a pod of another agent may be about to read it.
func TestTheFileOfASnapshotInUseStays(t *testing.T) {
	t.Parallel()
	s := &claimServer{}
	engine := s.engine(t)
	s.keep(t, engine, "env-0001", "toryo-first")
	s.keepNow(t, engine, "env-0001", "toryo-second")
	s.has(t, "toryo-first", "toryo-second")
}

// Where there is no room to remove the older file, the snapshot is kept all the same.
func TestASnapshotIsKeptAlsoWhenTheOlderFileStays(t *testing.T) {
	t.Parallel()
	s := &claimServer{full: true}
	engine := s.engine(t)
	s.keep(t, engine, "env-0001", "toryo-first")
	s.keep(t, engine, "env-0001", "toryo-second")
	s.has(t, "toryo-first", "toryo-second")
}

// A sandbox that was started from what is replaced or removed meanwhile does not bring its record
// back, whose file is gone.
func TestTheUseOfAnOlderSnapshotIsNotNoted(t *testing.T) {
	t.Parallel()
	s := &claimServer{}
	engine := s.engine(t)
	s.keep(t, engine, "env-0001", "toryo-first")
	s.keep(t, engine, "env-0001", "toryo-second")
	engine.NoteUse(t.Context(), "env-0001", "toryo-first")
	if now, err := engine.Folder(t.Context(), "env-0001"); now != "toryo-second" || err != nil {
		t.Errorf("it is in the folder %q, %v", now, err)
	}
	if err := engine.RemoveSnapshot(t.Context(), "env-0001"); err != nil {
		t.Fatal(err)
	}
	engine.NoteUse(t.Context(), "env-0001", "toryo-second")
	if now, err := engine.Folder(t.Context(), "env-0001"); now != "" || err != nil {
		t.Errorf("what was removed is in the folder %q, %v", now, err)
	}
}
