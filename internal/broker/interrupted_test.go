package broker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// fixUps are the ways to a queued fix-up on a pull request of ours.
var fixUps = map[task.Reason]func(t *testing.T) (*office, task.Key){
	task.ReasonChangesRequested: func(t *testing.T) (*office, task.Key) {
		t.Helper()
		o := newLoop(t)
		issue := o.issue("Fix the gate", "BACKENDCODER")
		o.look(issue)
		pull := o.pull(o.finish(o.task(issue, task.Development), "writer").Branch, "Closes #1")
		o.later(time.Minute)
		o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges, Commit: "c1"})
		return o, pull
	},
	task.ReasonBaseConflict: func(t *testing.T) (*office, task.Key) {
		t.Helper()
		o, h, pull := newHistory(t)
		h.move("b2")
		return o, pull
	},
	task.ReasonChecksFailed: func(t *testing.T) (*office, task.Key) {
		t.Helper()
		c := newChecked(t)
		c.set("c1", "CI / test", forge.StatusFailure)
		return c.office, c.pull
	},
}

// A pull request that is closed ends its fix-up, whether an agent has it or not. Opened again,
// it has the same one again, and what was done then is not done once more. People may do that
// often while no agent has it.
func TestAPullThatIsClosedAndOpenedAgainInAFixUp(t *testing.T) {
	t.Parallel()
	for cause, begin := range fixUps {
		for _, running := range []bool{false, true} {
			t.Run(string(cause)+map[bool]string{true: " that runs"}[running], func(t *testing.T) {
				t.Parallel()
				o, pull := begin(t)
				for round := range map[bool]int{false: 8, true: 1}[running] {
					o.sync()
					is := o.task(pull, task.Development)
					if is.State != task.Queued || is.Cause != cause {
						t.Fatalf("round %d: the task is %+v", round, is)
					}
					if running {
						o.claim(is, "writer")
					}
					o.forge.Close(pull)
					o.look(pull)
					if is := o.task(pull, task.Development); is.State != task.Stopped || is.Reason != task.ReasonItemClosed {
						t.Fatalf("round %d: when it is closed, the task is %+v", round, is)
					}
					o.sync()
					if is := o.task(pull, task.Development); is.State != task.Stopped {
						t.Fatalf("round %d: while it is closed, the task is %+v", round, is)
					}
					o.forge.Change(pull, func(i *forge.Item) { i.State = forge.Open })
				}
				o.sync()
				o.finish(o.task(pull, task.Development), "writer")
				for range 3 {
					o.sync()
				}
				if is := o.task(pull, task.Development); is.State != task.Done {
					t.Errorf("what was done is done again: %+v", is)
				}
			})
		}
	}
}

// Who thanks in a comment, or in a review, is told so also when the pull request was closed and
// opened again before: the command is told that nothing may be to be changed, and a review that
// has the number of a comment is not taken for it.
func TestACommentAfterThePullIsOpenedAgain(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(o *office, pull task.Key){
		"a comment": func(o *office, pull task.Key) { o.forge.AddComment(pull, "ann", "@Toryo-bot thanks!") },
		"a review": func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Remark, Body: "@Toryo-bot thanks!", Commit: "c1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newLoop(t, fixUpOn(intake.OnMentions))
			issue := o.issue("Fix the gate", "BACKENDCODER")
			o.look(issue)
			pull := o.pull(o.finish(o.task(issue, task.Development), "writer").Branch, "Closes #1")
			o.later(time.Minute)
			say(o, pull)
			o.sync()
			for range 8 { // which does not count as work
				o.forge.Close(pull)
				o.look(pull)
				o.forge.Change(pull, func(i *forge.Item) { i.State = forge.Open })
				o.sync()
			}
			is := o.task(pull, task.Development)
			id, written := task.CommentOf(is.Occasion)
			if is.State != task.Queued || !written || (id == "") != (name == "a review") || !strings.Contains(is.Occasion, " reopened ") {
				t.Fatalf("the task is %+v", is)
			}
			made, err := preparer(o, &seeds{}).Prepare(t.Context(), assignment.Assignment{Task: o.claim(is, "writer")})
			o.check(err)
			if !strings.Contains(made.Prompt, "If they ask for no change, change nothing") {
				t.Errorf("the prompt is\n%s", made.Prompt)
			}
		})
	}
}

// A request that was undone by closing the pull request is done before the base is merged, also
// if it could not be read at first what its author may do. Then nothing is queued: after another
// task it would count as dealt with.
func TestAConflictAfterThePullIsOpenedAgain(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(o *office, pull task.Key){
		"a comment": func(o *office, pull task.Key) { o.forge.AddComment(pull, "ann", "@Toryo-bot oil the gate.") },
		"a review": func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges, Commit: "c1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, h, pull := newHistory(t, fixUpOn(intake.OnMentions))
			is := func(state task.State, cause task.Reason) {
				t.Helper()
				if is := o.task(pull, task.Development); is.State != state || is.Cause != cause {
					t.Fatalf("the task is %+v", is)
				}
			}
			o.later(time.Minute)
			say(o, pull)
			o.sync()
			is(task.Queued, task.ReasonChangesRequested)
			o.forge.Close(pull)
			o.look(pull)
			is(task.Stopped, task.ReasonChangesRequested)

			access := o.steering.Access
			o.steering.Access = func(context.Context, task.Key, string) (forge.Access, error) {
				return forge.NoAccess, task.Errorf(task.Unavailable, "bad gateway")
			}
			h.move("b2")
			o.forge.Change(pull, func(i *forge.Item) { i.State = forge.Open })
			if err := o.intake.Look(t.Context(), pull, 0); task.CodeOf(err) != task.Unavailable {
				t.Errorf("the look ends with %v", err)
			}
			is(task.Stopped, task.ReasonChangesRequested)

			o.steering.Access = access
			o.sync()
			is(task.Queued, task.ReasonChangesRequested)
			o.finish(o.task(pull, task.Development), "writer")
			o.sync()
			is(task.Queued, task.ReasonBaseConflict)
		})
	}
}

// A review that was done before is not done again because the pull request was closed in a
// later fix-up whose review is gone. Another review leads to a task.
func TestAReviewThatIsDismissedWhileThePullIsClosed(t *testing.T) {
	t.Parallel()
	o, pull := fixUps[task.ReasonChangesRequested](t)
	o.sync()
	o.finish(o.task(pull, task.Development), "writer")
	o.later(time.Minute)
	second := o.forge.AddReview(pull, forge.Review{Author: "bob", Verdict: forge.RequestChanges, Commit: "c1"})
	o.sync()
	if is := o.task(pull, task.Development); is.State != task.Queued {
		t.Fatalf("the task is %+v", is)
	}
	o.forge.Close(pull)
	o.look(pull)
	o.forge.DeleteReview(pull, second.ID)
	o.forge.Change(pull, func(i *forge.Item) { i.State = forge.Open })
	o.sync()
	if is := o.task(pull, task.Development); is.State != task.Stopped {
		t.Errorf("the task is %+v", is)
	}
	o.later(time.Minute)
	o.forge.AddReview(pull, forge.Review{Author: "bob", Verdict: forge.RequestChanges, Commit: "c1"})
	o.sync()
	if is := o.task(pull, task.Development); is.State != task.Queued {
		t.Errorf("after another review the task is %+v", is)
	}
}

// A pull request that is retargeted while a fix-up is queued or runs keeps it. What failed is
// compared with the new base from then on.
func TestAPullThatIsRetargetedInAFixUp(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{false, true} {
		t.Run(map[bool]string{true: "running", false: "queued"}[running], func(t *testing.T) {
			t.Parallel()
			c := newChecked(t)
			c.set("c1", "CI / test", forge.StatusFailure)
			c.sync()
			fix := c.fixUp()
			if running {
				fix = c.claim(fix, "writer")
			}
			c.forge.Change(c.pull, func(i *forge.Item) { i.Base = "release" })
			for range 3 {
				c.sync()
			}
			if is := c.task(c.pull, task.Development); is.State != fix.State || is.Generation != fix.Generation {
				t.Fatalf("the task is %+v, was %+v", is, fix)
			}
			if said := c.said(); len(said) != 0 {
				t.Errorf("people are told %q", said)
			}
			c.set("newest", "CI / test", forge.StatusFailure) // of the branch release
			if !running {
				fix = c.claim(fix, "writer")
			}
			c.end(fix)
			c.publish("c2")
			c.set("c2", "CI / test", forge.StatusFailure)
			for range 3 {
				c.sync()
			}
			if is := c.task(c.pull, task.Development); is.State != task.Done {
				t.Errorf("what fails in the new base too leads to %+v", is)
			}
			c.saidOnce("also fail in the base branch")
		})
	}
}

// A person's request for changes counts also if it is of an older commit, and once: the forge
// shows it as open until they decide anew. Ours does not; see TestOurReviewOfAnOlderCommit.
func TestAPersonsReviewOfAnOlderCommit(t *testing.T) {
	t.Parallel()
	o := newLoop(t, fixUpOn(intake.OnMentions))
	issue := o.issue("Fix the gate", "BACKENDCODER")
	o.look(issue)
	pull := o.pull(o.finish(o.task(issue, task.Development), "writer").Branch, "Closes #1")
	o.publish(pull, "c2")
	o.sync()
	o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges, Commit: "c1", Body: "Oil it."})
	o.sync()
	asked := o.task(pull, task.Development)
	if asked.State != task.Queued || asked.Cause != task.ReasonChangesRequested {
		t.Fatalf("the task is %+v", asked)
	}
	o.finish(asked, "writer")
	o.publish(pull, "c3")
	for range 3 {
		o.sync()
	}
	if is := o.task(pull, task.Development); is.State != task.Done || is.Generation != asked.Generation {
		t.Errorf("the same review of %s leads to %+v", "c1", is)
	}
}

// Nothing is held while checks do not end: there is no task, and nobody is told anything.
func TestNothingIsHeldWhileChecksRun(t *testing.T) {
	t.Parallel()
	c := newChecked(t)
	c.set("c1", "deploy", forge.StatusPending)
	for range 30 {
		c.later(time.Hour)
		c.sync()
	}
	c.noTask(c.pull, task.Development)
	if said := c.said(); len(said) != 0 {
		t.Errorf("people are told %q", said)
	}
	if strings.Contains(c.log.String(), "level=WARN") {
		t.Errorf("it is logged:\n%s", c.log)
	}
	// What is told after that is followed all the same.
	c.startIntake()
	c.set("c1", "deploy", forge.StatusFailure)
	c.told("c1")
	until(t, "the fix-up is queued", func() bool { return c.is(task.Queued) })
}
