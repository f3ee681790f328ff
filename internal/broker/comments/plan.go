package comments

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Proposal is a plan that people were asked to approve. The zero value is none.
type Proposal struct {
	Revision int
	Comment  string // that has the plan, by its id on the forge; empty while it is not there
	Refused  bool   // the forge has refused the comment: the plan is on the page of the task only
}

// planStore is what is to be known of the runs and writes of a task.
type planStore interface {
	EventsOf(ctx context.Context, id task.ID, kinds ...task.EventKind) ([]task.Event, error)
	Action(ctx context.Context, idempotencyKey string) (store.Action, error)
}

// ProposalOf finds the plan that the runs of a task have shown to people last, since the task
// was assigned. A run says in its journal which comment that is, because one that goes on after
// a loss has posted it in another generation.
func ProposalOf(ctx context.Context, from planStore, t task.Task) (plan Proposal, err error) {
	signals, err := from.EventsOf(ctx, t.ID, task.SignalTaken)
	if err != nil {
		return Proposal{}, err
	}
	name := ""
	for _, event := range signals {
		var entry struct {
			Signal struct {
				Reason task.Reason `json:"reason"`
				Plan   int         `json:"plan_revision"`
				Posted string      `json:"posted"`
			} `json:"signal"`
		}
		if event.Source != task.FromAgent || event.Generation < t.FirstGeneration || json.Unmarshal(event.Data, &entry) != nil {
			continue // an agent may write what it likes: what cannot be read is not there
		}
		if entry.Signal.Reason == task.ReasonAwaitingApproval && entry.Signal.Plan > 0 {
			plan.Revision, name = entry.Signal.Plan, entry.Signal.Posted
		}
	}
	if name == "" {
		return plan, nil
	}
	write := outbox.Write{Task: t.ID, Began: t.FirstGeneration, What: outbox.ByRun + name}
	action, found, err := store.Optional(from.Action(ctx, write.IdempotencyKey()))
	if err != nil || !found || action.Status != store.Delivered {
		plan.Refused = found && action.Status == store.Refused
		return plan, err
	}
	var written outbox.Written
	if err := json.Unmarshal(action.Result, &written); err != nil {
		return Proposal{}, task.Wrap(task.Internal, err, "what the forge said of a comment cannot be read")
	}
	plan.Comment = written.ID
	return plan, nil
}

// question is the comment with the plan as something that people are asked. When it is not
// there any more, what counts is since when the task waits.
func (p Proposal) question(t task.Task) question {
	at := time.Now().Add(24 * time.Hour) // nothing was said after it
	if t.State == task.Paused {
		at = t.UpdatedAt
	}
	return question{asked: p.Comment != "" || p.Refused, id: p.Comment, at: at}
}

// Reply is what people have said since a plan was made.
type Reply struct {
	ApprovedBy string // who may write and approves it by a comment; empty if nobody does
	Discussed  bool   // somebody who may steer wants something else
}

// ReplyTo says what people have said about a plan that the task's runs have not taken up: the
// oldest comment decides. An approval counts only if it came after the plan was posted.
// Everything else counts in any case: a plan that was made without it does not have it. The
// last plan is not revised any more; see [task.MostPlans].
func (k *Log) ReplyTo(ctx context.Context, t task.Task, plan Proposal, seen items.Snapshot) (Reply, error) {
	start, err := k.options.Store.CommentsStart(ctx, t.ID)
	if err != nil {
		return Reply{}, err
	}
	taken, err := assignment.TakenUpTo(ctx, k.options.Store, t)
	if err != nil {
		return Reply{}, err
	}
	pending, err := pendingComments(ctx, k.options.Store, t.ID, max(start, taken))
	if err != nil {
		return Reply{}, err
	}
	asked := plan.question(t)
	own := func(login string) bool { return k.options.Own(t.Key.Forge, login) }
	for _, one := range pending {
		switch change := one.change(); {
		case change == "" || change == task.CommentDeleted:
		case !Approves(one.short, own):
			if plan.Revision < task.MostPlans {
				return Reply{Discussed: true}, nil
			}
		case asked.before(one.last.Comment, seen):
			// Whoever wrote the issue may steer, and may be a stranger.
			standing, err := k.options.Steering.Of(ctx, seen.Item, one.last.Author, nil)
			if err != nil || standing.Writes {
				return Reply{ApprovedBy: one.last.Author}, err
			}
		}
	}
	return Reply{}, nil
}
