package broker

import (
	"cmp"
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Turn says of a queued task when it is handed out, and why it waits.
type Turn struct {
	Task task.ID
	// Place is its place in the order in which tasks are handed out, from 1. It is 0 for one
	// that waits for something else than its turn: the next agent that asks does not get it.
	Place  int
	Reason task.Reason
	By     string    // the agent that the reason is about, or what blocks the task
	Pauses []string  // who paused everything: the source of each pause, or who wanted it
	Detail string    // what that agent says is missing, or what was said when the task was handed back
	Until  time.Time // when the reason may be over by itself; zero if that is not known
}

// Turns says of everything that is queued why it waits, in the order in which it is handed out. It
// is the one place that knows: lists, pages and the command line show what it says. It changes
// nothing. Unlike [Explain] it speaks of this moment, in which no agent asks: one that did
// would have a task.
func Turns(ctx context.Context, from WaitStore, limits Limits, now time.Time) ([]Turn, error) {
	active, err := from.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Queued, task.Running}})
	if err != nil {
		return nil, err
	}
	return turnsOf(ctx, from, active, Situation{Now: now, Limits: limits})
}

// turnsOf is [Turns] of tasks that were read already, in a situation without tasks and agents.
func turnsOf(ctx context.Context, from WaitStore, active []task.Task, situation Situation) ([]Turn, error) {
	for _, t := range active {
		switch t.State { //nolint:exhaustive // the others are not handed out
		case task.Running:
			situation.Running = append(situation.Running, t)
		case task.Queued:
			situation.Queued = append(situation.Queued, t)
		}
	}
	if len(situation.Queued) == 0 {
		return nil, nil
	}
	pauses, err := from.GeneralPauses(ctx)
	if err != nil {
		return nil, err
	}
	agents, err := from.ListAgents(ctx)
	if err != nil {
		return nil, err
	}
	reasons := make(map[task.ID]Verdict, len(situation.Queued))
	for _, verdict := range Order(situation) {
		reasons[verdict.Task.ID] = verdict
	}
	lack, place := lacking(agents, situation.Running, situation.Now), 0
	turns := make([]Turn, 0, len(situation.Queued))
	for _, next := range Order(manyAsk(situation)) {
		verdict := reasons[next.Task.ID]
		turn := turnOf(verdict, pauses, lack)
		// The reason that people see may be another, as while everything is paused.
		if verdict.Reason == task.ReasonNoAgent {
			place++
			turn.Place = place
		}
		turns = append(turns, turn)
	}
	return turns, nil
}

// manyAsk is the situation in which one agent after the other asks, until there is no task left:
// it has the order in which tasks are handed out.
func manyAsk(s Situation) Situation {
	s.Agents = make([]string, len(s.Queued))
	for i := range s.Agents {
		s.Agents[i] = anyAgent + strconv.Itoa(i)
	}
	return s
}

// turnOf makes the reason of a task from what the order says, and from why no agent asks.
func turnOf(verdict Verdict, pauses []store.GeneralPause, lack Wait) Turn {
	t := verdict.Task
	turn := Turn{Task: t.ID, Reason: verdict.Reason, Until: verdict.Until}
	switch {
	case len(pauses) > 0:
		turn.Reason, turn.Until = task.ReasonAllPaused, time.Time{}
		for _, pause := range pauses {
			turn.Pauses = append(turn.Pauses, cmp.Or(pause.By, pause.Source))
		}
	case verdict.Reason == task.ReasonNotReady && handedBack(t):
		turn.Reason, turn.Detail = t.Reason, t.Detail
	case verdict.Reason == task.ReasonBlocked:
		var items []string
		for _, key := range t.BlockedBy.List() {
			items = append(items, key.String())
		}
		turn.By = strings.Join(items, ", ")
	case verdict.Reason == task.ReasonNoAgent && lack.Reason != "":
		turn.Reason, turn.By, turn.Detail = lack.Reason, lack.Agent, lack.Detail
	}
	return turn
}

// handedBack reports whether a queued task waits because of something that went wrong, and not
// only until a time that was set for it.
func handedBack(t task.Task) bool {
	switch t.Reason { //nolint:exhaustive // all others are something that went wrong
	case t.Cause, "", task.ReasonAssigned, task.ReasonRetried, task.ReasonResumed, task.ReasonPlanApproved, task.ReasonPlanDiscussed:
		return false
	}
	return true
}

// Turns says of everything that is queued why it waits; see the function of that name. Among
// repositories the order is that by which this server decides, which remembers when each was
// served last.
func (h *HandOut) Turns(ctx context.Context) ([]Turn, error) {
	active, err := h.options.Known.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Queued, task.Running}})
	if err != nil {
		return nil, err
	}
	return h.TurnsOf(ctx, active)
}

// TurnsOf is Turns for who has read all tasks that are queued and running already. Others among
// them do not matter.
func (h *HandOut) TurnsOf(ctx context.Context, active []task.Task) ([]Turn, error) {
	return turnsOf(ctx, h.options.Known, active, Situation{Now: h.options.Now(), Limits: h.options.Limits, Served: h.lastServed()})
}

// lastServed is a copy of when a task of each repository was handed out last.
func (h *HandOut) lastServed() map[task.Repository]time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.served)
}
