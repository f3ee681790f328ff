package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// house is a server that speaks the agent's protocol over one task at a time, in
// memory. It is for what the real one cannot be made to do at will; that the real
// one is spoken to rightly is shown in package app.
type house struct {
	*httptest.Server
	every time.Duration // how often it wants to hear of the agent

	mutex      sync.Mutex
	queue      []wire.Assignment
	generation int64 // that is held; 0 if none
	assigned   wire.Assignment
	entries    []wire.Entry
	signals    wire.Signals
	said       []wire.NewComment
	progress   []string
	pulls      []wire.OpenPull
	withhold   []task.Finding // what is found in the work
	results    []wire.Result
	renewals   int
	conditions []wire.Condition
	older      bool     // it does not know what was added to results
	down       bool     // its database is
	refused    int      // requests while it was
	asked      []string // the bodies of requests for a task
	changed    chan struct{}
}

func newHouse(t *testing.T, queue ...wire.Assignment) *house {
	t.Helper()
	h := &house{queue: queue, every: 5 * time.Second, changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/me", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, wire.Me{Name: "a", Role: "agent", Version: "v"})
	})
	mux.HandleFunc("PUT /v1/agents/me", func(w http.ResponseWriter, r *http.Request) {
		var condition wire.Condition
		_ = json.NewDecoder(r.Body).Decode(&condition)
		h.set(func() { h.conditions = append(h.conditions, condition) })
		answer(w, nil)
	})
	mux.HandleFunc("POST /v1/tasks/request", h.request)
	held := func(pattern string, do func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			result, err := h.checked(r, do)
			if err != nil {
				problem(w, err)
				return
			}
			answer(w, result)
		})
	}
	held("POST /v1/tasks/{id}/heartbeat", h.renew)
	held("POST /v1/tasks/{id}/events", h.report)
	held("GET /v1/tasks/{id}/journal", func(*http.Request) (any, error) { return wire.Events{}, nil })
	held("GET /v1/tasks/{id}/signals", h.wait)
	held("POST /v1/tasks/{id}/progress", decoded(h, func(p wire.Progress) (any, error) { h.progress = append(h.progress, p.Text); return nil, nil }))
	held("POST /v1/tasks/{id}/comments", decoded(h, func(s wire.NewComment) (any, error) { h.said = append(h.said, s); return nil, nil }))
	held("POST /v1/tasks/{id}/pull", decoded(h, func(p wire.OpenPull) (any, error) {
		if h.signals.Stop != nil {
			return nil, task.Errorf(task.Conflict, "the task is to stop")
		}
		h.pulls = append(h.pulls, p)
		if len(h.withhold) > 0 {
			if !p.Again {
				return wire.Pulled{Withheld: true, Findings: h.withhold}, nil
			}
			if h.withhold[0].Blocks() {
				return nil, task.Errorf(task.Unsafe, "the work is not published: %s", h.withhold[0].Place())
			}
		}
		return wire.Pulled{Number: 7, URL: "http://board/7", Opened: len(h.pulls) == 1}, nil
	}))
	held("POST /v1/tasks/{id}/result", decoded(h, func(r wire.Result) (any, error) {
		if h.generation == 0 {
			return nil, nil // it has ended so already
		}
		if h.signals.Stop != nil && r.Outcome == "done" {
			return nil, task.Errorf(task.Conflict, "the task is to stop")
		}
		if h.older && r.Detail+r.Hint != "" {
			return nil, task.Errorf(task.Invalid, "unexpected property")
		}
		h.results = append(h.results, r)
		h.generation = 0
		return nil, nil
	}))
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h
}

func answer(w http.ResponseWriter, body any) {
	if body == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // the test sees what is missing
}

func problem(w http.ResponseWriter, err error) {
	p := wire.ProblemOf(err)
	w.Header().Set("Content-Type", wire.ProblemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) //nolint:errchkjson // the test sees what is missing
}

// change wakes those who wait. The mutex is held.
func (h *house) change() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// set changes something and wakes those who wait.
func (h *house) set(change func()) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	change()
	h.change()
}

// await waits until something is so.
func (h *house) await(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for {
		h.mutex.Lock()
		found, changed := so(), h.changed
		h.mutex.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s did not happen", what)
		}
	}
}

// checked lets only the holder of the lease through.
func (h *house) checked(r *http.Request, do func(*http.Request) (any, error)) (any, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	holds := r.Header.Get("Authorization") == "Bearer "+leaseToken(h.assigned.TaskID, h.generation)
	again := strings.HasSuffix(r.URL.Path, "/result") && h.generation == 0 && r.Header.Get("Authorization") == "Bearer "+h.assigned.Lease.Token
	if !holds && !again || r.PathValue("id") != h.assigned.TaskID {
		return nil, task.Errorf(task.LeaseLost, "lease lost")
	}
	defer h.change()
	if h.down {
		h.refused++
		return nil, task.Errorf(task.DatabaseDown, "the disk is full")
	}
	return do(r)
}

func leaseToken(id string, generation int64) string {
	return fmt.Sprintf("lease.%s.%d", id, generation)
}

func decoded[Body any](_ *house, do func(Body) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var body Body
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, task.Wrap(task.Invalid, err, "not JSON")
		}
		return do(body)
	}
}

func (h *house) request(w http.ResponseWriter, r *http.Request) {
	var body json.RawMessage
	_ = json.NewDecoder(r.Body).Decode(&body)
	h.mutex.Lock()
	h.asked = append(h.asked, string(body))
	h.change()
	for len(h.queue) == 0 || h.generation != 0 {
		changed := h.changed
		h.mutex.Unlock()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
		h.mutex.Lock()
	}
	defer h.mutex.Unlock()
	h.assigned, h.queue = h.queue[0], h.queue[1:]
	h.generation = h.assigned.Generation
	h.assigned.Lease = wire.Lease{Token: leaseToken(h.assigned.TaskID, h.generation), Every: h.every.Milliseconds()}
	h.change()
	answer(w, h.assigned)
}

// soFar is what the agent has sent until now. It may send more meanwhile.
func (h *house) soFar() (results []wire.Result, conditions []wire.Condition, said []wire.NewComment) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.results), slices.Clone(h.conditions), slices.Clone(h.said)
}

// firstAsked is the first request for a task. Others may come meanwhile.
func (h *house) firstAsked() string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.asked[0]
}

func (h *house) renew(*http.Request) (any, error) {
	h.renewals++
	return wire.Heartbeat{}, nil
}

// report stores entries in order, each once.
func (h *house) report(r *http.Request) (any, error) {
	var report wire.Report
	if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
		return nil, task.Wrap(task.Invalid, err, "not JSON")
	}
	for _, entry := range report.Entries {
		if entry.Sequence == int64(len(h.entries))+1 {
			h.entries = append(h.entries, entry)
		}
	}
	return wire.Reported{Acknowledged: int64(len(h.entries))}, nil
}

func (h *house) wait(r *http.Request) (any, error) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	generation := h.generation
	for {
		found := wire.Signals{Stop: h.signals.Stop, Pause: h.signals.Pause}
		for _, comment := range h.signals.Comments {
			if comment.Position > after {
				found.Comments = append(found.Comments, comment)
			}
		}
		if h.generation != generation {
			return nil, task.Errorf(task.LeaseLost, "lease lost")
		}
		if found.Stop != nil || found.Pause != nil || len(found.Comments) > 0 || r.URL.Query().Get("wait") == "0s" {
			return found, nil
		}
		changed := h.changed
		h.mutex.Unlock()
		select {
		case <-changed:
			h.mutex.Lock()
		case <-r.Context().Done():
			h.mutex.Lock()
			return found, nil
		}
	}
}
