package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/kubernetes"
	"github.com/toryo-dev/toryo/internal/task"
)

// podServer is an API server that has pods and runs none. Posted is called for a pod that is to be
// made, with the mutex held; it answers itself, or returns true to have it made.
type podServer struct {
	mutex  sync.Mutex
	pods   []string
	posted func(w http.ResponseWriter, r *http.Request, name string, warm bool) bool
	fail   chan struct{} // closed when all pods have failed
}

func (s *podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("watch") {
		select {
		case <-r.Context().Done():
		case <-s.fail: // the client looks anew
		}
		return
	}
	body, _ := io.ReadAll(r.Body) // until then it is not noticed that the client leaves
	s.mutex.Lock()
	defer s.mutex.Unlock()
	name := path.Base(r.URL.Path)
	switch r.Method {
	case http.MethodPost:
		var made struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(body, &made); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		name = made.Metadata.Name
		if !s.posted(w, r, name, made.Metadata.Labels["toryo.dev/warm"] != "") {
			return
		}
		s.pods = append(s.pods, name)
	case http.MethodDelete:
		s.pods = slices.DeleteFunc(s.pods, func(one string) bool { return one == name })
		_, _ = w.Write([]byte("{}")) // the client may be gone
		return
	}
	if !slices.Contains(s.pods, name) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	phase := "Pending"
	select {
	case <-s.fail:
		phase = "Failed"
	default:
	}
	_, _ = fmt.Fprintf(w, `{"metadata": {"name": %q, "resourceVersion": "1"}, "status": {"phase": %q}}`, name, phase) // see above
}

func (s *podServer) engine(t *testing.T, warm int) *kubernetes.Engine {
	t.Helper()
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	return newEngine(t, kubernetes.Config{Kubeconfig: kubeconfigFor(t, server.URL, "x"), NewGate: noGate, Warm: warm, Log: slog.New(slog.DiscardHandler)})
}

// left are the pods that are there.
func (s *podServer) left() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.pods)
}

func refuse(w http.ResponseWriter, status int, message string) bool {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"kind": "Status", "message": %q, "code": %d}`, message, status) // the client may be gone
	return false
}

const quota = `pods "x" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1`

// A run that is stopped while its pod is made leaves no pod behind, although nobody has read the answer.
func TestAPodThatNobodyWaitsForIsRemoved(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &podServer{fail: make(chan struct{})}
	s.posted = func(_ http.ResponseWriter, r *http.Request, name string, _ bool) bool {
		s.pods = append(s.pods, name)
		cancel()
		<-r.Context().Done()
		return false
	}
	_, err := s.engine(t, 0).Start(ctx, sandbox.Spec{Owner: "x", Image: image, Workspace: t.TempDir()})
	if left := s.left(); err == nil || len(left) != 0 {
		t.Errorf("after %v there are %v", err, left)
	}
}

// making is an engine that makes a pod to be kept ready, of which the channel tells, and what a sandbox
// of the same kind is asked for with. End ends the keeping.
func (s *podServer) making(t *testing.T, begun <-chan struct{}) (engine *kubernetes.Engine, spec sandbox.Spec, end func()) {
	t.Helper()
	engine = s.engine(t, 1)
	end = keep(t, engine, "keeper")
	spec = sandbox.Spec{Owner: "x", Image: image, Workspace: t.TempDir()}
	if err := engine.Expect(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	<-begun
	return engine, spec, end
}

// So it is if the answer was lost, and what was asked after that was refused.
func TestAPodWhoseAnswerWasLostIsRemoved(t *testing.T) {
	t.Parallel()
	s := &podServer{fail: make(chan struct{})}
	making := make(chan struct{})
	var makes sync.Once
	asked := 0
	s.posted = func(w http.ResponseWriter, _ *http.Request, name string, warm bool) bool {
		if warm { // it may give way, so that the quota is asked again
			makes.Do(func() { close(making) })
			return true
		}
		switch asked++; asked {
		case 1:
			s.pods = append(s.pods, name)
			panic(http.ErrAbortHandler) // the connection is cut
		case 2:
			return refuse(w, http.StatusForbidden, quota)
		}
		return refuse(w, http.StatusUnprocessableEntity, "no more")
	}
	engine, spec, end := s.making(t, making)
	_, err := engine.Start(t.Context(), spec)
	end()
	if left := s.left(); task.CodeOf(err) != task.Invalid || asked != 3 || len(left) != 0 {
		t.Errorf("asked %d times; after %v there are %v", asked, err, left)
	}
}

// A pod that is being made to be kept ready gives way too. When it is gone, the quota takes a while to
// notice, as it does with those that were ready.
func TestAPodInTheMakingGivesWay(t *testing.T) {
	t.Parallel()
	s := &podServer{fail: make(chan struct{})}
	making := make(chan struct{})
	var makes, fails sync.Once
	unnoticed, accepted := 3, false
	s.posted = func(w http.ResponseWriter, _ *http.Request, _ string, warm bool) bool {
		if warm {
			makes.Do(func() { close(making) })
			return true
		}
		if len(s.pods) > 0 {
			fails.Do(func() { close(s.fail) })
			return refuse(w, http.StatusForbidden, quota)
		}
		if unnoticed--; unnoticed >= 0 {
			return refuse(w, http.StatusForbidden, quota)
		}
		accepted = true
		return true
	}
	engine, spec, end := s.making(t, making)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := engine.Start(ctx, spec) // no pod of this server runs
	end()
	if left := s.left(); !accepted || task.CodeOf(err) == task.TooMany || len(left) != 0 {
		t.Errorf("the pod of the sandbox was made: %t; %v; there are %v", accepted, err, left)
	}
}
