package broker

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/comments"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// ApprovalStore is what approvals need of the database.
type ApprovalStore interface {
	store.Events
	Action(ctx context.Context, idempotencyKey string) (store.Action, error)
	ListTasks(ctx context.Context, filter store.TaskFilter) ([]task.Task, error)
	Spent(ctx context.Context, id task.ID, at time.Time) (ofTask, ofDay store.Amount, err error)
}

// Approvals decides whether people have approved the plan of a task, where they have to. A
// plan is approved once, by an event in the journal that names its revision: a reaction or
// a comment is only what the event is made of. So one that is taken back later changes
// nothing, and what was said about one revision never counts for the next.
//
// An example. A run posts plan 1 and ends, paused. Alice gives it a thumbs-up, and before we look
// writes "Use the standard library". The comment is something to be done, so the task is
// queued for the plan to be revised. The run posts plan 2 in a comment of its own, which has
// no thumbs-up. When Alice gives it one, the event says that plan 2 is approved, the task
// is queued, and the run that takes it begins to set the environment up.
//
// Its methods may be called by any number of goroutines, on any number of servers.
type Approvals struct {
	Store     ApprovalStore
	Snapshots *items.Snapshots
	Comments  *comments.Log
	Forges    map[task.Forge]forge.Reactor
	Steering  *items.Steering
	// Own tells whether a login on a forge is ours.
	Own func(of task.Forge, login string) bool
	// Always says that every plan has to be approved. Otherwise Label is the label of the issues
	// whose plans have to be; empty means none.
	Always bool
	Label  string
	// Controller lets tasks go on.
	Controller *Controller
	Now        func() time.Time
	Log        *slog.Logger
}

// mostReactions is of how many people it is asked what they may do, of those who have reacted
// to a plan. The author and the assignees of the issue come first, then who reacted last.
const mostReactions = 30

// Required reports whether the plan of a task has to be approved: that of an issue.
func (a *Approvals) Required(t task.Task, item forge.Item) bool {
	if t.Type != task.Development || t.Key.Kind != task.Issue {
		return false
	}
	return a.Always || a.Label != "" && item.HasLabel(a.Label)
}

// Decide looks at a task that is paused until its plan is approved, and lets it go on if it
// is, or if the plan is to be revised.
func (a *Approvals) Decide(ctx context.Context, t task.Task, seen items.Snapshot) error {
	found, err := a.look(ctx, t, seen)
	switch {
	case task.CodeOf(err) == task.StaleGeneration:
		return nil // another server has let it go on meanwhile
	case err != nil:
		return err
	case found.approval != nil:
		_, err = a.Controller.planned(ctx, t, *found.approval)
	case found.discussed:
		_, err = a.Controller.resume(ctx, t, task.ReasonAwaitingApproval, task.ReasonPlanDiscussed, "")
	}
	return ignoreConflict(err)
}

// Brief is what a run is told about the approval of its plan when the task is handed out.
func (a *Approvals) Brief(ctx context.Context, t task.Task, seen items.Snapshot) (task.PlanApproval, error) {
	if !a.Required(t, seen.Item) {
		return task.PlanApproval{}, nil
	}
	found, err := a.look(ctx, t, seen)
	if err != nil {
		return task.PlanApproval{}, err
	}
	brief := task.PlanApproval{Required: true, Discuss: found.discussed}
	switch {
	case found.approval != nil:
		brief.Approved = found.approval.Plan
		return brief, nil
	case found.shown && !found.discussed:
		return brief, nil // the run shows nothing new
	}
	brief.Estimate, err = a.estimate(ctx, t)
	return brief, err
}

// found is what people have made of a plan. It is empty if they have not decided.
type found struct {
	approval  *task.Approval // which is in the journal
	discussed bool
	shown     bool // there is a plan
}

// look finds out what people have made of the plan that they were shown last.
func (a *Approvals) look(ctx context.Context, t task.Task, seen items.Snapshot) (found, error) {
	plan, err := comments.ProposalOf(ctx, a.Store, t)
	if err != nil || plan.Revision == 0 {
		return found{}, err
	}
	known, is, err := approvalOf(ctx, a.Store, t, plan.Revision)
	if err != nil || is {
		return found{approval: &known, shown: true}, err
	}
	if !a.Required(t, seen.Item) {
		return a.approved(ctx, t, task.Approval{Plan: plan.Revision, How: task.ApprovalNotNeeded})
	}
	reply, err := a.Comments.ReplyTo(ctx, t, plan, seen)
	if err != nil || reply.Discussed {
		return found{discussed: reply.Discussed, shown: true}, err
	}
	if reply.ApprovedBy != "" {
		return a.approved(ctx, t, task.Approval{Plan: plan.Revision, By: reply.ApprovedBy, How: task.ApprovedByComment})
	}
	by, err := a.reacted(ctx, t, plan, seen.Item)
	if err != nil || by == "" {
		return found{shown: true}, err
	}
	if discussed, err := a.discussedSince(ctx, t, plan); err != nil || discussed {
		return found{discussed: discussed, shown: true}, err
	}
	return a.approved(ctx, t, task.Approval{Plan: plan.Revision, By: by, How: task.ApprovedByReaction})
}

// approved writes down that people have approved a plan.
func (a *Approvals) approved(ctx context.Context, t task.Task, approval task.Approval) (found, error) {
	return found{approval: &approval, shown: true}, noteApproval(ctx, a.Store, t, approval, a.Now())
}

// discussedSince reports whether somebody wants something else of a plan with a thumbs-up. The
// comments were read before the reactions: what was written in between, perhaps before the
// thumbs-up, is in neither. So the comments are read again.
func (a *Approvals) discussedSince(ctx context.Context, t task.Task, plan comments.Proposal) (bool, error) {
	seen, err := a.Snapshots.Get(ctx, t.Key, 0)
	if err != nil {
		return false, err
	}
	if err := a.Comments.UpdateAfterPlan(ctx, t, plan, seen); err != nil {
		return false, err
	}
	reply, err := a.Comments.ReplyTo(ctx, t, plan, seen)
	return reply.Discussed, err
}

// reacted returns who has approved a plan by a thumbs-up on the comment that has it: somebody
// who may write to the repository. Whoever wrote the issue may be a stranger. Reactions that
// the forge does not tell are none: there are other ways to approve.
func (a *Approvals) reacted(ctx context.Context, t task.Task, plan comments.Proposal, item forge.Item) (string, error) {
	on, connected := a.Forges[t.Key.Forge]
	if plan.Comment == "" || !connected {
		return "", nil
	}
	reactions, err := on.Reactions(ctx, forge.Target{Key: t.Key, Comment: plan.Comment})
	if err != nil && !forge.Temporary(err) {
		a.Log.DebugContext(ctx, "the reactions to a plan cannot be read", "item", t.Key.String(), "error", err)
		return "", nil // somebody may have deleted the comment
	}
	if err != nil {
		return "", err
	}
	var people []string
	for _, one := range slices.Backward(reactions) {
		if one.Reaction == forge.ThumbsUp && !a.Own(t.Key.Forge, one.Login) {
			people = append(people, one.Login)
		}
	}
	near := func(login string) bool { return task.SameLogin(item.Author, login) || item.AssignedTo(login) }
	slices.SortStableFunc(people, func(one, other string) int {
		switch {
		case near(one) == near(other):
			return 0
		case near(one):
			return -1
		}
		return 1
	})
	for _, login := range people[:min(len(people), mostReactions)] {
		standing, err := a.Steering.Of(ctx, item, login, nil)
		if err != nil || standing.Writes {
			return login, err
		}
	}
	return "", nil
}

const (
	// estimateFrom is how many tasks an estimate is made from at most, and estimateAge how long
	// ago they were done.
	estimateFrom = 10
	estimateAge  = 90 * 24 * time.Hour
)

// estimate is what the last issues of the repository that were done have used on average, nil
// if there are none.
func (a *Approvals) estimate(ctx context.Context, t task.Task) (*task.Estimate, error) {
	now := a.Now()
	done, err := a.Store.ListTasks(ctx, store.TaskFilter{
		States: []task.State{task.Done}, Forge: t.Key.Forge, Repository: t.Key.Repository, Type: task.Development, UpdatedSince: now.Add(-estimateAge),
	})
	if err != nil {
		return nil, err
	}
	done = slices.DeleteFunc(done, func(one task.Task) bool { return one.Key.Kind != task.Issue })
	slices.SortFunc(done, func(one, other task.Task) int { return other.UpdatedAt.Compare(one.UpdatedAt) })
	var sum task.Estimate
	for _, one := range done[:min(len(done), estimateFrom)] {
		spent, _, err := a.Store.Spent(ctx, one.ID, now)
		if err != nil {
			return nil, err
		}
		if spent.Tokens > 0 {
			sum.Tasks, sum.Tokens, sum.Money = sum.Tasks+1, sum.Tokens+spent.Tokens, sum.Money+spent.Money
		}
	}
	if sum.Tasks == 0 {
		return nil, nil //nolint:nilnil // there is no estimate
	}
	sum.Tokens, sum.Money = sum.Tokens/int64(sum.Tasks), sum.Money/int64(sum.Tasks)
	return &sum, nil
}

// Approve approves a revision of the plan of a task on behalf of an operator, and returns the
// task as it is then. It fails with Conflict if the task waits for the approval of another one,
// and with Invalid if it is not said which one is meant.
func (h *Controller) Approve(ctx context.Context, id task.ID, revision int) (task.Task, error) {
	if revision < 1 {
		return task.Task{}, task.Errorf(task.Invalid, "plans are counted from 1, and not from %d", revision)
	}
	t, err := h.options.Store.Task(ctx, id)
	if err != nil {
		return task.Task{}, err
	}
	if !t.AwaitsApproval() {
		return task.Task{}, task.Errorf(task.Conflict, "task %s does not wait for the approval of a plan", id).
			WithHint("its page, and toryo tasks show %s, say how it stands", id)
	}
	return h.approve(ctx, t, revision)
}

// approve approves the plan that people were shown last, if it is the revision.
func (h *Controller) approve(ctx context.Context, t task.Task, revision int) (task.Task, error) {
	plan, err := comments.ProposalOf(ctx, h.options.Store, t)
	if err != nil {
		return task.Task{}, err
	}
	if plan.Revision == 0 {
		return task.Task{}, task.Errorf(task.Conflict, "task %s has shown no plan that could be approved", t.ID)
	}
	if revision != plan.Revision {
		return task.Task{}, task.Errorf(task.Conflict, "task %s has plan %d by now, not %d", t.ID, plan.Revision, revision).
			WithHint("read plan %d, and approve that one if it is right", plan.Revision)
	}
	approval := task.Approval{Plan: plan.Revision, How: task.ApprovedByOperator}
	if err := noteApproval(ctx, h.options.Store, t, approval, h.options.Now()); err != nil {
		return task.Task{}, err
	}
	return h.planned(ctx, t, approval)
}

// planned lets a task go on whose plan is approved.
func (h *Controller) planned(ctx context.Context, t task.Task, approval task.Approval) (task.Task, error) {
	in := h.options.Status.LanguageOf(ctx, t)
	text := notice.Notice{}.Approved(in)
	if approval.How == task.ApprovalNotNeeded {
		text = notice.Notice{}.Unapproved(in)
	}
	return h.resume(ctx, t, task.ReasonAwaitingApproval, task.ReasonPlanApproved, text)
}

// approvalOf is the approval of a revision of the task's plan.
func approvalOf(ctx context.Context, from store.Events, t task.Task, revision int) (approval task.Approval, found bool, err error) {
	events, err := from.EventsOf(ctx, t.ID, task.PlanApproved)
	if err != nil {
		return task.Approval{}, false, err
	}
	for _, event := range events {
		if event.Source != task.FromServer || event.Generation < t.FirstGeneration {
			continue
		}
		if err := json.Unmarshal(event.Data, &approval); err != nil {
			return task.Approval{}, false, task.Wrap(task.Internal, err, "the approval of a plan cannot be read")
		}
		if approval.Plan == revision {
			return approval, true, nil
		}
	}
	return task.Approval{}, false, nil
}

// noteApproval writes an approval to the journal before anything follows from it.
func noteApproval(ctx context.Context, to store.Events, t task.Task, approval task.Approval, now time.Time) error {
	data, err := json.Marshal(approval)
	if err != nil {
		return task.Wrap(task.Internal, err, "the approval of a plan cannot be written down")
	}
	_, err = to.Append(ctx, []task.Event{{
		Task: t.ID, Generation: t.Generation, Source: task.FromServer, Kind: task.PlanApproved, At: now, Data: data,
	}})
	return err
}
