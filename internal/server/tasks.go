package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// taskStore is what showing tasks needs of the database.
type taskStore interface {
	Task(ctx context.Context, id task.ID) (task.Task, error)
	ListTasks(ctx context.Context, filter store.TaskFilter) ([]task.Task, error)
	EventsAfter(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error)
}

type (
	tasksInput struct {
		State      []string `query:"state" doc:"Only tasks in these states" enum:"queued,running,paused,stopped,done,failed"`
		Repository string   `query:"repository" doc:"Only tasks of this repository"`
		Type       string   `query:"type" doc:"Only tasks of this type" enum:"development,review"`
		After      string   `query:"after" doc:"Only tasks after the one with this ID, to go on where the last page ended" maxLength:"100"`
		Limit      int      `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	}
	tasksOutput struct{ Body wire.Tasks }

	taskInput struct {
		ID string `path:"id"`
	}
	taskOutput struct{ Body wire.Task }

	findInput struct {
		Name string `query:"name" required:"true" minLength:"1" maxLength:"2000" doc:"The item (gitea:owner/name#3, owner/name#3, #3, owner/name!4), the beginning of the ID, or the address of the page or the item"`
	}

	eventsInput struct {
		ID    string `path:"id"`
		After int64  `query:"after" doc:"Only entries after this position" minimum:"0"`
		Limit int    `query:"limit" default:"500" minimum:"1" maximum:"5000"`
	}
	eventsOutput struct{ Body wire.Events }
)

func (s *Server) registerTasks() {
	register(s, access.Viewer, huma.Operation{
		OperationID: "list-tasks", Method: http.MethodGet, Path: "/v1/tasks", Summary: "Tasks, oldest first",
	}, s.listTasks)
	register(s, access.Viewer, huma.Operation{
		OperationID: "get-task", Method: http.MethodGet, Path: "/v1/tasks/{id}", Summary: "One task",
		Errors: []int{http.StatusNotFound},
	}, s.getTask)
	register(s, access.Viewer, huma.Operation{
		OperationID: "find-task", Method: http.MethodGet, Path: "/v1/tasks/find", Summary: "The task that somebody names",
		Description: "Of the tasks of one item it is the one that was assigned last. A name that can mean several is refused, with a list of them.",
		Errors:      []int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity},
	}, s.findTask)
	register(s, access.Viewer, huma.Operation{
		OperationID: "list-events", Method: http.MethodGet, Path: "/v1/tasks/{id}/events", Summary: "The journal of a task",
		Description: "A page can be shorter than its limit, if its entries are large: the journal is over where a page is empty.",
		Errors:      []int{http.StatusNotFound},
	}, s.listEvents)
}

func (s *Server) listTasks(ctx context.Context, input *tasksInput) (*tasksOutput, error) {
	filter := store.TaskFilter{Repository: input.Repository, Type: task.Type(input.Type), After: task.ID(input.After), Limit: input.Limit}
	for _, state := range input.State {
		filter.States = append(filter.States, task.State(state))
	}
	found, err := s.store.ListTasks(ctx, filter)
	if err != nil {
		return nil, err
	}
	output := tasksOutput{wire.Tasks{Tasks: make([]wire.Task, 0, len(found))}}
	for _, t := range found {
		output.Body.Tasks = append(output.Body.Tasks, wire.TaskOf(t))
	}
	return &output, s.addWaits(ctx, output.Body.Tasks)
}

func (s *Server) getTask(ctx context.Context, input *taskInput) (*taskOutput, error) {
	found, err := s.store.Task(ctx, task.ID(input.ID))
	if err != nil {
		return nil, err
	}
	return s.shownTask(ctx, found)
}

func (s *Server) findTask(ctx context.Context, input *findInput) (*taskOutput, error) {
	found, err := store.FindTask(ctx, s.store, input.Name)
	if err != nil {
		return nil, err
	}
	return s.shownTask(ctx, found)
}

// shownTask is one task as clients see it.
func (s *Server) shownTask(ctx context.Context, found task.Task) (*taskOutput, error) {
	shown := []wire.Task{wire.TaskOf(found)}
	if err := s.addWaits(ctx, shown); err != nil {
		return nil, err
	}
	return &taskOutput{shown[0]}, nil
}

func (s *Server) listEvents(ctx context.Context, input *eventsInput) (*eventsOutput, error) {
	id := task.ID(input.ID)
	if _, err := s.store.Task(ctx, id); err != nil {
		return nil, err
	}
	found, err := s.store.EventsAfter(ctx, id, input.After, input.Limit)
	if err != nil {
		return nil, err
	}
	return eventsOf(found), nil
}

func eventsOf(found []task.Event) *eventsOutput {
	output := eventsOutput{wire.Events{Events: make([]wire.Event, 0, len(found))}}
	for _, e := range found {
		output.Body.Events = append(output.Body.Events, wire.EventOf(e))
	}
	return &output
}
