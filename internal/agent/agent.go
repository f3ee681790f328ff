package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// agentRole is the role that the server gives to tokens of agents.
const agentRole = "agent"

const (
	// askFor is how long one request for a task waits.
	askFor = 30 * time.Second
	// askSlack is how much later than that its answer may come.
	askSlack = 15 * time.Second
	// busyReportInterval is how often an agent that is busy reports to the server.
	busyReportInterval = 30 * time.Second
	// longestDetail is how many characters the server takes of what an agent lacks.
	longestDetail = 500
	// reapEvery is how often sandboxes are looked for whose task is gone.
	reapEvery = 10 * time.Minute
	// tidyEvery is how often the agent looks at what it keeps on its disk.
	tidyEvery = time.Hour
)

// Prepare makes the workspace of a task, with the repository in it. Tidy removes
// it again when the run is over.
type Prepare func(ctx context.Context, assignment wire.Assignment) (repository phase.Repository, tidy func() error, err error)

// Agent works for one server.
type Agent struct {
	Client    *wire.Client
	Name      string // its id: all that it says of itself when it asks
	Parallel  int    // how many tasks it works on at the same time, at least 1
	Executors map[task.Type]Executor
	Prepare   Prepare
	// Contexts keeps the journals of runs on this machine; nil means that only the
	// server does.
	Contexts *contexts.Contexts
	// Sandboxes is asked to remove the sandboxes of Owner whose tasks this agent
	// does not hold; nil means that there are none.
	Sandboxes sandbox.Engine
	Owner     string
	// KeepContexts is how long context files are kept after the end of a run, and
	// KeepSnapshots how long snapshots are that nothing is started from; 0 means for ever.
	KeepContexts, KeepSnapshots time.Duration
	// Process names this process and no other, and Earlier those that this agent was
	// before and that have ended for certain; see package processes. Forget is called
	// when the server has freed what they held. All may be empty.
	Process string
	Earlier []string
	Forget  func(earlier []string) error
	// PauseFile pauses the tasks of this agent while it is there; empty means none.
	// It needs Contexts.
	PauseFile string
	// Check checks the disk, the sandbox and the models that every task needs without any task, or
	// only what is in doubt, unless that is nil. It fails with an [*UnableError] if a task would fail
	// for that reason; any other error says nothing. Nil means that the agent is never out.
	Check func(ctx context.Context, doubt *UnableError) error
	// CheckAgain is how soon an agent that is out is checked again; 0 means 5 seconds.
	CheckAgain time.Duration
	Language   task.Language // of what people are told: auto, ja or en
	Redactor   llm.Redactor  // takes secrets out of what people are told; may be nil
	Log        *slog.Logger

	pause     toggle // a file on this machine wants the agent's tasks to be paused
	health    health
	reporting sync.Mutex

	mutex   sync.Mutex
	holding map[runOf]bool
	checks  int             // that go on
	unmoved map[string]bool // runs of which it was reported that their files cannot be moved
}

// CheckTask is the task of the sandboxes that checks start.
const CheckTask = "check"

// runOf names a run.
type runOf struct {
	task       string
	generation int64
}

// CheckIn waits until the server answers, and makes sure that it knows this agent
// as one.
func (a *Agent) CheckIn(ctx context.Context) (wire.Me, error) {
	away := false
	me, err := persist(ctx, callTimeout, func(ctx context.Context) (wire.Me, error) {
		me, err := a.Client.Me(ctx)
		if err != nil && passes(err) && !away {
			a.Log.WarnContext(ctx, "the server does not respond yet; retrying", "error", err)
			away = true
		}
		return me, err
	})
	if err != nil {
		return wire.Me{}, err
	}
	if me.Role != agentRole {
		return wire.Me{}, task.Errorf(task.Forbidden, "the token is one of a %s, not of an agent", me.Role).
			WithHint("make one with toryo agent token create")
	}
	a.Log.InfoContext(ctx, "checked in", "server", a.Client.Server, "name", me.Name, "server_version", me.Version)
	return me, nil
}

// Report tells the server why this agent takes no tasks, or, with no reason, that it
// does.
func (a *Agent) Report(ctx context.Context, unable task.Reason, detail string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if runes := []rune(detail); len(runes) > longestDetail {
		detail = string(runes[:longestDetail])
	}
	return a.Client.Report(ctx, wire.Condition{Unable: string(unable), Detail: detail})
}

// Work asks for tasks and carries them out until the context ends. Then the tasks
// under way are handed back, and it returns nil. It returns an error when the
// server does not take this agent for one.
func (a *Agent) Work(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if a.Sandboxes != nil {
		a.reap(ctx)
		group.Go(func() error {
			for lifecycle.Sleep(ctx, reapEvery) == nil {
				a.reap(ctx)
			}
			return nil
		})
	}
	if warmer, can := a.Sandboxes.(sandbox.Warmer); can {
		group.Go(func() error { return warmer.KeepWarm(ctx, a.Owner) })
	}
	group.Go(func() error {
		lifecycle.Every(ctx, tidyEvery, a.tidy)
		return nil
	})
	group.Go(func() error { return a.keepCheckedIn(ctx) })
	if a.PauseFile != "" {
		watch := &pauseWatch{Agent: a}
		watch.look(ctx) // before a task is asked for
		group.Go(func() error { return watch.run(ctx) })
	}
	group.Go(func() error { return a.stayHealthy(ctx) })
	for range max(a.Parallel, 1) {
		group.Go(func() error { return a.workLoop(ctx) })
	}
	return group.Wait()
}

// FreeEarlierTasks has the server free the tasks that earlier processes of this agent held, so
// that they go on at once. It waits until the server answers. A server that does not
// know of it lets the leases run out.
func (a *Agent) FreeEarlierTasks(ctx context.Context) error {
	for some := range slices.Chunk(a.Earlier, mostAsked) {
		_, err := persist(ctx, callTimeout, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, a.Client.Restarted(ctx, some)
		})
		switch code := task.CodeOf(err); {
		case ctx.Err() != nil:
			return nil // the agent ends anyway
		case code == task.Unauthorized, code == task.Forbidden:
			return err
		case err != nil:
			a.Log.WarnContext(ctx, "the tasks of an earlier process of this agent are released when their leases expire", "error", err)
			continue
		}
		if err := a.Forget(some); err != nil { // they are named again at the next start, which changes nothing
			a.Log.WarnContext(ctx, "failed to remove leftovers of earlier processes", "error", err)
		}
	}
	return nil
}

// keepCheckedIn makes a request now and then, also while the agent works on as many tasks as
// it may, so that the server knows that it runs. It ends everything when the agent's token is
// no longer accepted.
func (a *Agent) keepCheckedIn(ctx context.Context) error {
	for lifecycle.Sleep(ctx, busyReportInterval) == nil {
		once, cancel := context.WithTimeout(ctx, callTimeout)
		_, err := a.Client.Me(once)
		cancel()
		if code := task.CodeOf(err); code == task.Unauthorized || code == task.Forbidden {
			return err
		}
		if err == nil && !a.health.isTold() {
			a.tell(ctx)
		}
		if err == nil {
			err = a.MoveEndedContexts(ctx)
		}
		if err != nil && !passes(err) && ctx.Err() == nil {
			a.Log.WarnContext(ctx, "failed to move the files of earlier runs; retrying", "error", err)
		}
	}
	return nil
}

// workLoop requests a task, executes it, and requests the next one.
func (a *Agent) workLoop(ctx context.Context) error {
	unfit := pauses()
	for {
		if !a.pause.wait(ctx, false) || !a.health.out.wait(ctx, false) {
			return nil
		}
		assignment, err := a.askWhileAble(ctx)
		if ctx.Err() != nil {
			if assignment != nil { // it came too late: it goes back at once
				a.perform(ctx, *assignment)
			}
			return nil
		}
		if errors.Is(err, errNotAsking) {
			continue
		}
		if err != nil {
			return err
		}
		if a.perform(ctx, *assignment) {
			unfit.Reset()
			continue
		}
		// What kept the run from beginning would keep the next one too.
		pause := unfit.NextBackOff()
		a.Log.WarnContext(ctx, "failed to start the run on this machine; waiting before the next task", "again", pause)
		if lifecycle.Sleep(ctx, pause) != nil {
			return nil //nolint:nilerr // the context ended, which is how the agent is stopped
		}
	}
}

// askWhileAble is ask until the agent is to take no tasks.
func (a *Agent) askWhileAble(ctx context.Context) (*wire.Assignment, error) {
	unpaused, end := a.pause.whileOff(ctx)
	defer end()
	healthy, end := a.health.out.whileOff(unpaused)
	defer end()
	return a.ask(healthy)
}

// ask waits for a task, however often the server goes away in the meantime.
func (a *Agent) ask(ctx context.Context) (*wire.Assignment, error) {
	growing, away := pauses(), false
	for {
		begun := time.Now()
		once, cancel := context.WithTimeout(ctx, askFor+askSlack)
		assignment, err := a.Client.RequestTaskAs(once, wire.TaskRequest{AgentID: a.Name, Process: a.Process}, askFor)
		cancel()
		switch {
		case assignment != nil:
			return assignment, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && !passes(err):
			return nil, err
		case err != nil && !away:
			a.Log.WarnContext(ctx, "failed to reach the server; retrying", "error", err)
			away = true
		case err == nil && away:
			a.Log.InfoContext(ctx, "server reachable again")
			away = false
		}
		if err == nil && time.Since(begun) > firstPause {
			growing.Reset()
			continue
		}
		if lifecycle.Sleep(ctx, growing.NextBackOff()) != nil {
			return nil, context.Cause(ctx)
		}
	}
}

func (a *Agent) addRun(assignment wire.Assignment) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.holding == nil {
		a.holding = make(map[runOf]bool)
	}
	a.holding[runOf{assignment.TaskID, assignment.Generation}] = true
}

func (a *Agent) removeRun(assignment wire.Assignment) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.holding, runOf{assignment.TaskID, assignment.Generation})
}

// countChecks notes that so many more checks go on.
func (a *Agent) countChecks(more int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.checks += more
}

// reap removes the sandboxes that belong to no run of this agent, and to no check that goes on.
func (a *Agent) reap(ctx context.Context) {
	count, err := a.Sandboxes.Reap(ctx, a.Owner, func(info sandbox.Info) bool {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		return a.holding[runOf{info.Task, info.Generation}] || info.Task == CheckTask && a.checks > 0
	})
	if err != nil {
		a.Log.WarnContext(ctx, "failed to remove leftover sandboxes; retrying later", "error", err)
	}
	if count > 0 {
		a.Log.InfoContext(ctx, "removed leftover sandboxes", "count", count)
	}
}
