package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/task"
)

// OfTask is part of the input of every operation on a task.
type OfTask struct {
	ID string `path:"id" doc:"The task" maxLength:"200"`
}

type heldKey struct{}

// registerHeld adds an operation of an agent on a task that it holds. Only the
// token of the task's lease gets through to the handler.
func registerHeld[Input, Output any](
	s *Server, operation huma.Operation, handler func(context.Context, broker.Lease, *Input) (*Output, error),
) {
	demandHeld(s, operation, func(ctx context.Context, token string) (broker.Lease, error) {
		held, err := s.leases.Check(ctx, token)
		return broker.Lease{Task: held, TokenHash: access.Hash(token)}, err
	}, handler)
}

// registerEnding is registerHeld for the operation that ends a run: a token whose
// lease is over gets through too, so that whoever asks again is told the same.
// The handler decides.
func registerEnding[Input, Output any](
	s *Server, operation huma.Operation, handler func(context.Context, broker.Lease, *Input) (*Output, error),
) {
	demandHeld(s, operation, func(ctx context.Context, token string) (broker.Lease, error) {
		id, generation, good := access.ParseLeaseToken(token)
		if !good {
			return broker.Lease{}, task.Errorf(task.LeaseLost, "this is not the token of a lease")
		}
		found, err := s.store.Task(ctx, id)
		if task.CodeOf(err) == task.NotFound {
			err = task.Errorf(task.LeaseLost, "this is not the token of a lease")
		}
		found.Generation = generation
		return broker.Lease{Task: found, TokenHash: access.Hash(token)}, err
	}, handler)
}

func demandHeld[Input, Output any](
	s *Server, operation huma.Operation, check func(context.Context, string) (broker.Lease, error),
	handler func(context.Context, broker.Lease, *Input) (*Output, error),
) {
	operation.Tags = []string{"runs"}
	operation.Security = []map[string][]string{{leaseBearer: {}}}
	operation.MaxBodyBytes = maxBody
	operation.BodyReadTimeout = bodyDeadlineIsOurs
	operation.Errors = append(operation.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict, http.StatusTooManyRequests)
	operation.Middlewares = append(operation.Middlewares, func(ctx huma.Context, next func(huma.Context)) {
		held, err := s.holder(ctx, check)
		if err != nil {
			s.refuse(ctx, err)
			return
		}
		next(huma.WithValue(ctx, heldKey{}, held))
	})
	huma.Register(s.api, operation, func(ctx context.Context, input *Input) (*Output, error) {
		held, _ := ctx.Value(heldKey{}).(broker.Lease) // the middleware has set it
		output, err := handler(ctx, held, input)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return output, nil
	})
}

// holder is whoever holds the task that the request is about.
func (s *Server) holder(ctx huma.Context, check func(context.Context, string) (broker.Lease, error)) (broker.Lease, error) {
	token := bearerToken(ctx.Header("Authorization"))
	if token == "" {
		return broker.Lease{}, task.Errorf(task.Unauthorized, "no token was given").
			WithHint("send the token of the task's lease as Authorization: Bearer TOKEN")
	}
	if id, _, good := access.ParseLeaseToken(token); good && string(id) != ctx.Param("id") {
		return broker.Lease{}, task.Errorf(task.Forbidden, "the lease is one of another task")
	}
	return check(ctx.Context(), token)
}

// leaseBearer names the security scheme of leases in the OpenAPI document.
const leaseBearer = "lease"
