package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/broker/comments"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// planned lets something happen to a task in a bubble of time, whose run has posted plan 1 and
// waits for its approval.
func planned(t *testing.T, then func(l *life)) {
	t.Helper()
	plannedWith(t, func(*life) {}, then)
}

// plannedWith is planned with something that is done before the bot is assigned.
func plannedWith(t *testing.T, first, then func(l *life)) {
	t.Helper()
	path := testkit.SQLite(t, sqlite.Open)
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, path)
		l.forge.SetAccess(team, "stranger", forge.ReadAccess)
		l.forge.SetAccess(team, bot, forge.WriteAccess)
		l.issue = l.forge.AddItem(team, task.Issue, "ann", "Repair the gate")
		first(l)
		l.forge.Change(l.issue, func(i *forge.Item) { i.Assignees = []string{bot} })
		l.webhook()
		l.begin(true)
		l.propose(1)
		then(l)
	})
}

// propose is what a run does to show a plan.
func (l *life) propose(revision int) {
	l.Helper()
	name := fmt.Sprintf("1-plan-%d", revision)
	l.check(l.runs.AddComment(l.Context(), l.held, name, fmt.Sprintf("Plan %d: oil it.", revision)))
	l.signal(map[string]any{"signal": "pause", "reason": task.ReasonAwaitingApproval, "plan_revision": revision, "posted": name})
	l.finish(broker.RunResult{Outcome: task.OutcomePaused, Reason: task.ReasonAwaitingApproval})
	l.until("the task waits for approval", l.is(task.Paused, task.ReasonAwaitingApproval))
	l.until("the plan is posted", func() error {
		if l.plan(revision) == "" {
			return fmt.Errorf("plan %d is not there", revision)
		}
		return nil
	})
	synctest.Wait() // nobody reads the issue while a test writes several things
}

// signal writes a signal to the journal of the run.
func (l *life) signal(signal map[string]any) {
	l.Helper()
	l.count++
	data, err := json.Marshal(map[string]any{"signal": signal})
	l.check(err)
	_, err = l.runs.Report(l.Context(), l.held, []task.Event{{Kind: task.SignalTaken, Sequence: l.count, At: time.Now(), Data: data}})
	l.check(err)
}

// plan is the comment with a plan.
func (l *life) plan(revision int) (id string) {
	l.Helper()
	comments, err := l.forge.Comments(l.Context(), l.issue)
	l.check(err)
	for _, comment := range comments {
		if strings.HasPrefix(comment.Body, fmt.Sprintf("Plan %d:", revision)) {
			if id != "" {
				l.Fatalf("plan %d is there twice", revision)
			}
			id = comment.ID
		}
	}
	return id
}

// waits asserts that the task waits for approval, also after a while.
func (l *life) waits(what string) {
	l.Helper()
	<-time.After(3 * time.Minute)
	synctest.Wait()
	if err := l.is(task.Paused, task.ReasonAwaitingApproval)(); err != nil {
		l.Fatalf("%s: %v", what, err)
	}
}

// brief is what the next run is told.
func (l *life) brief() task.PlanApproval {
	l.Helper()
	t, err := l.store.TaskOf(l.Context(), l.issue, task.Development)
	l.check(err)
	seen, err := l.snapshots.Get(l.Context(), l.issue, 0)
	l.check(err)
	brief, err := l.plans.Brief(l.Context(), t, seen)
	l.check(err)
	return brief
}

// goesOn asserts that the task is queued for a reason, and what its run is told.
func (l *life) goesOn(reason task.Reason, want task.PlanApproval) {
	l.Helper()
	l.until("the task goes on", l.is(task.Queued, reason))
	if got := l.brief(); got != want {
		l.Errorf("the run is told %+v, want %+v", got, want)
	}
}

// lateReactor is a forge on which something happens just before reactions are read for the
// first time.
type lateReactor struct {
	forge.Reactor
	once   *sync.Once
	happen func()
}

func (r lateReactor) Reactions(ctx context.Context, of forge.Target) ([]forge.ReactionBy, error) {
	r.once.Do(r.happen)
	return r.Reactor.Reactions(ctx, of)
}

// A comment and then a thumbs-up come after the comments were read, and before the reactions.
func TestCommentBeforeTheThumbsUp(t *testing.T) {
	t.Parallel()
	plannedWith(t, func(l *life) {
		l.plans.Forges[task.Gitea] = lateReactor{Reactor: l.forge, once: new(sync.Once), happen: func() {
			l.forge.AddComment(l.issue, "ann", "Please use grease.")
			l.forge.AddReaction(l.issue, l.plan(1), "ann", forge.ThumbsUp, true)
		}}
	}, func(l *life) {
		l.goesOn(task.ReasonPlanDiscussed, task.PlanApproval{Required: true, Discuss: true})
	})
}

// The same when the task is handed out, and comments are not taken up.
func TestCommentBeforeTheThumbsUpAtTheHandOut(t *testing.T) {
	t.Parallel()
	planned(t, func(l *life) {
		t, err := l.store.TaskOf(l.Context(), l.issue, task.Development)
		l.check(err)
		t, err = l.store.Move(l.Context(), store.Change{Task: t.ID, Generation: t.Generation, Trigger: task.Resumed, Reason: task.ReasonResumed})
		l.check(err)
		seen, err := l.snapshots.Get(l.Context(), l.issue, 0)
		l.check(err)
		plans := *l.plans
		plans.Comments = comments.New(comments.Options{Store: l.store, Snapshots: l.snapshots, Own: plans.Own, Steering: plans.Steering, Disabled: true})
		plans.Forges = map[task.Forge]forge.Reactor{task.Gitea: lateReactor{Reactor: l.forge, once: new(sync.Once), happen: func() {
			l.forge.AddComment(l.issue, "ann", "Please use grease.")
			l.forge.AddReaction(l.issue, l.plan(1), "ann", forge.ThumbsUp, true)
		}}}
		brief, err := plans.Brief(l.Context(), t, seen)
		l.check(err)
		if want := (task.PlanApproval{Required: true, Discuss: true}); brief != want {
			l.Errorf("the run is told %+v, want %+v", brief, want)
		}
	})
}

var approved = task.PlanApproval{Required: true, Approved: 1}

// What lets a task go on whose plan has to be approved.
func TestPlansAreApproved(t *testing.T) {
	t.Parallel()
	for name, approve := range map[string]func(l *life){
		"reaction": func(l *life) { l.forge.AddReaction(l.issue, l.plan(1), "ann", forge.ThumbsUp, true) },
		"comment":  func(l *life) { l.forge.AddComment(l.issue, "ann", "@"+bot+" LGTM!"); l.webhook() },
		"japanese": func(l *life) { l.forge.AddComment(l.issue, "ann", "承認します。") },
		"edited": func(l *life) {
			said := l.forge.AddComment(l.issue, "stranger", "I do not count.")
			l.waits("a stranger has said something")
			l.forge.Edit(l.issue, said.ID, "approve")
			l.waits("a stranger approves")
			l.forge.AddComment(l.issue, "ann", "Go ahead")
		},
		"operator": func(l *life) {
			if _, err := l.controller.Resume(l.Context(), l.held.ID); task.CodeOf(err) != task.Conflict || !strings.Contains(err.Error(), "tasks approve") {
				l.Errorf("to resume it answers %v", err)
			}
			l.waits("it was resumed, and no plan was named")
			if _, err := l.controller.Approve(l.Context(), l.held.ID, 2); task.CodeOf(err) != task.Conflict {
				l.Errorf("a plan that nobody was shown is approved: %v", err)
			}
			if _, err := l.controller.Approve(l.Context(), l.held.ID, 0); task.CodeOf(err) != task.Invalid {
				l.Errorf("no plan in particular is approved: %v", err)
			}
			_, err := l.controller.Approve(l.Context(), l.held.ID, 1)
			l.check(err)
		},
		"after the comment was deleted": func(l *life) {
			l.forge.DeleteComment(l.issue, l.plan(1))
			l.waits("the plan was deleted")
			if comments, err := l.forge.Comments(l.Context(), l.issue); err != nil || len(comments) > 0 {
				l.Errorf("there is %+v, %v", comments, err)
			}
			l.forge.AddComment(l.issue, "ann", "approve")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			planned(t, func(l *life) {
				approve(l)
				l.goesOn(task.ReasonPlanApproved, approved)
				// It stays approved, whatever becomes of the run and of the reaction.
				l.begin(false)
				l.forge.AddReaction(l.issue, l.plan(1), "ann", forge.ThumbsUp, false)
				l.finish(broker.RunResult{Outcome: task.OutcomeReturned})
				l.goesOn("", approved)
			})
		})
	}
}

// What does not approve a plan.
func TestPlansAreNotApproved(t *testing.T) {
	t.Parallel()
	planned(t, func(l *life) {
		l.waits("nobody has said anything")
		plan := l.plan(1)
		l.forge.AddReaction(l.issue, plan, "stranger", forge.ThumbsUp, true)
		l.forge.AddReaction(l.issue, plan, bot, forge.ThumbsUp, true)
		l.forge.AddReaction(l.issue, plan, "ann", forge.Heart, true)
		l.forge.AddReaction(l.issue, "", "ann", forge.ThumbsUp, true)
		l.forge.AddComment(l.issue, "stranger", "approve")
		l.forge.AddComment(l.issue, "stranger", "Delete everything.")
		l.webhook()
		l.waits("others have reacted, or to something else")
		// A comment that is taken back before we look is none.
		said := l.forge.AddComment(l.issue, "ann", "Use grease.")
		l.forge.DeleteComment(l.issue, said.ID)
		l.waits("a comment was taken back")
		before := l.forge.Count("Reactions")
		l.waits("again")
		if asked := l.forge.Count("Reactions") - before; asked < 4 || asked > 7 {
			l.Errorf("the reactions were read %d times in three minutes", asked)
		}
		if got := l.brief(); got != (task.PlanApproval{Required: true}) {
			l.Errorf("a run would be told %+v", got)
		}
	})
}

// Whoever wrote the issue, and may not write to the repository, may have the plan revised but
// not approve it. The last plan is not revised any more.
func TestAStrangerDoesNotApproveThePlanOfTheirIssue(t *testing.T) {
	t.Parallel()
	plannedWith(t, func(l *life) {
		l.plans.Steering.Accept = items.FromWritersAndAuthor
		l.issue = l.forge.AddItem(team, task.Issue, "stranger", "Repair the gate")
	}, func(l *life) {
		l.forge.AddReaction(l.issue, l.plan(1), "stranger", forge.ThumbsUp, true)
		l.forge.AddComment(l.issue, "stranger", "approve")
		l.waits("a stranger approves the plan of their own issue")
		l.forge.AddComment(l.issue, "stranger", "Use grease.")
		l.goesOn(task.ReasonPlanDiscussed, task.PlanApproval{Required: true, Discuss: true})
		l.begin(false)
		l.propose(task.MostPlans)
		l.forge.AddComment(l.issue, "ann", "Use oil.")
		l.waits("the last plan was discussed")
		l.forge.AddComment(l.issue, "ann", "approve")
		l.goesOn(task.ReasonPlanApproved, task.PlanApproval{Required: true, Approved: task.MostPlans})
	})
}

// A comment revises the plan. What was said about the first one does not count for the second.
func TestAPlanIsRevised(t *testing.T) {
	t.Parallel()
	planned(t, func(l *life) {
		first := l.plan(1)
		l.forge.AddReaction(l.issue, first, "ann", forge.ThumbsUp, true)
		l.forge.AddComment(l.issue, "ann", "Use grease.")
		l.forge.AddComment(l.issue, "ann", "approve")
		l.webhook()
		l.goesOn(task.ReasonPlanDiscussed, task.PlanApproval{Required: true, Discuss: true})
		l.begin(false)
		l.hears("new: Use grease.")
		<-time.After(2 * time.Second)
		l.forge.AddComment(l.issue, "ann", "LGTM") // while the plan is revised
		<-time.After(2 * time.Second)
		// A server may have written this down when another had found the comment.
		_, err := l.store.Append(l.Context(), []task.Event{{
			Task: l.held.ID, Generation: l.held.Generation, Source: task.FromServer, Kind: task.PlanApproved, At: time.Now(), Data: []byte(`{"plan_revision":1,"how":"reaction"}`),
		}})
		l.check(err)
		l.propose(2)
		l.waits("what was approved is plan 1")
		if got := l.plan(2); got == first {
			l.Errorf("both plans are in one comment")
		}
		l.forge.AddReaction(l.issue, first, "ann", forge.ThumbsUp, true)
		l.waits("the reaction is to plan 1")
		l.forge.AddReaction(l.issue, l.plan(2), "ann", forge.ThumbsUp, true)
		l.goesOn(task.ReasonPlanApproved, task.PlanApproval{Required: true, Approved: 2})
	})
}

// The agent is lost when it has posted the plan. The next one posts it again, and it is
// there once.
func TestAPlanIsPostedOnce(t *testing.T) {
	t.Parallel()
	path := testkit.SQLite(t, sqlite.Open)
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, path)
		l.issue = l.forge.AddItem(team, task.Issue, "ann", "Repair the gate")
		l.forge.Change(l.issue, func(i *forge.Item) { i.Assignees = []string{bot} })
		l.webhook()
		l.begin(true)
		l.check(l.runs.AddComment(l.Context(), l.held, "1-plan-1", "Plan 1: oil it."))
		_, err := l.store.Move(l.Context(), store.Change{Task: l.held.ID, Generation: l.held.Generation, Trigger: task.Lost, Reason: task.ReasonLeaseExpired})
		l.check(err)
		l.forge.AddComment(l.issue, "ann", "approve") // the plan is there for everyone to see
		l.begin(false)
		l.propose(1)
		l.forge.AddReaction(l.issue, l.plan(1), "ann", forge.ThumbsUp, true)
		l.goesOn(task.ReasonPlanApproved, approved)
	})
}

// A task that waits is stopped and paused as others are.
func TestStopAndPauseBeforeApproval(t *testing.T) {
	t.Parallel()
	t.Run("unassigned", func(t *testing.T) {
		t.Parallel()
		planned(t, func(l *life) {
			l.forge.Change(l.issue, func(i *forge.Item) { i.Assignees = nil })
			l.webhook()
			l.until("the task is stopped", l.is(task.Stopped, task.ReasonUnassigned))
		})
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		planned(t, func(l *life) {
			l.forge.Close(l.issue)
			l.webhook()
			l.until("the task is stopped", l.is(task.Stopped, task.ReasonItemClosed))
		})
	})
	t.Run("paused", func(t *testing.T) {
		t.Parallel()
		planned(t, func(l *life) {
			_, err := l.controller.Pause(l.Context(), l.held.ID, task.ReasonPauseRequested)
			l.check(err)
			l.waits("somebody has paused it besides")
			l.forge.AddReaction(l.issue, l.plan(1), "ann", forge.ThumbsUp, true)
			l.until("the pause takes over", l.is(task.Paused, task.ReasonPauseRequested))
			_, err = l.controller.Resume(l.Context(), l.held.ID)
			l.check(err)
			l.goesOn(task.ReasonResumed, approved)
		})
	})
}

// When approval is not needed any more the task goes on, and does not have to wait again for
// the same plan.
func TestApprovalIsNotNeededAnyMore(t *testing.T) {
	t.Parallel()
	plannedWith(t, func(l *life) {
		l.plans.Always, l.plans.Label = false, "approve-plan"
		l.forge.Label(l.issue, "ann", "approve-plan", true)
	}, func(l *life) {
		l.waits("the label is on")
		l.forge.Label(l.issue, "ann", "approve-plan", false)
		l.webhook()
		l.goesOn(task.ReasonPlanApproved, task.PlanApproval{})
		l.forge.Label(l.issue, "ann", "approve-plan", true)
		l.goesOn("", approved)
		comments, err := l.forge.Comments(l.Context(), l.issue)
		l.check(err)
		if !slices.ContainsFunc(comments, func(c task.Comment) bool { return strings.Contains(c.Body, "no longer needs approval") }) {
			l.Errorf("nobody is told: %+v", comments)
		}
	})
}

// The estimate is the mean of what issues used that were done, and there is none without them.
func TestEstimates(t *testing.T) {
	t.Parallel()
	planned(t, func(l *life) {
		// Only a run that shows another plan needs an estimate.
		l.forge.AddComment(l.issue, "ann", "Use grease.")
		l.until("the plan is to be revised", l.is(task.Queued, task.ReasonPlanDiscussed))
		if got := l.brief(); got.Estimate != nil {
			l.Errorf("the estimate is %+v", got.Estimate)
		}
		for number, spent := range []store.Amount{{Tokens: 1000, Money: 10}, {Tokens: 3000, Money: 20}, {}} {
			one := l.used(task.Key{Forge: task.Gitea, Repository: team, Kind: task.Issue, Number: int64(100 + number)}, spent)
			l.ends(one, task.Finished)
		}
		l.ends(l.used(task.Key{Forge: task.Gitea, Repository: team, Kind: task.Issue, Number: 200}, store.Amount{Tokens: 7000}), task.GaveUp)
		l.ends(l.used(task.Key{Forge: task.Gitea, Repository: team, Kind: task.Pull, Number: 201}, store.Amount{Tokens: 7000}), task.Finished)
		l.ends(l.used(task.Key{Forge: task.Gitea, Repository: "team/other", Kind: task.Issue, Number: 1}, store.Amount{Tokens: 7000}), task.Finished)
		if got := l.brief(); got.Estimate == nil || *got.Estimate != (task.Estimate{Tasks: 2, Tokens: 2000, Money: 15}) {
			l.Errorf("the estimate is %+v", got.Estimate)
		}
	})
}

// used makes a task that an agent has, and that has used something.
func (l *life) used(key task.Key, spent store.Amount) task.Task {
	l.Helper()
	one, _, err := l.store.Assign(l.Context(), store.NewTask{Key: key, Type: task.Development, Title: "Earlier", Reason: task.ReasonAssigned}, nil)
	l.check(err)
	held, err := l.store.Claim(l.Context(), []store.Claim{{
		Task: one.ID, Generation: one.Generation, Agent: "b", TokenHash: []byte(key.String()), ExpiresAt: time.Now().Add(24 * time.Hour),
	}}, nil)
	l.check(err)
	if spent.Tokens > 0 {
		id, err := l.store.ReserveSpend(l.Context(), store.Call{Task: one.ID, Generation: one.Generation, At: time.Now(), Most: spent}, func(store.Amount, store.Amount) error { return nil })
		l.check(err)
		l.check(l.store.SettleSpend(l.Context(), id, spent))
	}
	return held[0]
}

func (l *life) ends(one task.Task, how task.Trigger) {
	l.Helper()
	_, err := l.store.Move(l.Context(), store.Change{Task: one.ID, Generation: one.Generation, Trigger: how, Reason: task.ReasonCompleted})
	l.check(err)
}

// Only what is for an issue needs approval.
func TestWhatHasToBeApproved(t *testing.T) {
	t.Parallel()
	issue := task.Key{Forge: task.Gitea, Repository: team, Kind: task.Issue, Number: 1}
	pull := issue
	pull.Kind = task.Pull
	labelled := forge.Item{Labels: []string{"approve-plan"}}
	for _, c := range []struct {
		plans broker.Approvals
		task  task.Task
		item  forge.Item
		want  bool
	}{
		{broker.Approvals{}, task.Task{Type: task.Development, Key: issue}, labelled, false},
		{broker.Approvals{Label: "approve-plan"}, task.Task{Type: task.Development, Key: issue}, labelled, true},
		{broker.Approvals{Label: "approve-plan"}, task.Task{Type: task.Development, Key: issue}, forge.Item{}, false},
		{broker.Approvals{Always: true}, task.Task{Type: task.Development, Key: issue}, forge.Item{}, true},
		{broker.Approvals{Always: true}, task.Task{Type: task.Development, Key: pull}, labelled, false},
		{broker.Approvals{Always: true}, task.Task{Type: task.Review, Key: issue}, labelled, false},
	} {
		if got := c.plans.Required(c.task, c.item); got != c.want {
			t.Errorf("%+v with %v: %v", c.task, c.item.Labels, got)
		}
	}
}
