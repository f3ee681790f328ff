package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

type (
	overInput  struct{ Body wire.RunsAsked }
	overOutput struct{ Body wire.RunsOver }
)

// overStore is what noting runs that cannot be put away needs of the database.
type overStore interface {
	EventsOf(ctx context.Context, id task.ID, kinds ...task.EventKind) ([]task.Event, error)
	Append(ctx context.Context, events []task.Event) (added int, err error)
}

// registerOver lets agents find out what became of runs that they have paused or
// lost: the files of those that will not go on are put away.
func (s *Server) registerOver() {
	register(s, access.Agent, huma.Operation{
		OperationID: "runs-over", Method: http.MethodPost, Path: "/v1/tasks/over", Summary: "Which of these runs will not go on",
	}, s.over)
}

func (s *Server) over(ctx context.Context, input *overInput) (*overOutput, error) {
	for _, run := range input.Body.Unmoved {
		if err := s.noteUnmoved(ctx, run); err != nil {
			return nil, err
		}
	}
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
		case t.FirstGeneration > run.Generation: // the task has begun anew since
			over = append(over, wire.RunOver{RunRef: run, State: string(task.Stopped), Reason: string(task.ReasonAssigned)})
		case t.State.Terminal():
			over = append(over, wire.RunOver{RunRef: run, State: string(t.State), Reason: string(t.Reason)})
		}
	}
	return &overOutput{wire.RunsOver{Over: over}}, nil
}

// noteUnmoved writes into the journal of a task that its agent cannot move its context
// files, where people see it. An agent can say so of its own runs only, and once.
func (s *Server) noteUnmoved(ctx context.Context, run wire.RunUnmoved) error {
	t, err := s.store.Task(ctx, task.ID(run.TaskID))
	if task.CodeOf(err) == task.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if name := caller(ctx).Name; t.LastAgent != name && !strings.HasPrefix(t.LastAgent, name+"/") || run.Generation > t.Generation {
		return nil // it has gone on elsewhere, or was never this agent's: not for it to say
	}
	data, err := json.Marshal(map[string]string{
		"text":   fmt.Sprintf("The context files of the run are not in %s/ on the agent %s, because they cannot be moved: %s. It is tried again.", run.Folder, t.LastAgent, run.Cause),
		"status": "warning",
	})
	if err != nil {
		return task.Wrap(task.Internal, err, "the note cannot be written down")
	}
	noted, err := s.store.EventsOf(ctx, t.ID, task.NoteTaken)
	if err != nil {
		return err
	}
	for _, event := range noted {
		if event.Source == task.FromServer && bytes.Equal(event.Data, data) {
			return nil
		}
	}
	s.log.WarnContext(ctx, "an agent failed to move the context files of a run", "task", t.ID, "agent", t.LastAgent, "folder", run.Folder, "cause", run.Cause)
	_, err = s.store.Append(ctx, []task.Event{{
		Task: t.ID, Generation: t.Generation, Source: task.FromServer, Kind: task.NoteTaken, At: s.now(), Data: data,
	}})
	if task.CodeOf(err) == task.StaleGeneration {
		return nil // it has gone on elsewhere in this moment
	}
	return err
}
