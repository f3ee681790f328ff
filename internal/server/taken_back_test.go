package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// oneTask gives a task to the agent, which ends when it asks for the next. Everything else
// is sent to the server.
type oneTask struct {
	task   *wire.Assignment
	then   func()
	server http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (h *oneTask) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/tasks/request") {
		return h.server.RoundTrip(r)
	}
	if h.task == nil {
		h.then()
		return nil, r.Context().Err()
	}
	answer := httptest.NewRecorder()
	err := json.NewEncoder(answer).Encode(h.task)
	h.task = nil
	return answer.Result(), err
}

// takes is an executor that takes up what people said, all of it at once, and is done.
type takes func(comment task.CommentEntry)

// Execute implements agent.Executor.
func (take takes) Execute(ctx context.Context, run agent.Run) (wire.Result, error) {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		comments, err := run.Forge.Comments(ctx, 0)
		if err != nil {
			return wire.Result{}, err
		}
		if len(comments) > 0 {
			signal := &phase.SignalEntry{Signal: task.SignalComments}
			for _, comment := range comments {
				take(comment)
				signal.Position = max(signal.Position, comment.Position)
			}
			return wire.Result{Outcome: "done", Comment: "It is done."}, run.Journal.Append(ctx, task.SignalTaken, phase.Entry{Signal: signal})
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return wire.Result{}, context.Cause(ctx)
		}
	}
}

// A comment that was taken back before the run looked is not given to the run, and the run
// has passed it: people are not told at the end that taking it back came too late.
func TestTakenBackBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(w *workshop, key task.Key, old task.Comment) []func(){
		"written and deleted": func(w *workshop, key task.Key, _ task.Comment) []func() {
			var made task.Comment
			return []func(){
				func() { made = w.forge.AddComment(key, "alice", "paint it") },
				func() { w.forge.AddComment(key, "bob", "oil it") },
				func() { w.forge.DeleteComment(key, made.ID) },
			}
		},
		"edited and back": func(w *workshop, key task.Key, old task.Comment) []func() {
			return []func(){
				func() { w.forge.Edit(key, old.ID, "make it of steel") },
				func() { w.forge.AddComment(key, "bob", "oil it") },
				func() { w.forge.Edit(key, old.ID, old.Body) },
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := onSQLite(t)
			made := w.issue(t, "Repair the gate")
			old := w.forge.AddComment(made.Key, "alice", "it is of wood")
			assigned, running := w.lease(t, made.ID)
			if _, err := w.talk.Begin(t.Context(), running); err != nil {
				t.Fatal(err)
			}
			for _, do := range write(w, made.Key, old) {
				w.forge.Advance(time.Minute)
				do()
				w.look(t, made.ID)
			}
			var got []string
			w.workOn(t, assigned, takes(func(c task.CommentEntry) { got = append(got, string(c.Change)+" "+c.Body) }))
			w.wantState(t, made.ID, task.Done, task.ReasonCompleted)
			if !slices.Equal(got, []string{"new oil it"}) {
				t.Errorf("the run takes up %q", got)
			}
			w.settle(t, made.Key)
			w.wantComments(t, made.Key, "It is done.")
			for _, comment := range w.comments(t, made.Key) {
				if strings.Contains(comment.Body, "too late") {
					t.Errorf("people are told:\n%s", comment.Body)
				}
			}
		})
	}
}

// workOn has an agent work on one task until it asks for the next.
func (w *workshop) workOn(t *testing.T, assigned wire.Assignment, executor agent.Executor) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	worker := agent.Agent{
		Name: "a1", Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Executors: map[task.Type]agent.Executor{task.Development: executor},
		Client: &wire.Client{Server: w.web.URL, HTTP: &http.Client{Transport: &oneTask{task: &assigned, then: stop, server: w.web.Client().Transport}}},
		Prepare: func(context.Context, wire.Assignment) (phase.Repository, func() error, error) {
			return nil, func() error { return nil }, nil
		},
	}
	if err := worker.Work(ctx); err != nil {
		t.Fatal(err)
	}
}
