package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// fixUp makes an issue, the pull request of its task, and a task for the changes that a
// review asks for. The bot is assigned to the issue and, if so wanted, to the pull request.
func (o *office) fixUp(onPull bool) (issue, pull task.Key) {
	o.Helper()
	issue = o.issue("Repair the gate")
	o.look(issue)
	pull = o.pull(o.finish(o.task(issue, task.Development), "writer").Branch, "Closes #1")
	o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges, Body: "Oil it."})
	o.sync()
	if onPull {
		o.check(o.forge.Assign(o.Context(), pull, bot))
		o.sync()
	}
	if is := o.task(pull, task.Development); is.State != task.Queued || is.Cause != task.ReasonChangesRequested {
		o.Fatalf("the task is %+v", is)
	}
	return issue, pull
}

// reviewOf makes a review task that is due, of a pull request with the label on itself or
// on its issue.
func (o *office) reviewOf(onIssue bool) (issue, pull task.Key) {
	o.Helper()
	issue = o.issue("Repair the gate")
	o.look(issue)
	pull = o.pull(o.finish(o.task(issue, task.Development), "writer").Branch, "Closes #1")
	labeled := pull
	if onIssue {
		labeled = issue
	}
	o.check(o.forge.AddLabel(o.Context(), labeled, "needs-review"))
	o.later(time.Hour)
	o.sync()
	if is := o.task(pull, task.Review); is.State != task.Queued {
		o.Fatalf("the task is %+v", is)
	}
	return issue, pull
}

// Taking the bot off the pull request or its issue stops whatever it does there, however it
// is found out, and it does not begin again by itself.
func TestUnassigningStopsEveryKindOfTask(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind task.Type
		make func(o *office) (issue, pull task.Key)
		off  func(issue, pull task.Key) task.Key
	}{
		"fix-up, off the issue": {
			task.Development, func(o *office) (task.Key, task.Key) { return o.fixUp(false) }, func(issue, _ task.Key) task.Key { return issue },
		},
		"fix-up, off the pull request": {
			task.Development, func(o *office) (task.Key, task.Key) { return o.fixUp(true) }, func(_, pull task.Key) task.Key { return pull },
		},
		"fix-up, off the issue and still on the pull request": {
			task.Development, func(o *office) (task.Key, task.Key) { return o.fixUp(true) }, func(issue, _ task.Key) task.Key { return issue },
		},
		"review by its own label, off the issue": {
			task.Review, func(o *office) (task.Key, task.Key) { return o.reviewOf(false) }, func(issue, _ task.Key) task.Key { return issue },
		},
		"review by the label of the issue, off the issue": {
			task.Review, func(o *office) (task.Key, task.Key) { return o.reviewOf(true) }, func(issue, _ task.Key) task.Key { return issue },
		},
	} {
		for way, look := range map[string]func(o *office, off, pull task.Key){
			"by a webhook":         func(o *office, off, _ task.Key) { o.look(off) },
			"by a look at its run": func(o *office, _, pull task.Key) { o.look(pull) },
			"by polling":           func(o *office, _, _ task.Key) { o.sync() },
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				o := newOffice(t)
				issue, pull := test.make(o)
				running := o.claim(o.task(pull, test.kind), "writer")
				o.sync()
				if is := o.task(pull, test.kind); is.State != task.Running {
					t.Fatalf("the task is %+v", is)
				}
				off := test.off(issue, pull)
				o.check(o.forge.Unassign(t.Context(), off, bot))
				o.later(time.Minute)
				look(o, off, pull)
				is := o.task(pull, test.kind)
				if is.State != task.Stopped || is.Reason != task.ReasonUnassigned || is.Generation != running.Generation+1 {
					t.Fatalf("the task is %+v", is)
				}
				for range 2 {
					o.sync()
					o.look(pull)
					o.look(issue)
				}
				if now := o.task(pull, test.kind); now.State != task.Stopped {
					t.Errorf("it began again by itself: %+v", now)
				}
			})
		}
	}
}

// A review that asks again, and a new assignment, are new tasks.
func TestAFixUpThatWasStoppedCanBeAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(o *office, pull task.Key){
		"by a review": func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "bob", Verdict: forge.RequestChanges, At: o.now().Add(time.Hour)})
		},
		"by an assignment": func(o *office, pull task.Key) {
			o.check(o.forge.Assign(o.Context(), pull, bot))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			_, pull := o.fixUp(true)
			o.check(o.forge.Unassign(t.Context(), pull, bot))
			o.sync()
			stopped := o.task(pull, task.Development)
			if stopped.State != task.Stopped {
				t.Fatalf("the task is %+v", stopped)
			}
			ask(o, pull)
			o.sync()
			o.sync()
			if is := o.task(pull, task.Development); is.State != task.Queued || is.Generation != stopped.Generation+1 {
				t.Errorf("the task is %+v", is)
			}
		})
	}
}

// An issue that cannot be read, or that is gone, stops no work on its pull request.
func TestAnUnreadableIssueStopsNoFixUp(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	issue, pull := o.fixUp(false)
	o.claim(o.task(pull, task.Development), "writer")
	o.check(o.forge.Unassign(t.Context(), issue, bot))
	o.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "Item" && call.Key == issue {
			return dummy.Refuse
		}
		return dummy.None
	})
	o.later(time.Hour)
	if err := o.intake.Look(t.Context(), pull, 0); err == nil {
		t.Error("nothing is said about an issue that cannot be read")
	}
	if is := o.task(pull, task.Development); is.State != task.Running {
		t.Fatalf("the task is %+v", is)
	}
	o.forge.SetFaults(nil)
	o.look(pull)
	if is := o.task(pull, task.Development); is.State != task.Stopped || is.Reason != task.ReasonUnassigned {
		t.Fatalf("the task is %+v", is)
	}
}

// With the switch off, taking the bot off stops nothing; everything else that ends a task
// still does, and looks are not logged.
func TestUnassigningCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	off := func(options *intake.Options) { options.KeepUnassigned = true }
	t.Run("development", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, off)
		key := o.issue("Repair the gate")
		o.look(key)
		is := o.claim(o.task(key, task.Development), "writer")
		o.check(o.forge.Unassign(t.Context(), key, bot))
		before := o.log.String()
		for range 3 {
			o.sync()
			o.look(key)
		}
		if now := o.task(key, task.Development); now.State != task.Running {
			t.Fatalf("the task is %+v", now)
		}
		if said := strings.TrimPrefix(o.log.String(), before); said != "" {
			t.Errorf("looks are logged:\n%s", said)
		}
		o.forge.Close(key)
		o.look(key)
		if now := o.task(key, task.Development); now.State != task.Stopped || now.Reason != task.ReasonItemClosed || now.Generation != is.Generation+1 {
			t.Errorf("the task of a closed item is %+v", now)
		}
	})
	t.Run("assigned again after the end", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, off)
		key := o.issue("Repair the gate")
		o.look(key)
		is := o.task(key, task.Development)
		o.check(o.forge.Unassign(t.Context(), key, bot))
		o.look(key)
		o.finish(is, "writer")
		o.sync()
		o.check(o.forge.Assign(t.Context(), key, bot))
		o.sync()
		if now := o.task(key, task.Development); now.State != task.Queued || now.Generation <= is.Generation {
			t.Errorf("the task is %+v", now)
		}
	})
	t.Run("fix-up", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, off)
		issue, pull := o.fixUp(true)
		for _, key := range []task.Key{issue, pull} {
			o.check(o.forge.Unassign(t.Context(), key, bot))
			o.sync()
		}
		if is := o.task(pull, task.Development); is.State != task.Queued {
			t.Fatalf("the task is %+v", is)
		}
		o.forge.Close(pull)
		o.look(pull)
		if is := o.task(pull, task.Development); is.State != task.Stopped || is.Reason != task.ReasonItemClosed {
			t.Errorf("the task of a closed pull request is %+v", is)
		}
	})
	t.Run("review that is not needed", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t, off)
		issue, pull := o.reviewOf(false)
		o.check(o.forge.Unassign(t.Context(), issue, bot))
		o.sync()
		if is := o.task(pull, task.Review); is.State != task.Queued {
			t.Fatalf("the task is %+v", is)
		}
		o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Approve, At: o.now()})
		o.sync()
		if is := o.task(pull, task.Review); is.State != task.Stopped || is.Reason != task.ReasonReviewNotNeeded {
			t.Errorf("the task is %+v", is)
		}
	})
}

// A fix-up that somebody lets run again after it was stopped is not stopped for the same
// reason.
func TestARetriedFixUpGoesOn(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	issue, pull := o.fixUp(false)
	o.check(o.forge.Unassign(t.Context(), issue, bot))
	o.look(issue)
	stopped := o.task(pull, task.Development)
	if stopped.State != task.Stopped {
		t.Fatalf("the task is %+v", stopped)
	}
	_, err := o.store.Move(t.Context(), store.Change{Task: stopped.ID, Trigger: task.Assigned, Reason: task.ReasonRetried})
	o.check(err)
	o.sync()
	o.look(issue)
	if is := o.task(pull, task.Development); is.State != task.Queued {
		t.Errorf("the task is %+v", is)
	}
}

// Taking somebody else off the item, or off the issue that it belongs to, stops nothing,
// and neither does it that the bot makes the author an assignee; however that is found out.
func TestOtherAssigneesStopNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind task.Type
		make func(o *office) (issue, on task.Key)
	}{
		"development": {task.Development, func(o *office) (task.Key, task.Key) {
			key := o.issue("Repair the gate")
			o.look(key)
			return key, key
		}},
		"fix-up":                           {task.Development, func(o *office) (task.Key, task.Key) { return o.fixUp(false) }},
		"fix-up with the bot on both":      {task.Development, func(o *office) (task.Key, task.Key) { return o.fixUp(true) }},
		"review by its own label":          {task.Review, func(o *office) (task.Key, task.Key) { return o.reviewOf(false) }},
		"review by the label of the issue": {task.Review, func(o *office) (task.Key, task.Key) { return o.reviewOf(true) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			issue, on := test.make(o)
			o.claim(o.task(on, test.kind), "writer")
			for _, key := range []task.Key{issue, on} {
				o.check(o.forge.Assign(t.Context(), key, "carol"))
			}
			o.sync()
			for _, key := range []task.Key{issue, on} {
				o.check(o.forge.Unassign(t.Context(), key, "carol"))
				o.later(time.Minute)
				o.look(key)
				o.look(on)
				o.sync()
			}
			o.check(o.forge.Assign(t.Context(), on, "ann")) // as the bot does when it asks for a review
			o.later(time.Minute)
			o.look(on)
			o.sync()
			if is := o.task(on, test.kind); is.State != task.Running || is.Generation != 1 {
				t.Errorf("the task is %s because of %s, in generation %d", is.State, is.Reason, is.Generation)
			}
			o.check(o.forge.Unassign(t.Context(), issue, bot))
			o.later(time.Minute)
			o.look(issue)
			if is := o.task(on, test.kind); is.State != task.Stopped || is.Reason != task.ReasonUnassigned {
				t.Errorf("without the bot on the issue the task is %s because of %s", is.State, is.Reason)
			}
		})
	}
}
