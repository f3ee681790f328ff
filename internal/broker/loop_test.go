package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/forge"
	reviewing "github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const needsReview = "needs-review"

// newLoop is an office whose forge has the office's clock, and whose outbox is sent.
func newLoop(t *testing.T) *office {
	t.Helper()
	o := newOffice(t)
	o.forge.SetClock(o.now)
	o.sender.Start(t.Context())
	t.Cleanup(func() { o.sender.Stop(context.WithoutCancel(t.Context())) })
	return o
}

// deliver waits until everything was written to an item.
func (o *office) deliver(key task.Key) {
	o.Helper()
	until(o.T, "everything is written", func() bool {
		o.sender.Wake()
		pending, err := o.store.PendingActions(o.Context(), key)
		o.check(err)
		return len(pending) == 0
	})
}

// reviewed ends the review of a pull request with a verdict, by the way that it takes from
// an agent to the forge.
func (o *office) reviewed(pull task.Key, verdict forge.Verdict) {
	o.Helper()
	item, err := o.forge.Item(o.Context(), pull)
	o.check(err)
	t := o.task(pull, task.Review)
	if t.State != task.Queued {
		o.Fatalf("the review is %+v", t)
	}
	service := reviewing.New(reviewing.Options{Store: o.store, Now: o.now})
	defer service.Stop()
	_, err = service.Reviewed(o.Context(), pull, judge.Report{
		Commit: item.HeadCommit, Question: "What is it for?", Answer: "$$[1]\nIt opens the gate.",
		Judgement: json.RawMessage(`{"overall_review":"It creaks."}`), Verdict: string(verdict), Text: "Verdict: " + string(verdict),
	})
	o.check(err)
	o.finish(t, "reviewer")
	o.deliver(pull)
}

// publish is what the end of a run does to its pull request.
func (o *office) publish(pull task.Key, commit string) {
	o.Helper()
	o.later(time.Minute)
	o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = commit })
	o.check(o.forge.AddLabel(o.Context(), pull, needsReview))
}

func (o *office) labeled(key task.Key) bool {
	o.Helper()
	item, err := o.forge.Item(o.Context(), key)
	o.check(err)
	return item.HasLabel(needsReview)
}

func (o *office) comments(key task.Key) (bodies []string) {
	o.Helper()
	comments, err := o.forge.Comments(o.Context(), key)
	o.check(err)
	for _, comment := range comments {
		bodies = append(bodies, forge.StripMarker(comment.Body))
	}
	return bodies
}

// A review of ours that requests changes on a pull request of ours is a remark on the forge,
// and leads to changes all the same, until it does not any more or a person has to decide.
func TestOurOwnReviewsLeadToChanges(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	issue := o.issue("Fix the gate", "BACKENDCODER")
	o.look(issue)
	pull := o.pull(o.finish(o.task(issue, task.Development), "writer").Branch, "Closes #1")
	o.publish(pull, "c1")
	for round := 1; ; round++ {
		o.later(time.Hour)
		o.sync()
		o.reviewed(pull, forge.RequestChanges)
		o.sync()
		o.deliver(pull)
		if o.labeled(pull) {
			t.Fatalf("round %d: the label was answered and is still on", round)
		}
		fix, err := o.store.TaskOf(t.Context(), pull, task.Development)
		if err != nil || fix.State != task.Queued {
			if round != 3 {
				t.Fatalf("there were %d rounds: %+v, %v", round-1, fix, err)
			}
			break
		}
		if fix.Reason != task.ReasonChangesRequested || fix.Role != "BACKENDCODER" {
			t.Fatalf("the task is %+v", fix)
		}
		o.finish(fix, "writer")
		o.sync()
		if again := o.task(pull, task.Development); again.State != task.Done {
			t.Fatalf("the same review leads to changes twice: %+v", again)
		}
		o.publish(pull, fmt.Sprint("c", round+1))
	}
	reviews, err := o.forge.Reviews(t.Context(), pull)
	if err != nil || len(reviews) != 3 || slices.ContainsFunc(reviews, func(r forge.Review) bool { return r.Verdict != forge.Remark }) {
		t.Errorf("the forge has %+v, %v", reviews, err)
	}
	o.sync()
	o.deliver(pull)
	if said := o.comments(pull); len(said) != 1 || !strings.Contains(said[0], "A person has to decide") || !strings.Contains(said[0], "2 times") {
		t.Errorf("people are told %q", said)
	}

	// A person decides: that is done, and our reviews may ask again.
	o.later(time.Minute)
	o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges, Commit: "c3"})
	o.sync()
	o.finish(o.task(pull, task.Development), "writer")
	o.publish(pull, "c4")
	o.later(time.Hour)
	o.sync()
	o.reviewed(pull, forge.RequestChanges)
	o.sync()
	if fix := o.task(pull, task.Development); fix.State != task.Queued {
		t.Errorf("after a person's request our review leads to nothing: %+v", fix)
	}
}

// A review of ours counts for the commit that it is of.
func TestOurReviewOfAnOlderCommit(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	pull := o.pull("feature", "")
	o.publish(pull, "c1")
	o.later(time.Hour)
	o.sync()
	o.reviewed(pull, forge.RequestChanges)
	o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" }) // somebody pushed
	o.sync()
	o.noTask(pull, task.Development)
	o.deliver(pull)
	if !o.labeled(pull) {
		t.Error("the label is gone, and nobody has reviewed what was pushed")
	}
	if again := o.task(pull, task.Review); again.State != task.Queued {
		t.Errorf("what was pushed is not reviewed: %+v", again)
	}
}

func TestApprovalEndsTheLoop(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	pull := o.pull("feature", "")
	o.publish(pull, "c1")
	o.later(time.Hour)
	o.sync()
	o.reviewed(pull, forge.RequestChanges)
	o.sync()
	o.finish(o.task(pull, task.Development), "writer")
	o.publish(pull, "c2")
	o.later(time.Hour)
	o.sync()
	o.reviewed(pull, forge.Approve)
	o.sync()
	o.deliver(pull)
	if now := o.task(pull, task.Development); now.State != task.Done {
		t.Errorf("an approval leads to changes: %+v", now)
	}
	if o.labeled(pull) {
		t.Error("the label is still on")
	}
}

// A review that a person has deleted on the forge does not stand.
func TestADeletedReviewOfOursLeadsToNothing(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	pull := o.pull("feature", "")
	o.publish(pull, "c1")
	o.later(time.Hour)
	o.sync()
	o.reviewed(pull, forge.RequestChanges)
	reviews, err := o.forge.Reviews(t.Context(), pull)
	o.check(err)
	o.forge.DeleteReview(pull, reviews[0].ID)
	o.sync()
	o.noTask(pull, task.Development)
}

// Each of these asks for a review of what is there now.
func TestAReviewCanBeAskedForAgain(t *testing.T) {
	t.Parallel()
	relabel := func(o *office, pull task.Key) {
		o.later(time.Minute)
		o.forge.Label(pull, "ann", needsReview, false)
		o.later(time.Minute)
		o.forge.Label(pull, "ann", needsReview, true)
	}
	for name, change := range map[string]func(o *office, pull task.Key){
		"after a person's request and the change": func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges, Commit: "c1"})
			o.sync()
			o.deliver(pull)
			o.finish(o.task(pull, task.Development), "writer")
			o.publish(pull, "c2")
		},
		"the same where the forge names no commit": func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges})
			o.sync()
			o.deliver(pull)
			o.finish(o.task(pull, task.Development), "writer")
			o.publish(pull, "c2")
		},
		"after a failure, by the label": func(o *office, pull task.Key) {
			o.later(time.Hour)
			o.sync()
			_, err := o.store.Move(o.Context(), store.Change{Task: o.claim(o.task(pull, task.Review), "reviewer").ID, Trigger: task.GaveUp, Reason: task.ReasonRunFailed})
			o.check(err)
			o.sync()
			if is := o.task(pull, task.Review); is.State != task.Failed {
				o.Fatalf("it began again by itself: %+v", is)
			}
			relabel(o, pull)
		},
		"after a remark, by a push": func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Remark, Commit: "c1"})
			o.later(time.Hour)
			o.sync()
			o.noTask(pull, task.Review)
			o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" })
		},
		"after a remark of a stranger": func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "eve", Verdict: forge.Remark, Commit: "c1"})
		},
		"after the label was taken off": func(o *office, pull task.Key) {
			o.later(time.Hour)
			o.sync()
			o.forge.Label(pull, "ann", needsReview, false)
			o.look(pull)
			if is := o.task(pull, task.Review); is.State != task.Stopped || is.Reason != task.ReasonUnlabeled {
				o.Fatalf("without the label the review is %+v", is)
			}
			relabel(o, pull)
		},
		"when a draft is ready": func(o *office, pull task.Key) {
			o.forge.Change(pull, func(i *forge.Item) { i.Draft = true })
			o.later(time.Hour)
			o.sync()
			o.noTask(pull, task.Review)
			o.forge.Change(pull, func(i *forge.Item) { i.Draft = false })
		},
		"when a closed one is opened again": func(o *office, pull task.Key) {
			o.later(time.Hour)
			o.sync()
			o.forge.Close(pull)
			o.look(pull)
			o.forge.Change(pull, func(i *forge.Item) { i.State = forge.Open })
			relabel(o, pull)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newLoop(t)
			pull := o.pull("feature", "")
			o.publish(pull, "c1")
			o.later(time.Minute)
			change(o, pull)
			o.later(time.Hour)
			o.sync()
			if is := o.task(pull, task.Review); is.State != task.Queued {
				t.Errorf("the review is %+v", is)
			}
		})
	}
}

// A commit that we have reviewed is not reviewed again, and who asks for it is told so.
func TestACommitIsReviewedOnce(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	pull := o.pull("feature", "")
	o.publish(pull, "c1")
	o.later(time.Hour)
	o.sync()
	o.reviewed(pull, forge.Approve)
	o.sync()
	o.deliver(pull)
	o.later(time.Minute)
	o.forge.Label(pull, "ann", needsReview, true)
	for range 3 {
		o.sync()
	}
	o.deliver(pull)
	if said := o.comments(pull); len(said) != 1 || !strings.Contains(said[0], "reviewed commit c1 before") {
		t.Errorf("people are told %q", said)
	}
	if o.labeled(pull) {
		t.Error("the label is still on")
	}
	if is := o.task(pull, task.Review); is.State != task.Done {
		t.Errorf("the review is %+v", is)
	}
}

// Whatever happened to a pull request, in whichever order: once it is open, ready and has
// the label, and its time has come, it is reviewed; or its head was reviewed and the label
// is taken off; or a person is looking at this very commit; or this review has failed.
// Taking the label off and putting it on again then asks anew.
func TestTheLabelHasNoDeadEnds(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	branches := 0
	rapid.Check(t, func(r *rapid.T) {
		branches++
		pull := o.pull(fmt.Sprint("feature", branches), "")
		head := 1
		push := func() {
			head++
			o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = fmt.Sprint("c", head) })
		}
		commit := func() string { return fmt.Sprint("c", head) }
		judge := func(verdict forge.Verdict) func() {
			return func() { o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: verdict, Commit: commit()}) }
		}
		queued := func(kind task.Type) (task.Task, bool) {
			is, err := o.store.TaskOf(t.Context(), pull, kind)
			return is, err == nil && is.State == task.Queued
		}
		ourReview := func(verdict forge.Verdict) func() {
			return func() {
				if _, found := queued(task.Review); found {
					o.reviewed(pull, verdict)
				}
			}
		}
		events := map[string]func(){
			"label on":  func() { o.forge.Label(pull, "ann", needsReview, true) },
			"label off": func() { o.forge.Label(pull, "ann", needsReview, false) },
			"push":      push,
			"publish":   func() { push(); o.check(o.forge.AddLabel(t.Context(), pull, needsReview)) },
			"remark":    judge(forge.Remark), "approve": judge(forge.Approve), "request": judge(forge.RequestChanges),
			"our request": ourReview(forge.RequestChanges), "our approval": ourReview(forge.Approve),
			"our review fails": func() {
				if is, found := queued(task.Review); found {
					_, err := o.store.Move(t.Context(), store.Change{Task: o.claim(is, "reviewer").ID, Trigger: task.GaveUp, Reason: task.ReasonRunFailed})
					o.check(err)
				}
			},
			"fixed": func() {
				if is, found := queued(task.Development); found {
					o.finish(is, "writer")
					push()
					o.check(o.forge.AddLabel(t.Context(), pull, needsReview))
				}
			},
			"close":   func() { o.forge.Close(pull) },
			"reopen":  func() { o.forge.Change(pull, func(i *forge.Item) { i.State = forge.Open }) },
			"draft":   func() { o.forge.Change(pull, func(i *forge.Item) { i.Draft = true }) },
			"ready":   func() { o.forge.Change(pull, func(i *forge.Item) { i.Draft = false }) },
			"look":    func() { o.look(pull) },
			"deliver": func() { o.deliver(pull) },
			"wait":    func() { o.later(time.Hour) },
		}
		names := slices.Sorted(func(yield func(string) bool) {
			for name := range events {
				if !yield(name) {
					return
				}
			}
		})
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 1, 12).Draw(r, "events") {
			o.later(time.Minute)
			events[name]()
		}
		settle := func() {
			for range 3 {
				o.later(time.Hour)
				o.look(pull)
				o.deliver(pull)
			}
		}
		o.forge.Change(pull, func(i *forge.Item) { i.State, i.Draft = forge.Open, false })
		settle()
		o.forge.Label(pull, "ann", needsReview, false)
		o.later(time.Minute)
		o.forge.Label(pull, "ann", needsReview, true)
		settle()
		reviews, err := o.forge.Reviews(t.Context(), pull)
		o.check(err)
		ours := slices.ContainsFunc(reviews, func(v forge.Review) bool { return task.SameLogin(v.Author, bot) && v.Commit == commit() })
		is, err := o.store.TaskOf(t.Context(), pull, task.Review)
		due := err == nil && is.State == task.Queued
		switch {
		case ours && o.labeled(pull):
			r.Fatalf("%s was reviewed and the label is still on", commit())
		case !ours && !due:
			r.Fatalf("nobody reviews %s: %+v, %v", commit(), is, err)
		}
	})
}
