package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/wire"
)

// busy is a command that tells when it is at work and then goes on for long.
var busy = []string{"sh", "-c", "echo half >README; echo at work; sleep 3600"}

// awaitStart waits until the command has written its file.
func (s *shop) awaitStart(t *testing.T) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if text, _ := os.ReadFile(filepath.Join(s.folder.dir, "README")); strings.HasPrefix(string(text), "half") {
			return
		}
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			t.Fatal("the command did not begin")
		}
	}
}

// A stop and a pause cut the command at once, keep what it did and say so. While
// that is going on the lease is held.
func TestSignalsCutTheRun(t *testing.T) {
	t.Parallel()
	for signal, asked := range map[string]wire.Signals{
		"stopped": {Stop: &wire.Halt{Reason: "unassigned"}},
		"paused":  {Pause: &wire.Halt{Reason: "pause_requested"}},
	} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			server := newHouse(t, assignment())
			s := newShop(t, server.URL, busy...)
			closing := s.open(t)
			s.awaitStart(t)
			server.set(func() { server.signals = asked })
			server.await(t, "a result", func() bool { return len(server.results) == 1 })
			if err := closing(); err != nil {
				t.Errorf("at its end: %v", err)
			}
			result := server.results[0]
			if string(result.Outcome) != signal || result.Kept != "wip" || result.CutAfter < 1 || len(server.pulls) > 0 {
				t.Errorf("the result is %+v, with %d pull requests", result, len(server.pulls))
			}
			if s.folder.saved != 1 || !strings.Contains(server.text(task.Saved), "wip") {
				t.Errorf("saved %d times, the journal has %s", s.folder.saved, server.text(task.Saved))
			}
		})
	}
}

// A stop that comes after the command has ended, and before the pull request, is
// still a stop.
func TestStopBeforeThePullRequest(t *testing.T) {
	t.Parallel()
	server := newHouse(t, assignment())
	proxy := testkit.Faults(t, server.URL)
	proxy.Next(http.MethodPost, "/pull", func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		server.mutex.Lock() // nobody is woken: the server knows before the agent does
		server.signals.Stop = &wire.Halt{Reason: "unassigned"}
		server.mutex.Unlock()
		forward.ServeHTTP(w, r)
		server.set(func() {})
	})
	s := newShop(t, proxy.URL, "sh", "-c", "echo new >README")
	closing := s.open(t)
	server.await(t, "a result", func() bool { return len(server.results) == 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if server.results[0].Outcome != "stopped" || len(server.pulls) > 0 {
		t.Errorf("the result is %+v, with %d pull requests", server.results[0], len(server.pulls))
	}
}

// An agent that is told that it is late stops and says nothing more about the
// task; then it takes the next.
func TestLateAgentStops(t *testing.T) {
	t.Parallel()
	server := newHouse(t, assignment())
	s := newShop(t, server.URL, busy...)
	closing := s.open(t)
	s.awaitStart(t)
	next := assignment()
	next.TaskID = "t2"
	server.set(func() { server.generation, server.queue, server.entries = 0, []wire.Assignment{next}, nil })
	server.await(t, "the next task", func() bool { return server.assigned.TaskID == "t2" && len(server.entries) > 0 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	server.await(t, "the end of the second", func() bool { return len(server.results) == 1 })
	if server.results[0].Outcome != "returned" {
		t.Errorf("the results are %+v", server.results)
	}
}

// switchable is a way to the server that can be cut.
type switchable struct{ cut atomic.Bool }

func (s *switchable) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.cut.Load() {
		return nil, errors.New("the network is cut")
	}
	return http.DefaultTransport.RoundTrip(r)
}

// By its own clock the agent gives a task up that it could not renew, whatever
// the server's clock says; when the network is back it goes on with another.
func TestLeaseRunsOutByTheAgentsOwnClock(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			first := assignment()
			first.Lease.ExpiresAt = time.Now().Add(skew)
			server := newHouse(t, first)
			server.every = 2 * time.Second
			s := newShop(t, server.URL, busy...)
			way := &switchable{}
			s.Client.HTTP.Transport = way
			closing := s.open(t)
			server.await(t, "two renewals", func() bool { return server.renewals >= 2 })
			s.awaitStart(t)
			way.cut.Store(true)
			server.CloseClientConnections()
			s.await(t) // the workspace is removed: the run is over
			way.cut.Store(false)
			server.set(func() { server.generation, server.queue, server.entries = 0, []wire.Assignment{assignment()}, nil })
			server.await(t, "another task", func() bool { return len(server.entries) > 0 })
			if err := closing(); err != nil {
				t.Errorf("at its end: %v", err)
			}
			if len(server.results) != 1 || server.results[0].Outcome != "returned" {
				t.Errorf("the results are %+v", server.results)
			}
		})
	}
}

// TestARunOutlastsItsDatabase: a server that answers, but cannot write, gives the task to
// nobody else. The run goes on when it can, however many renewals failed.
func TestARunOutlastsItsDatabase(t *testing.T) {
	t.Parallel()
	server := newHouse(t, assignment())
	server.every = 2 * time.Second
	s := newShop(t, server.URL, busy...)
	closing := s.open(t)
	s.awaitStart(t)
	server.set(func() { server.down = true })
	// Eight are tried in the time of one, and the lease lasts for three.
	server.await(t, "forty requests in vain", func() bool { return server.refused >= 40 })
	server.set(func() { server.down, server.renewals = false, 0 })
	server.await(t, "a renewal", func() bool { return server.renewals > 0 })
	server.set(func() { server.signals = wire.Signals{Stop: &wire.Halt{Reason: "unassigned"}} })
	server.await(t, "a result", func() bool { return len(server.results) == 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if result := server.results[0]; result.Outcome != "stopped" || result.Kept != "wip" {
		t.Errorf("the result is %+v", result)
	}
}

// A run that is cut before it has changed anything says nothing of saved work, on which a later
// run would go on.
func TestACutRunThatHasChangedNothing(t *testing.T) {
	t.Parallel()
	server := newHouse(t, assignment())
	s := newShop(t, server.URL, busy...)
	s.folder.unchanged = true
	closing := s.open(t)
	s.awaitStart(t)
	server.set(func() { server.signals = wire.Signals{Stop: &wire.Halt{Reason: "unassigned"}} })
	server.await(t, "a result", func() bool { return len(server.results) == 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if result := server.results[0]; result.Outcome != "stopped" || result.Kept != "" {
		t.Errorf("the result is %+v", result)
	}
	if text := server.text(task.Saved); s.folder.saved != 1 || text != "" {
		t.Errorf("saved %d times, the journal has %s", s.folder.saved, text)
	}
}

// When the agent is asked to end it hands its task back with what was done.
func TestTaskIsHandedBack(t *testing.T) {
	t.Parallel()
	server := newHouse(t, assignment())
	s := newShop(t, server.URL, busy...)
	closing := s.open(t)
	s.awaitStart(t)
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if len(server.results) != 1 || server.results[0].Outcome != "returned" || server.results[0].Reason != "agent_stopping" || server.results[0].Kept != "wip" {
		t.Errorf("the results are %+v", server.results)
	}
}

// Whatever is dropped, cut, answered late or done twice on the way: every entry
// is there once and in order, and there is one result.
func TestBadWayToTheServer(t *testing.T) {
	t.Parallel()
	server := newHouse(t, assignment())
	proxy := testkit.Faults(t, server.URL)
	for _, part := range []string{"/request", "/events", "/pull", "/result", "/heartbeat", "/signals", "/progress"} {
		for _, fault := range []testkit.Fault{
			testkit.CutBefore, testkit.Respond(http.StatusBadGateway, nil, "<html>"), testkit.Respond(http.StatusInternalServerError, map[string]string{"Content-Type": wire.ProblemType}, `{"code":"internal","status":500}`),
		} {
			proxy.Next("", part, fault)
		}
	}
	for _, part := range []string{"/events", "/pull", "/result"} {
		for _, fault := range []testkit.Fault{testkit.CutAfter, testkit.CutWithin, testkit.FailAfter(http.StatusBadGateway)} {
			proxy.Next("", part, fault)
		}
	}
	s := newShop(t, proxy.URL, "sh", "-c", "for i in $(seq 2000); do echo line $i; done; echo new >README")
	closing := s.open(t)
	server.await(t, "a result", func() bool { return len(server.results) == 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if len(server.results) != 1 || server.results[0].Outcome != "done" {
		t.Errorf("the results are %+v", server.results)
	}
	for i, entry := range server.entries {
		if entry.Sequence != int64(i)+1 {
			t.Errorf("entry %d has the sequence %d", i+1, entry.Sequence)
		}
	}
	if !strings.Contains(server.text(task.NoteTaken), "line 2000") {
		t.Error("the end of the output is missing")
	}
}

// What is wrong with a machine is not the task's fault: the task goes back. The machine does
// not take the next one at once: it would hand back everything, again and again.
func TestUnfitMachineHandsBack(t *testing.T) {
	t.Parallel()
	server := newHouse(t, assignment())
	s := newShop(t, server.URL, busy...)
	var log bytes.Buffer // the handler writes one line after the other
	s.Log = slog.New(slog.NewTextHandler(&log, nil))
	s.Prepare = func(context.Context, wire.Assignment) (phase.Repository, func() error, error) {
		return nil, nil, task.Errorf(task.Invalid, "the repository is odd")
	}
	closing := s.open(t)
	server.await(t, "a result", func() bool { return len(server.results) == 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if server.results[0].Outcome != "returned" {
		t.Errorf("the result is %+v", server.results[0])
	}
	if !strings.Contains(log.String(), "waiting before the next task") || !strings.Contains(log.String(), "the repository is odd") {
		t.Errorf("the log is:\n%s", log.String())
	}
	// People are told, as they are of an environment that could not be set up.
	if len(server.said) != 1 || !strings.Contains(server.said[0].Text, "could not be cloned") || !strings.Contains(server.said[0].Text, "the repository is odd") {
		t.Errorf("people were told %+v", server.said)
	}
}

// executorFunc is an executor that is a function.
type executorFunc func(context.Context, agent.Run) (wire.Result, error)

func (f executorFunc) Execute(ctx context.Context, run agent.Run) (wire.Result, error) {
	return f(ctx, run)
}

func (s *shop) with(do executorFunc) {
	s.Executors = map[task.Type]agent.Executor{task.Development: do}
}

// A fault in one run is the failure of that run; the agent goes on.
func TestPanicIsOneRunsFailure(t *testing.T) {
	t.Parallel()
	server := newHouse(t, assignment())
	s := newShop(t, server.URL, busy...)
	s.with(func(context.Context, agent.Run) (wire.Result, error) { panic("boom") })
	closing := s.open(t)
	server.await(t, "a result", func() bool { return len(server.results) == 1 })
	server.await(t, "the next question", func() bool { return len(server.asked) == 2 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if result := server.results[0]; result.Outcome != "failed" || strings.Contains(result.Comment, "boom") {
		t.Errorf("the result is %+v", result)
	}
}

// Comments reach the run as they come, each once, and only the last progress
// counts.
func TestCommentsAndProgress(t *testing.T) {
	t.Parallel()
	first := assignment()
	first.Comments = []task.CommentEntry{{Comment: task.Comment{ID: "c1", Body: "before"}, Position: 1}}
	server := newHouse(t, first)
	s := newShop(t, server.URL, busy...)
	s.with(func(ctx context.Context, run agent.Run) (wire.Result, error) {
		if err := run.Forge.Progress(ctx, "begun"); err != nil {
			return wire.Result{}, err
		}
		server.set(func() {
			server.signals.Comments = []task.CommentEntry{{Comment: task.Comment{ID: "c2", Body: "use tabs", Author: "ann"}, Position: 2, Change: "new", Access: "write"}, {Comment: task.Comment{ID: "c1", Body: "before all"}, Position: 3, Change: "edited"}}
		})
		var heard []task.CommentEntry
		for after := int64(1); len(heard) < 2; {
			found, err := run.Forge.Comments(ctx, after)
			if err != nil {
				return wire.Result{}, err
			}
			for _, comment := range found {
				heard, after = append(heard, comment), comment.Position
			}
			if err := ctx.Err(); err != nil {
				return wire.Result{}, err
			}
		}
		if len(run.Work.Comments) != 1 || heard[0].Body != "use tabs" || heard[0].Access != "write" || heard[1].Change != "edited" {
			t.Errorf("heard %+v, at the start %+v", heard, run.Work.Comments)
		}
		for range 100 {
			_ = run.Forge.Progress(ctx, "more")
		}
		if err := run.Forge.Progress(ctx, "almost"); err != nil {
			return wire.Result{}, err
		}
		server.await(t, "the last progress", func() bool {
			return len(server.progress) > 0 && server.progress[len(server.progress)-1] == "almost"
		})
		return wire.Result{Outcome: "done"}, run.Forge.AddComment(ctx, "hello", "hello")
	})
	closing := s.open(t)
	server.await(t, "a result", func() bool { return len(server.results) == 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if server.results[0].Outcome != "done" || len(server.said) != 1 {
		t.Errorf("the result is %+v, said was %+v", server.results[0], server.said)
	}
}

// The latest comments are those that the server has, whether or not they were received before,
// each once.
func TestLatestComments(t *testing.T) {
	t.Parallel()
	first := assignment()
	first.Resume = &wire.Resume{Comments: 1}
	server := newHouse(t, first)
	s := newShop(t, server.URL, busy...)
	s.with(func(ctx context.Context, run agent.Run) (wire.Result, error) {
		for position := int64(2); position <= 4; position++ {
			said := task.CommentEntry{Comment: task.Comment{ID: fmt.Sprint("c", position), Body: "more"}, Position: position, Change: task.CommentNew}
			server.set(func() { server.signals.Comments = append(server.signals.Comments, said) })
			found, err := run.Forge.LatestComments(ctx, 1)
			if err != nil {
				return wire.Result{}, err
			}
			if len(found) != int(position)-1 || found[len(found)-1].Position != position {
				t.Errorf("the comments are %+v", found)
			}
		}
		return wire.Result{Outcome: "done"}, nil
	})
	closing := s.open(t)
	server.await(t, "a result", func() bool { return len(server.results) == 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
}

// An agent whose token is no good any more ends, and says why.
func TestUnwelcomeAgentEnds(t *testing.T) {
	t.Parallel()
	server := newHouse(t)
	proxy := testkit.Faults(t, server.URL)
	proxy.Next("", "/request", testkit.Respond(http.StatusUnauthorized, map[string]string{"Content-Type": wire.ProblemType}, `{"code":"unauthorized","status":401}`))
	s := newShop(t, proxy.URL, busy...)
	s.Parallel = 3
	if err := s.Work(t.Context()); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("it ends with %v", err)
	}
}
