package agent

import (
	"context"
	"slices"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// mostAsked is how many runs the server is asked at once.
const mostAsked = 100

// PutAway puts away the context files of runs that will not go on: a task may be
// stopped while it is paused, or end on another agent, and nobody holds it here.
func (a *Agent) PutAway(ctx context.Context) error {
	if a.Contexts == nil {
		return nil
	}
	left, err := a.Contexts.Left()
	if err != nil {
		return err
	}
	for some := range slices.Chunk(left, mostAsked) {
		if err := a.putAway(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (a *Agent) putAway(ctx context.Context, left []contexts.Left) error {
	asked, files := make([]wire.RunRef, len(left)), map[wire.RunRef]contexts.Left{}
	for i, run := range left {
		asked[i] = wire.RunRef{TaskID: string(run.Task), Generation: run.Generation}
		files[asked[i]] = run
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	over, err := a.Client.Over(ctx, asked)
	if err != nil {
		return err
	}
	for _, run := range over {
		if err := a.Contexts.Close(files[run.RunRef].UUID, task.State(run.State), task.Reason(run.Reason)); err != nil {
			return err
		}
		a.Log.InfoContext(ctx, "put away the context files of a run that is over", "task", run.TaskID, "state", run.State, "reason", run.Reason)
	}
	return nil
}
