package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// executing is an executor that is a function.
type executing func() (wire.Result, error)

func (e executing) Execute(context.Context, agent.Run) (wire.Result, error) { return e() }

// faulty is an agent whose runs and checks meet an error until it is repaired.
type faulty struct {
	*shop
	server *house
	broken atomic.Pointer[error]
	passes bool // checks do not meet the error
	runs   atomic.Int64
}

func newFaulty(t *testing.T, err error, queue ...wire.Assignment) *faulty {
	t.Helper()
	f := &faulty{server: newHouse(t, queue...)}
	f.shop = newShop(t, f.server.URL, "true")
	f.broken.Store(&err)
	f.Executors = map[task.Type]agent.Executor{task.Development: executing(func() (wire.Result, error) {
		f.runs.Add(1)
		if err := *f.broken.Load(); err != nil {
			return wire.Result{}, err
		}
		return wire.Result{Outcome: task.OutcomeDone, Reason: string(task.ReasonCompleted)}, nil
	})}
	f.Check = func(context.Context, *agent.UnableError) error {
		if f.passes {
			return nil
		}
		return *f.broken.Load()
	}
	f.CheckAgain = 10 * time.Millisecond
	return f
}

func second() wire.Assignment {
	next := assignment()
	next.TaskID = "t2"
	return next
}

// An agent whose model or sandbox does not work hands its task back with the reason, tells the
// server, asks for nothing until it passes a check, and then goes on.
func TestAgentThatCanDoNothingTakesNoTasks(t *testing.T) {
	t.Parallel()
	for reason, err := range map[task.Reason]error{
		task.ReasonKeyRejected:  llm.StatusError("p", 401, nil, "", "bad key", nil),
		task.ReasonModelUnknown: llm.StatusError("p", 404, nil, "", "no such model", nil),
		task.ReasonCreditUsedUp: llm.StatusError("p", 429, nil, "insufficient_quota", "no money", nil),
		task.ReasonNoSandbox:    sandbox.StartError(task.Errorf(task.NotReady, "no engine")),
		// That it began does not mean that there is room for what it has done.
		task.ReasonDiskNotWritable: fmt.Errorf("commit the changes: %w", task.Errorf(task.DataDir, "the workspace cannot be written")),
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			f := newFaulty(t, err, assignment(), second())
			closing := f.open(t)
			f.server.await(t, "the task to come back", func() bool { return len(f.server.results) == 1 })
			results, conditions, _ := f.server.soFar()
			if got := results[0]; got.Outcome != task.OutcomeReturned || got.Reason != string(reason) || got.Comment != "" {
				t.Errorf("the result is %+v", got)
			}
			if got := conditions; len(got) == 0 || got[0].Unable != string(reason) || got[0].Detail == "" {
				t.Errorf("the server was told %+v before the result", got)
			}
			repaired := error(nil)
			f.broken.Store(&repaired)
			f.server.await(t, "the second task to be done, and the server to be told", func() bool {
				last := len(f.server.conditions) - 1
				return len(f.server.results) == 2 && f.server.conditions[last].Unable == ""
			})
			if err := closing(); err != nil {
				t.Errorf("at its end: %v", err)
			}
			if got := f.server.results[1]; got.Outcome != task.OutcomeDone || f.runs.Load() != 2 {
				t.Errorf("after %d runs, the second result is %+v", f.runs.Load(), got)
			}
		})
	}
}

// What only this task meets is the failure of this task: a check has passed.
func TestErrorOfTheModelThatIsTheTasksOwn(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		llm.StatusError("p", 403, nil, "", "the gateway does not like this text", nil),
		llm.StatusError("p", 402, nil, "", "the gateway does not like this text", nil), // its code is one that passes
	} {
		f := newFaulty(t, err, assignment(), second())
		f.passes = true
		closing := f.open(t)
		f.server.await(t, "both tasks to end", func() bool { return len(f.server.results) == 2 })
		if err := closing(); err != nil {
			t.Errorf("at its end: %v", err)
		}
		for _, got := range f.server.results {
			if got.Outcome != task.OutcomeFailed || !strings.Contains(got.Comment, "the gateway does not like this text") {
				t.Errorf("the result is %+v", got)
			}
		}
		f.staysIn(t)
	}
}

func (f *faulty) staysIn(t *testing.T) {
	t.Helper()
	for _, told := range f.server.conditions {
		if told.Unable != "" {
			t.Errorf("the server was told %+v", told)
		}
	}
}

// A sandbox that only this task does not get, and a model that only some roles have, are handed
// back so that the server counts the attempt. The agent takes the next task.
func TestTaskThatOnlyThisAgentCannotDoIsHandedBack(t *testing.T) {
	t.Parallel()
	unusable := sandbox.StartError(task.Errorf(task.NotReady, "toomanyrequests"))
	full := task.Wrap(task.DataDir, syscall.ENOSPC, "the sandbox cannot be recorded")
	files := task.Wrap(task.DataDir, syscall.EMFILE, "the sandbox cannot be recorded")
	rejected := llm.StatusError("p", 401, nil, "", "bad key", nil)
	for _, is := range []struct {
		met, found error
		reason     task.Reason
		said       string
	}{
		{unusable, nil, task.ReasonSandboxNotStarted, "toomanyrequests"},
		{sandbox.StartError(full), nil, task.ReasonTooLittleSpace, "the sandbox cannot be recorded"},
		{sandbox.StartError(files), nil, task.ReasonSandboxNotStarted, "the sandbox cannot be recorded"},
		{rejected, &agent.UnableError{Reason: task.ReasonKeyRejected, Partial: true, Err: rejected}, task.ReasonRoleModel, "bad key"},
	} {
		f := newFaulty(t, is.met, assignment(), second())
		f.Check = func(context.Context, *agent.UnableError) error { return is.found }
		closing := f.open(t)
		f.server.await(t, "both tasks to come back", func() bool { return len(f.server.results) == 2 })
		if err := closing(); err != nil {
			t.Errorf("at its end: %v", err)
		}
		for _, got := range f.server.results {
			if got.Outcome != task.OutcomeReturned || got.Reason != string(is.reason) || !strings.Contains(got.Comment, is.said) {
				t.Errorf("the result is %+v", got)
			}
		}
		f.staysIn(t)
	}
}

// An agent is checked before its first task. What a check cannot say is no reason to take none.
func TestAgentIsCheckedBeforeItsFirstTask(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, llm.StatusError("p", 401, nil, "", "bad key", nil), assignment())
	f.Examine(t.Context())
	if got := f.server.conditions; len(got) != 1 || got[0].Unable != string(task.ReasonKeyRejected) {
		t.Errorf("the server was told %+v", got)
	}
	checked := make(chan struct{})
	check := f.Check
	var checks atomic.Int64
	f.Check = func(ctx context.Context, doubt *agent.UnableError) error {
		if checks.Add(1) == 2 { // it has waited and been checked, and still takes nothing
			close(checked)
		}
		return check(ctx, doubt)
	}
	closing := f.open(t)
	<-checked
	if f.runs.Load() != 0 {
		t.Error("it has taken a task")
	}
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}

	unknown := newFaulty(t, errors.New("the network is down"), assignment())
	unknown.Examine(t.Context())
	if got := unknown.server.conditions; len(got) != 1 || got[0].Unable != "" {
		t.Errorf("the server was told %+v", got)
	}
}

// Each check comes later than the one before, up to a bound, until a run shows that all works.
func TestChecksBecomeRarer(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, nil, assignment())
	var got []time.Duration
	for range 9 {
		got = append(got, f.CheckPause(5*time.Second))
	}
	if got[0] != 5*time.Second || got[1] != 10*time.Second || got[8] != 10*time.Minute {
		t.Errorf("the pauses are %v", got)
	}
	closing := f.open(t)
	f.server.await(t, "the task to end", func() bool { return len(f.server.results) == 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if pause := f.CheckPause(5 * time.Second); pause != 5*time.Second {
		t.Errorf("after a run the pause is %v", pause)
	}
}

// reaped is an engine that says whether it would have kept the sandbox of a check.
type reaped struct {
	sandbox.Engine
	kept bool
}

func (r *reaped) Reap(_ context.Context, owner string, keep func(sandbox.Info) bool) (int, error) {
	r.kept = keep(sandbox.Info{Owner: owner, Task: agent.CheckTask})
	return 0, nil
}

// The sandbox of a check that goes on is not removed as a leftover, and one of an earlier process
// is.
func TestSandboxOfACheckIsKept(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, nil)
	engine := new(reaped)
	f.Sandboxes = engine
	during := false
	f.Check = func(ctx context.Context, _ *agent.UnableError) error {
		f.Reap(ctx)
		during = engine.kept
		return nil
	}
	f.Examine(t.Context())
	if !during {
		t.Error("it is removed while the check goes on")
	}
	if f.Reap(t.Context()); engine.kept {
		t.Error("it is kept after the check")
	}
}

// ready is an engine that keeps sandboxes ready.
type ready struct {
	sandbox.Engine
	owner chan string
	ended chan struct{}
}

func (r *ready) Reap(context.Context, string, func(sandbox.Info) bool) (int, error) { return 0, nil }
func (r *ready) Sweep(context.Context) error                                        { return nil }

func (r *ready) KeepWarm(ctx context.Context, owner string) error {
	r.owner <- owner
	<-ctx.Done()
	close(r.ended)
	return nil
}

// An engine that can keep sandboxes ready does so for the agent, for as long as that works.
func TestSandboxesAreKeptReady(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, nil)
	engine := &ready{owner: make(chan string, 1), ended: make(chan struct{})}
	f.Sandboxes, f.Owner = engine, "me"
	closing := f.open(t)
	if owner := <-engine.owner; owner != "me" {
		t.Errorf("they are kept for %q", owner)
	}
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	<-engine.ended
}
