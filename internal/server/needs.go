package server

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

type needsOutput struct{ Body wire.Needs }

func (s *Server) registerNeeds(list func(ctx context.Context) ([]task.Need, error)) {
	register(s, access.Viewer, huma.Operation{
		OperationID: "list-needs", Method: http.MethodGet, Path: "/v1/needs", Summary: "What waits for a person",
		Description: "Questions, plans to approve, failures, agents that are offline or do not accept tasks, pauses of everything, and budgets.",
	}, func(ctx context.Context, _ *struct{}) (*needsOutput, error) {
		found, err := list(ctx)
		if err != nil {
			return nil, err
		}
		return &needsOutput{wire.NeedsOf(found)}, nil
	})
}

// addWaits says of the queued ones of tasks why they wait.
func (s *Server) addWaits(ctx context.Context, shown []wire.Task) error {
	if s.handOut == nil {
		return nil
	}
	return AddWaits(ctx, shown, s.handOut.Turns)
}

// AddWaits says of the queued ones of tasks why they wait. Without any, nothing is asked.
func AddWaits(ctx context.Context, shown []wire.Task, turns func(ctx context.Context) ([]broker.Turn, error)) error {
	at := map[string]int{}
	for i, t := range shown {
		if t.State == string(task.Queued) {
			at[t.ID] = i
		}
	}
	if len(at) == 0 {
		return nil
	}
	found, err := turns(ctx)
	if err != nil {
		return err
	}
	for _, turn := range found {
		if i, is := at[string(turn.Task)]; is {
			waits := waitingOf(turn)
			shown[i].Waits = &waits
			shown[i].Fix = cmp.Or(waits.Fix, shown[i].Fix)
		}
	}
	return nil
}

// waitingOf is why a task waits as clients see it.
func waitingOf(turn broker.Turn) wire.Waiting {
	waits := wire.Waiting{
		Place: turn.Place, Reason: string(turn.Reason), Text: messages.Reason(task.English, turn.Reason), By: cmp.Or(turn.By, strings.Join(turn.Pauses, ", ")), Detail: turn.Detail,
		Fix: messages.Fix(task.English, turn.Reason),
	}
	if !turn.Until.IsZero() {
		waits.Until = &turn.Until
	}
	return waits
}
