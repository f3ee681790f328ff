package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

type (
	nextInput struct {
		Agent string `query:"agent" doc:"As if this agent asked; without one, an agent that holds nothing"`
	}
	nextOutput struct{ Body wire.NextTasks }
)

func (h handsOut) registerNext() {
	register(h.Server, access.Operator, huma.Operation{
		OperationID: "next-tasks", Method: http.MethodGet, Path: "/v1/tasks/next", Summary: "What is queued, and why each task is or is not next",
	}, h.next)
}

func (h handsOut) next(ctx context.Context, input *nextInput) (*nextOutput, error) {
	verdicts, err := h.Explain(ctx, input.Agent)
	if err != nil {
		return nil, err
	}
	waits, err := h.Waits(ctx)
	if err != nil {
		return nil, err
	}
	return &nextOutput{NextTasksOf(verdicts, waits)}, nil
}

// NextTasksOf is the order as clients see it.
func NextTasksOf(verdicts []broker.Verdict, waits []broker.Wait) wire.NextTasks {
	shown := wire.NextTasks{Tasks: make([]wire.NextTask, 0, len(verdicts))}
	for _, v := range verdicts {
		one := wire.NextTask{Task: wire.TaskOf(v.Task), Verdict: string(v.Reason), VerdictText: messages.Reason(task.English, v.Reason)}
		if !v.Until.IsZero() {
			one.Until = &v.Until
		}
		shown.Tasks = append(shown.Tasks, one)
	}
	for _, w := range waits {
		shown.Waits = append(shown.Waits, WaitOf(w))
	}
	return shown
}

// WaitOf is what tasks wait for as clients see it.
func WaitOf(w broker.Wait) wire.Wait {
	shown := wire.Wait{Reason: string(w.Reason), Text: messages.Reason(task.English, w.Reason), Fix: messages.Fix(task.English, w.Reason), Agent: w.Agent, Detail: w.Detail}
	for _, t := range w.Tasks {
		shown.Tasks = append(shown.Tasks, wire.WaitTask{Task: string(t.ID), Item: t.Key.String(), Title: t.Title})
	}
	return shown
}
