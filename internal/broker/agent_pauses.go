package broker

import (
	"context"
	"errors"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// ResumeOwn lets those of the tasks go on that an agent has paused because of a file on
// its machine, which is gone. May says whether a task is the agent's. Others, and those
// that are not paused for that reason any more, are left as they are.
func (h *Controller) ResumeOwn(ctx context.Context, ids []task.ID, may func(task.Task) bool) error {
	var failed []error
	for _, id := range ids {
		t, err := h.options.Store.Task(ctx, id)
		if err == nil && t.State == task.Paused && t.Reason == task.ReasonAgentPaused && may(t) {
			_, err = h.goOn(ctx, t, task.ReasonAgentPaused)
		}
		failed = append(failed, ignoreConflict(err))
	}
	return errors.Join(failed...)
}

// ResumeAgents lets every task go on that an agent has paused because of a file on its
// machine: for agents that are gone.
func (h *Controller) ResumeAgents(ctx context.Context) error {
	paused, err := h.options.Store.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Paused}})
	if err != nil {
		return err
	}
	ids := make([]task.ID, len(paused))
	for i, t := range paused {
		ids[i] = t.ID
	}
	return h.ResumeOwn(ctx, ids, func(task.Task) bool { return true })
}
