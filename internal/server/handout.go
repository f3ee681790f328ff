package server

import (
	"cmp"
	"context"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/memory"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// HandOut hands tasks to agents; see [broker.HandOut].
type HandOut interface {
	// Request waits for a task for the agent; without one found is false.
	Request(ctx context.Context, asker broker.Asker, wait time.Duration) (made *assignment.Assignment, found bool, err error)
	// Restarted takes the tasks from processes of agents that have ended.
	Restarted(ctx context.Context, processes []string) error
	// Explain says of everything that is queued why it is or is not next.
	Explain(ctx context.Context, agent string) ([]broker.Verdict, error)
	// Waits says why nobody takes tasks; see [broker.Waits].
	Waits(ctx context.Context) ([]broker.Wait, error)
	// Turns says of everything that is queued why it waits; see [broker.Turns].
	Turns(ctx context.Context) ([]broker.Turn, error)
	// Drain ends all waiting: the server is about to stop.
	Drain()
	// Renew is how often an agent has to be heard of.
	Renew() time.Duration
}

type (
	// AskedForTask is the body of a request for a task. A role is what agents of
	// long ago named: the task has one, the agent does not.
	AskedForTask struct {
		wire.TaskRequest
		AgentRole any `json:"agent_role,omitempty" hidden:"true"`
	}
	requestInput struct {
		Wait string `query:"wait" default:"30s" doc:"How long to wait for a task, at most a minute"`
		Body AskedForTask

		at string // the address under which the caller reaches this server
		r  *http.Request
		w  http.ResponseWriter
	}
	restartedInput struct{ Body wire.Restarted }
	requestOutput  struct {
		Status int
		Body   *wire.Assignment
	}
)

// Resolve notes how the caller reaches this server, for what it is to fetch from
// here. It may be through a proxy, which says so.
func (i *requestInput) Resolve(ctx huma.Context) []error {
	scheme := "http"
	if ctx.TLS() != nil || ctx.Header("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	i.at = scheme + "://" + cmp.Or(ctx.Header("X-Forwarded-Host"), ctx.Host())
	i.r, i.w = humago.Unwrap(ctx)
	return nil
}

var _ huma.Resolver = (*requestInput)(nil)

// handsOut is the side of the server that hands out.
type handsOut struct {
	*Server
	HandOut
}

func (h handsOut) register() {
	register(h.Server, access.Agent, huma.Operation{
		OperationID: "request-task", Method: http.MethodPost, Path: "/v1/tasks/request",
		Summary: "Wait for a task", Description: "Answers as soon as there is a task for the agent, and with 204 when the wait ends without one.",
		DefaultStatus: http.StatusOK,
		Responses:     map[string]*huma.Response{"204": {Description: "There is no task"}},
	}, h.request)
	register(h.Server, access.Agent, huma.Operation{
		OperationID: "agent-restarted", Method: http.MethodPost, Path: "/v1/agents/me/restarted",
		Summary:     "Say that the agent was started again",
		Description: "The tasks of the processes that have ended go back into the queue at once, in a new generation.",
	}, h.restarted)
	h.registerNext()
}

func (h handsOut) request(ctx context.Context, input *requestInput) (*requestOutput, error) {
	wait, err := time.ParseDuration(input.Wait)
	if err != nil || wait < 0 {
		return nil, task.Errorf(task.Invalid, "%q is not how long to wait", input.Wait).WithHint("write it like 30s")
	}
	if input.Body.AgentRole != nil {
		h.log.WarnContext(ctx, "ignored the role that an agent named: the task decides", "agent", input.Body.AgentID)
	}
	asker := broker.Asker{Agent: access.AgentName(caller(ctx), input.Body.AgentID), Process: processName(input.Body.Process)}
	at := input.at // and not all of the input, which would be kept while the agent waits
	return h.polls.wait(ctx, input.w, input.r, func(ctx context.Context) (*requestOutput, error) {
		made, found, err := h.Request(ctx, asker, min(wait, longestWait))
		if err != nil {
			return nil, err
		}
		if !found {
			return &requestOutput{Status: http.StatusNoContent}, nil
		}
		return h.given(ctx, made, at)
	})
}

// given is the answer to an agent that has got a task. It is not a part of request, where agents
// wait: what it has on the stack would be on that of each of them.
//
//go:noinline
func (h handsOut) given(ctx context.Context, made *assignment.Assignment, at string) (*requestOutput, error) {
	if err := h.stillWelcome(ctx); err != nil {
		return nil, err
	}
	assigned := h.assignment(*made, at)
	return &requestOutput{Status: http.StatusOK, Body: &assigned}, nil
}

// restarted is said by an agent that knows for certain that the processes have ended.
// Only who has their names can say so: they are as secret as the agent's token.
func (h handsOut) restarted(ctx context.Context, input *restartedInput) (*struct{}, error) {
	ended := make([]string, 0, len(input.Body.Ended))
	for _, process := range input.Body.Ended {
		ended = append(ended, processName(process))
	}
	return nil, h.Restarted(ctx, ended)
}

// processName is what is kept of the name of an agent's process: with it nobody can
// say that the process has ended.
func processName(process string) string {
	if process == "" {
		return ""
	}
	return hex.EncodeToString(access.Hash(process))
}

// stillWelcome looks again, once the agent has a task, whether its token is good:
// it may have been revoked while the agent waited. Then what the agent was given is
// taken from it, as everything is when a token is revoked.
func (h handsOut) stillWelcome(ctx context.Context) error {
	token, err := h.store.TokenByHash(ctx, caller(ctx).Hash)
	if err != nil || token.RevokedAt.IsZero() {
		return err
	}
	if err := h.store.RevokeToken(ctx, token.ID, token.RevokedAt); err != nil {
		return err
	}
	return task.Errorf(task.Unauthorized, "the agent's token was revoked").
		WithHint("enrol the agent anew with a token of toryo agent token create; its old one is in the folder agent of its data directory")
}

func (h handsOut) assignment(a assignment.Assignment, at string) wire.Assignment {
	key := a.Item.Key
	assigned := wire.Assignment{
		TaskID: string(a.Task.ID), Generation: a.Task.Generation, TaskType: string(a.Task.Type), Cause: string(a.Task.Cause), Occasion: a.Task.Occasion, RequiredRole: string(a.Task.Role),
		Forge: string(key.Forge), Repository: key.Repository, Kind: string(key.Kind), Number: key.Number,
		URL: a.Item.URL, Title: a.Item.Title, Body: a.Item.Body, Author: a.Item.Author, AuthorAccess: a.AuthorAccess.String(),
		Labels: append([]string{}, a.Item.Labels...), Comments: withoutRefusedTexts(a.Comments), Prompt: a.Prompt, Branch: a.Branch, Base: a.Base,
		BaseCommit: a.BaseCommit, StartCommit: a.StartCommit,
		CloneURL: at + "/git/" + string(a.Task.ID) + ".git",
		Lease:    wire.Lease{Token: a.Token, ExpiresAt: a.Task.Lease.ExpiresAt, Every: h.Renew().Milliseconds()},
		Earlier:  a.Earlier, ReviewNotes: memory.Render(a.Notes), Approval: a.Approval,
	}
	if a.Pull != nil {
		assigned.PullRequest = pullOf(*a.Pull)
	}
	if r := a.Resume; r != nil {
		assigned.Resume = &wire.Resume{
			Generation: r.Generation, Reason: string(r.Reason), Phase: string(r.Phase), WIPRef: r.WIPRef, WIPCommit: r.WIPCommit, Events: r.Events, Comments: r.Comments,
		}
	}
	return assigned
}

func pullOf(p assignment.PullBrief) *wire.PullRequest {
	pull := &wire.PullRequest{
		Number: p.Item.Key.Number, URL: p.Item.URL, Title: p.Item.Title, Body: p.Item.Body, Author: p.Item.Author,
		Head: p.Item.Head, HeadRef: p.HeadRef, Base: p.Item.Base, Commit: p.Item.HeadCommit, Diff: p.Diff, CutFiles: p.CutFiles,
		Summaries: withoutRefusedTexts(p.Summaries),
	}
	for _, thread := range p.Threads {
		one := wire.ReviewThread{ID: thread.ID, Path: thread.Anchor.Path, Line: thread.Anchor.Line, Old: thread.Anchor.Side == forge.OldSide}
		for _, c := range thread.Comments {
			one.Comments = append(one.Comments, task.CommentEntry{Comment: c})
		}
		pull.Threads = append(pull.Threads, one)
	}
	for _, issue := range p.Issues {
		pull.Issues = append(pull.Issues, wire.IssueText{Number: issue.Key.Number, Title: issue.Title, Body: issue.Body})
	}
	for _, check := range p.Checks {
		pull.Checks = append(pull.Checks, wire.FailedCheck(check))
	}
	return pull
}
