package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

type (
	overInput  struct{ Body wire.RunsAsked }
	overOutput struct{ Body wire.RunsOver }
)

// registerOver lets agents find out what became of runs that they have paused or
// lost: the files of those that will not go on are put away.
func (s *Server) registerOver() {
	register(s, access.Agent, huma.Operation{
		OperationID: "runs-over", Method: http.MethodPost, Path: "/v1/tasks/over", Summary: "Which of these runs will not go on",
	}, s.over)
}

func (s *Server) over(ctx context.Context, input *overInput) (*overOutput, error) {
	over := []wire.RunOver{}
	for _, run := range input.Body.Runs {
		t, err := s.store.Task(ctx, task.ID(run.TaskID))
		if task.CodeOf(err) == task.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		switch {
		case t.Began > run.Generation: // the task has begun anew since
			over = append(over, wire.RunOver{RunRef: run, State: string(task.Stopped), Reason: string(task.ReasonAssigned)})
		case t.State.Terminal():
			over = append(over, wire.RunOver{RunRef: run, State: string(t.State), Reason: string(t.Reason)})
		}
	}
	return &overOutput{wire.RunsOver{Over: over}}, nil
}
