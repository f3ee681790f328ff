package broker

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Wait is tasks that wait for the same thing, about which a person can do
// something: see [task.Reason.Fix].
type Wait struct {
	Reason task.Reason
	Agent  string // the agent that the reason is about; empty if it is about all
	Detail string // what that agent says is missing, for people
	Tasks  []task.Task
}

// WaitStore is what is to be known of tasks and agents.
type WaitStore interface {
	queueReader
	ListTasks(ctx context.Context, filter store.TaskFilter) ([]task.Task, error)
	ListAgents(ctx context.Context) ([]store.Agent, error)
	GeneralPauses(ctx context.Context) ([]store.GeneralPause, error)
}

// Waits says why nobody takes the tasks that could be taken, and which tasks are
// paused and why. It is the one place that knows: what people see on a terminal and
// on the pages comes from here. Tasks that only wait for their turn, or for one
// another, are not in it: for these see [Explain].
func Waits(ctx context.Context, from WaitStore, limits Limits, now time.Time) ([]Wait, error) {
	return new(knownWaits).read(ctx, from, limits, now)
}

// knownWaits remembers what tasks wait for. Tasks are read again only when something has
// happened to one, when the time of one has come, and when agents lack something else than
// before: an agent that falls silent does so without a notice. The zero value is ready to
// use, and remembers nothing before it hears of a first change.
type knownWaits struct {
	changes atomic.Int64

	mu   sync.Mutex
	last readWaits
}

// readWaits is what was read of tasks.
type readWaits struct {
	changes int64 // that it has seen
	running []task.Task
	lack    Wait      // why no agent can take a task, without the tasks
	until   time.Time // when the time of another task comes; zero if it does not matter
	waits   []Wait
}

// hear takes in that something has happened.
func (k *knownWaits) hear(notice store.Notice) {
	switch notice.Topic {
	case store.TasksChanged, store.WaitsChanged, store.Anything:
		k.changes.Add(1)
	}
}

func (k *knownWaits) read(ctx context.Context, from WaitStore, limits Limits, now time.Time) ([]Wait, error) {
	agents, err := from.ListAgents(ctx)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	changes := k.changes.Load()
	if changes == 0 || !k.last.holds(changes, agents, now) {
		last, err := readWaitsOf(ctx, from, limits, now, agents)
		if err != nil {
			return nil, err
		}
		k.last, k.last.changes = last, changes
	}
	return slices.Clone(k.last.waits), nil
}

// holds reports whether what was read is still so.
func (r readWaits) holds(changes int64, agents []store.Agent, now time.Time) bool {
	lack := lacking(agents, r.running, now)
	return r.changes == changes && (r.until.IsZero() || now.Before(r.until)) &&
		lack.Reason == r.lack.Reason && lack.Agent == r.lack.Agent && lack.Detail == r.lack.Detail
}

func readWaitsOf(ctx context.Context, from WaitStore, limits Limits, now time.Time, agents []store.Agent) (r readWaits, err error) {
	if r.waits, err = pausedTasks(ctx, from); err != nil {
		return r, err
	}
	if r.running, err = from.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Running}}); err != nil {
		return r, err
	}
	r.lack = lacking(agents, r.running, now)
	if r.lack.Reason == "" {
		return r, nil
	}
	queue, err := from.Queue(ctx, now, 0)
	if err != nil {
		return r, err
	}
	r.until = queue.NextReady
	waiting := r.lack
	for _, verdict := range Order(Situation{Now: now, Queued: queue.Ready, Running: queue.Running, Agents: []string{anyAgent}, Limits: limits}) {
		if !verdict.Until.IsZero() && (r.until.IsZero() || verdict.Until.Before(r.until)) {
			r.until = verdict.Until // it may wait for something else then
		}
		if verdict.Reason == task.ReasonNext || verdict.Reason == task.ReasonNoAgent {
			waiting.Tasks = append(waiting.Tasks, verdict.Task)
		}
	}
	if len(waiting.Tasks) > 0 {
		r.waits = append([]Wait{waiting}, r.waits...)
	}
	return r, nil
}

// pausedTasks are the tasks that are paused, and those for which the bot lacks a right, by
// reason. While everything is paused that is also what waits for an agent.
func pausedTasks(ctx context.Context, from WaitStore) (waits []Wait, err error) {
	pauses, err := from.GeneralPauses(ctx)
	if err != nil {
		return nil, err
	}
	found, err := from.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Paused}})
	if err != nil {
		return nil, err
	}
	queued := store.TaskFilter{States: []task.State{task.Queued}}
	if len(pauses) == 0 {
		queued.Reasons = task.LackOfRights
	}
	waiting, err := from.ListTasks(ctx, queued)
	if err != nil {
		return nil, err
	}
	found = append(found, waiting...)
	slices.SortFunc(found, func(a, b task.Task) int { return cmp.Compare(a.ID, b.ID) })
	for _, t := range found {
		reason := t.Reason
		if t.State == task.Queued && len(pauses) > 0 {
			reason = task.ReasonAllPaused
		}
		at := slices.IndexFunc(waits, func(w Wait) bool { return w.Reason == reason })
		if at < 0 {
			waits, at = append(waits, Wait{Reason: reason}), len(waits)
		}
		waits[at].Tasks = append(waits[at].Tasks, t)
	}
	return waits, nil
}

// lacking says why no agent can take a task; its reason is empty if one can.
func lacking(agents []store.Agent, running []task.Task, now time.Time) Wait {
	lack := Wait{Reason: task.ReasonNoAgents}
	for _, agent := range agents {
		switch {
		case !agent.RevokedAt.IsZero():
		case agent.Silent(now) && !holdsAny(agent, running):
			if lack.Reason == task.ReasonNoAgents {
				lack.Reason = task.ReasonAgentsSilent
			}
		case agent.Unable != "" && !holdsAny(agent, running):
			lack = Wait{Reason: agent.Unable, Agent: agent.Name, Detail: agent.Detail}
		default:
			return Wait{}
		}
	}
	return lack
}

// holdsAny reports whether the agent has a task. Agents that share a token are known
// by its name and theirs.
func holdsAny(agent store.Agent, running []task.Task) bool {
	return slices.ContainsFunc(running, func(t task.Task) bool {
		return t.Lease.Agent == agent.Name || strings.HasPrefix(t.Lease.Agent, agent.Name+"/")
	})
}
