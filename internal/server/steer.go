package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// OperatorSource is what a pause of everything over the API is called.
const OperatorSource = "operator"

type (
	resumeAllInput struct {
		Force bool `query:"force" doc:"Also take back what others than operators want, such as a pause file of a server or an agent that is gone"`
	}
	pausesOutput  struct{ Body wire.Pauses }
	ownTasksInput struct{ Body wire.OwnTasks }
	approveInput  struct {
		ID   string `path:"id"`
		Plan int    `query:"plan" required:"true" minimum:"1" doc:"Which plan of the task is approved, counted from 1"`
	}
)

// registerSteering adds the operations that steer tasks.
func (s *Server) registerSteering(controller *broker.Controller) {
	for _, steer := range []struct {
		name, summary string
		do            func(context.Context, task.ID) (task.Task, error)
	}{
		{"stop", "Stop a task permanently", func(ctx context.Context, id task.ID) (task.Task, error) {
			return controller.StopTask(ctx, id, task.ReasonStopRequested)
		}},
		{"pause", "Pause a task", func(ctx context.Context, id task.ID) (task.Task, error) {
			return controller.Pause(ctx, id, task.ReasonPauseRequested)
		}},
		{"resume", "Let a paused task go on", controller.Resume},
		{"retry", "Queue a task again that has ended", controller.Retry},
	} {
		register(s, access.Operator, huma.Operation{
			OperationID: steer.name + "-task", Method: http.MethodPost, Path: "/v1/tasks/{id}/" + steer.name, Summary: steer.summary,
			Errors: []int{http.StatusNotFound, http.StatusConflict},
		}, func(ctx context.Context, input *taskInput) (*taskOutput, error) {
			s.log.InfoContext(ctx, "operator changed a task", "do", steer.name, "task", input.ID, "operator", caller(ctx).Name)
			after, err := steer.do(ctx, task.ID(input.ID))
			if err != nil {
				return nil, err
			}
			return &taskOutput{wire.TaskOf(after)}, nil
		})
	}
	s.registerApproval(controller)
	s.registerGeneralPause(controller)
	s.registerOwnPauses(controller)
}

// registerApproval lets operators approve plans.
func (s *Server) registerApproval(controller *broker.Controller) {
	register(s, access.Operator, huma.Operation{
		OperationID: "approve-task", Method: http.MethodPost, Path: "/v1/tasks/{id}/approve", Summary: "Approve the plan of a task that waits for that",
		Description: "It fails if the task has another plan by now.",
		Errors:      []int{http.StatusNotFound, http.StatusConflict},
	}, func(ctx context.Context, input *approveInput) (*taskOutput, error) {
		s.log.InfoContext(ctx, "operator changed a task", "do", "approve", "task", input.ID, "plan", input.Plan, "operator", caller(ctx).Name)
		after, err := controller.Approve(ctx, task.ID(input.ID), input.Plan)
		if err != nil {
			return nil, err
		}
		return &taskOutput{wire.TaskOf(after)}, nil
	})
}

// registerOwnPauses lets agents take back the pauses of files on their machines.
func (s *Server) registerOwnPauses(controller *broker.Controller) {
	register(s, access.Agent, huma.Operation{
		OperationID: "resume-own", Method: http.MethodPost, Path: "/v1/agents/me/resume",
		Summary:     "Let tasks go on that the agent has paused because of a file on its machine",
		Description: "Tasks that are not paused for that reason, or that another agent had last, are left as they are.",
	}, func(ctx context.Context, input *ownTasksInput) (*struct{}, error) {
		ids := make([]task.ID, len(input.Body.Tasks))
		for i, id := range input.Body.Tasks {
			ids[i] = task.ID(id)
		}
		name := caller(ctx).Name
		return nil, controller.ResumeOwn(ctx, ids, func(t task.Task) bool {
			return t.LastAgent == name || strings.HasPrefix(t.LastAgent, name+"/")
		})
	})
}

// pauseStore is what the pause of everything needs of the database.
type pauseStore interface {
	GeneralPauses(ctx context.Context) ([]store.GeneralPause, error)
	ResumeAll(ctx context.Context, source string) (bool, error)
}

func (s *Server) registerGeneralPause(controller *broker.Controller) {
	register(s, access.Viewer, huma.Operation{
		OperationID: "list-pauses", Method: http.MethodGet, Path: "/v1/pause", Summary: "Who wants everything to be paused",
	}, func(ctx context.Context, _ *struct{}) (*pausesOutput, error) {
		return s.pauses(ctx)
	})
	register(s, access.Operator, huma.Operation{
		OperationID: "pause-all", Method: http.MethodPost, Path: "/v1/pause", Summary: "Pause everything",
	}, func(ctx context.Context, _ *struct{}) (*pausesOutput, error) {
		if err := controller.PauseAll(ctx, OperatorSource, account(ctx)); err != nil {
			return nil, err
		}
		return s.pauses(ctx)
	})
	register(s, access.Operator, huma.Operation{
		OperationID: "resume-all", Method: http.MethodPost, Path: "/v1/resume", Summary: "Take the pause of everything back; answers who still wants it",
	}, func(ctx context.Context, input *resumeAllInput) (*pausesOutput, error) {
		if input.Force {
			wanted, err := s.store.GeneralPauses(ctx)
			if err != nil {
				return nil, err
			}
			for _, pause := range wanted {
				if _, err := s.store.ResumeAll(ctx, pause.Source); err != nil {
					return nil, err
				}
			}
			if err := controller.ResumeAgents(ctx); err != nil {
				return nil, err
			}
		}
		still, err := controller.ResumeAll(ctx, OperatorSource)
		return &pausesOutput{pausesOf(still)}, err
	})
}

func (s *Server) pauses(ctx context.Context) (*pausesOutput, error) {
	wanted, err := s.store.GeneralPauses(ctx)
	return &pausesOutput{pausesOf(wanted)}, err
}

func pausesOf(wanted []store.GeneralPause) wire.Pauses {
	shown := wire.Pauses{Pauses: make([]wire.Pause, 0, len(wanted))}
	for _, pause := range wanted {
		shown.Pauses = append(shown.Pauses, wire.Pause{Source: pause.Source, By: pause.By, Since: pause.At})
	}
	return shown
}
