package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

type (
	enrolInput     struct{ Body wire.Enrol }
	enrolOutput    struct{ Body wire.Enrolled }
	agentsOutput   struct{ Body wire.Agents }
	conditionInput struct{ Body wire.Condition }
	agentInput     struct {
		ID string `path:"id"`
	}
)

func (s *Server) registerAgents(now func() time.Time) {
	enrolment := access.Enrolment{Store: s.store, Now: now}
	huma.Register(s.api, huma.Operation{
		OperationID: "enrol-agent", Method: http.MethodPost, Path: "/v1/agents/enrol", Summary: "Exchange a one-time token for an agent's own",
		DefaultStatus: http.StatusCreated, MaxBodyBytes: maxEnrolBody, BodyReadTimeout: bodyDeadlineIsOurs, Security: []map[string][]string{{bearer: {}}},
		Middlewares: huma.Middlewares{s.tightly, s.enrolling(enrolment)},
		Errors:      []int{http.StatusUnauthorized, http.StatusConflict, http.StatusTooManyRequests},
	}, func(ctx context.Context, input *enrolInput) (*enrolOutput, error) {
		oneTime, _ := ctx.Value(oneTimeKey{}).(string)
		var token string
		err := s.audit.Do(ctx, "an enrolment token", "agent.enrol", input.Body.Name, func() (err error) {
			token, err = enrolment.Enrol(ctx, oneTime, input.Body.Name)
			return err
		})
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		s.log.InfoContext(ctx, "agent enrolled", "name", input.Body.Name)
		return &enrolOutput{wire.Enrolled{Token: token, Name: input.Body.Name}}, nil
	})
	register(s, access.Viewer, huma.Operation{
		OperationID: "list-agents", Method: http.MethodGet, Path: "/v1/agents", Summary: "The agents, and what they are working on",
	}, func(ctx context.Context, _ *struct{}) (*agentsOutput, error) {
		agents, err := ListAgents(ctx, s.store)
		return &agentsOutput{wire.Agents{Agents: agents}}, err
	})
	register(s, access.Agent, huma.Operation{
		OperationID: "report-condition", Method: http.MethodPut, Path: "/v1/agents/me", Summary: "Say whether the agent can take tasks",
	}, func(ctx context.Context, input *conditionInput) (*struct{}, error) {
		return nil, s.store.AgentIs(ctx, caller(ctx).ID, store.Condition{Unable: task.Reason(input.Body.Unable), Detail: input.Body.Detail}, now())
	})
	register(s, access.Admin, huma.Operation{
		OperationID: "revoke-agent", Method: http.MethodDelete, Path: "/v1/agents/{id}", Summary: "End an agent's token",
		Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, input *agentInput) (*struct{}, error) {
		return nil, RevokeAgent(ctx, s.store, input.ID, now())
	})
}

type oneTimeKey struct{}

// enrolling lets only those through who have a one-time token.
func (s *Server) enrolling(enrolment access.Enrolment) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		oneTime := bearerToken(ctx.Header("Authorization"))
		if err := enrolment.Check(ctx.Context(), oneTime); err != nil {
			s.refuse(ctx, err)
			return
		}
		next(huma.WithValue(ctx, oneTimeKey{}, oneTime))
	}
}

// maxEnrolBody is more than enough for a token and a name.
const maxEnrolBody = 4 << 10

// conditionStore is what taking in the condition of agents needs of the database.
type conditionStore interface {
	AgentIs(ctx context.Context, token string, condition store.Condition, at time.Time) error
}

// AgentStore is what showing agents and ending their tokens needs of the database.
type AgentStore interface {
	ListAgents(ctx context.Context) ([]store.Agent, error)
	ListTasks(ctx context.Context, filter store.TaskFilter) ([]task.Task, error)
	RevokeToken(ctx context.Context, id string, at time.Time) error
}

// ListAgents returns the agents with what they are working on.
func ListAgents(ctx context.Context, from AgentStore) ([]wire.Agent, error) {
	found, err := from.ListAgents(ctx)
	if err != nil {
		return nil, err
	}
	running, err := from.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Running}})
	if err != nil {
		return nil, err
	}
	agents := make([]wire.Agent, 0, len(found))
	for _, a := range found {
		shown := wire.Agent{ID: a.Token, Name: a.Name, EnrolledAt: a.EnrolledAt, SeenAt: unlessZero(a.SeenAt), RevokedAt: unlessZero(a.RevokedAt), Tasks: []wire.AgentTask{},
			Condition:  wire.Condition{Unable: string(a.Unable), Detail: a.Detail},
			UnableText: messages.Reason(task.English, a.Unable), Fix: messages.Fix(task.English, a.Unable)}
		for _, t := range running {
			if holds(a, t) {
				shown.Tasks = append(shown.Tasks, wire.AgentTask{Task: string(t.ID), Item: t.Key.String(), Role: string(t.Role)})
			}
		}
		agents = append(agents, shown)
	}
	return agents, nil
}

// holds says whether the agent has the task. Agents that share a token are known
// by its name and theirs.
func holds(a store.Agent, t task.Task) bool {
	return a.RevokedAt.IsZero() && (t.Lease.Agent == a.Name || strings.HasPrefix(t.Lease.Agent, a.Name+"/"))
}

func unlessZero(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// RevokeAgent ends the token of an agent, by its id or, if that names one valid
// agent, by its name.
func RevokeAgent(ctx context.Context, in AgentStore, idOrName string, at time.Time) error {
	agents, err := in.ListAgents(ctx)
	if err != nil {
		return err
	}
	var named []string
	for _, a := range agents {
		if a.Token == idOrName {
			return in.RevokeToken(ctx, a.Token, at)
		}
		if a.Name == idOrName && a.RevokedAt.IsZero() {
			named = append(named, a.Token)
		}
	}
	switch len(named) {
	case 1:
		return in.RevokeToken(ctx, named[0], at)
	case 0:
		return task.Errorf(task.NotFound, "there is no agent %s", idOrName).WithHint("see toryo agent list for the ids")
	default:
		return task.Errorf(task.Conflict, "%d agents are called %s", len(named), idOrName).WithHint("give the id from toryo agent list")
	}
}
