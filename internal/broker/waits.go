package broker

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// silentAfter is for how long an agent that is there may not be heard of: it asks
// for a task, or says that it is busy, every half minute, and when it was heard of
// is written down a little later.
const silentAfter = 2 * time.Minute

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
	waits, err := pausedTasks(ctx, from)
	if err != nil {
		return nil, err
	}
	situation, err := readSituation(ctx, from, limits, now, now, anyAgent)
	if err != nil {
		return nil, err
	}
	agents, err := from.ListAgents(ctx)
	if err != nil {
		return nil, err
	}
	lack := lacking(agents, situation.Running, now)
	if lack.Reason == "" {
		return waits, nil
	}
	for _, verdict := range Order(situation) {
		if verdict.Reason == task.ReasonNext || verdict.Reason == task.ReasonNoAgent {
			lack.Tasks = append(lack.Tasks, verdict.Task)
		}
	}
	if len(lack.Tasks) > 0 {
		waits = append([]Wait{lack}, waits...)
	}
	return waits, nil
}

// pausedTasks are the tasks that are paused, by reason. While everything is paused
// that is also what waits for an agent.
func pausedTasks(ctx context.Context, from WaitStore) (waits []Wait, err error) {
	pauses, err := from.GeneralPauses(ctx)
	if err != nil {
		return nil, err
	}
	states := []task.State{task.Paused}
	if len(pauses) > 0 {
		states = append(states, task.Queued)
	}
	found, err := from.ListTasks(ctx, store.TaskFilter{States: states})
	if err != nil {
		return nil, err
	}
	for _, t := range found {
		reason := t.Reason
		if t.State == task.Queued {
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
		heard := agent.SeenAt
		if agent.EnrolledAt.After(heard) {
			heard = agent.EnrolledAt // it is new, and will be heard of
		}
		switch {
		case !agent.RevokedAt.IsZero():
		case now.Sub(heard) > silentAfter && !holdsAny(agent, running):
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
