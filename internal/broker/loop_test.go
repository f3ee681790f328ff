package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	reviewing "github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/review/verdicts"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const needsReview = "needs-review"

// newLoop is an office whose forge has the office's clock, and whose outbox is sent.
func newLoop(t *testing.T, change ...func(*intake.Options)) *office {
	t.Helper()
	o := newOffice(t, change...)
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
	t := o.task(pull, task.Review)
	if t.State != task.Queued {
		o.Fatalf("the review is %+v", t)
	}
	o.hand(pull, verdict)
	o.finish(t, "reviewer")
	o.deliver(pull)
}

// reviewedWhenDue waits until the review of a pull request is due, and ends it with a verdict.
func (o *office) reviewedWhenDue(pull task.Key, verdict forge.Verdict) {
	o.Helper()
	o.later(time.Hour)
	o.sync()
	o.reviewed(pull, verdict)
}

// reviewedPull makes a pull request of ours, of which we have reviewed the commit c1.
func (o *office) reviewedPull(verdict forge.Verdict) task.Key {
	o.Helper()
	pull := o.pull("feature", "")
	o.publish(pull, "c1")
	o.reviewedWhenDue(pull, verdict)
	return pull
}

// hand stores a review of a pull request with a verdict, as an agent hands it in.
func (o *office) hand(pull task.Key, verdict forge.Verdict) {
	o.Helper()
	item, err := o.forge.Item(o.Context(), pull)
	o.check(err)
	service := reviewing.New(reviewing.Options{Store: o.store, Now: o.now})
	defer service.Stop()
	_, err = service.Reviewed(o.Context(), pull, judge.Report{
		Commit: item.HeadCommit, Question: "What is it for?", Answer: "$$[1]\nIt opens the gate.",
		Judgement: json.RawMessage(`{"overall_review":"It creaks."}`), Verdict: string(verdict), Text: "Verdict: " + string(verdict),
	})
	o.check(err)
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
	o.reviewedWhenDue(pull, forge.RequestChanges)
	o.sync()
	if fix := o.task(pull, task.Development); fix.State != task.Queued {
		t.Errorf("after a person's request our review leads to nothing: %+v", fix)
	}
}

// A review of ours counts for the commit that it is of.
func TestOurReviewOfAnOlderCommit(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	pull := o.reviewedPull(forge.RequestChanges)
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
	pull := o.reviewedPull(forge.RequestChanges)
	o.sync()
	o.finish(o.task(pull, task.Development), "writer")
	o.publish(pull, "c2")
	o.reviewedWhenDue(pull, forge.Approve)
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
	pull := o.reviewedPull(forge.RequestChanges)
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
			o.fail(o.task(pull, task.Review))
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
		"when a draft is ready, which it was not when the review was queued": func(o *office, pull task.Key) {
			o.later(time.Hour)
			o.sync()
			o.forge.Change(pull, func(i *forge.Item) { i.Draft = true })
			o.sync()
			if is := o.task(pull, task.Review); is.State != task.Stopped || is.Reason != task.ReasonDraft {
				o.Fatalf("the review of a draft is %+v", is)
			}
			o.forge.Change(pull, func(i *forge.Item) { i.Draft = false })
		},
		"when a remark was deleted": func(o *office, pull task.Key) {
			o.later(time.Hour)
			o.sync()
			remark := o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Remark, Commit: "c1"})
			o.sync()
			if is := o.task(pull, task.Review); is.State != task.Stopped {
				o.Fatalf("while a person looks, the review is %+v", is)
			}
			o.forge.DeleteReview(pull, remark.ID)
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
	pull := o.reviewedPull(forge.Approve)
	o.sync()
	o.deliver(pull)
	o.later(time.Minute)
	o.forge.Label(pull, "ann", needsReview, true)
	for range 3 {
		o.sync()
	}
	o.deliver(pull)
	if said := o.comments(pull); len(said) != 1 || !strings.Contains(said[0], "already reviewed commit c1") {
		t.Errorf("people are told %q", said)
	}
	if o.labeled(pull) {
		t.Error("the label is still on")
	}
	if is := o.task(pull, task.Review); is.State != task.Done {
		t.Errorf("the review is %+v", is)
	}
}

// The label on the pull request and on its issue asks for one review, not for one each, and
// a review that has failed is not tried again because there are two.
func TestTwoLabelsAskForOneReview(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	issue := o.issue("Fix the gate")
	pull := o.pull("feature", fmt.Sprint("Closes #", issue.Number))
	o.forge.Label(issue, "ann", needsReview, true)
	o.publish(pull, "c1")
	o.later(time.Hour)
	both := func() { o.look(pull); o.look(issue); o.look(pull) }
	both()
	first := o.task(pull, task.Review)
	o.fail(first)
	for range 3 {
		both()
	}
	if is := o.task(pull, task.Review); is.State != task.Failed {
		t.Fatalf("it is tried again: %+v", is)
	}
	o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" })
	both()
	o.reviewed(pull, forge.Approve)
	both()
	o.deliver(pull)
	o.deliver(issue)
	if is := o.task(pull, task.Review); is.State != task.Done || o.labeled(pull) || o.labeled(issue) {
		t.Errorf("labels %v and %v, review %+v", o.labeled(pull), o.labeled(issue), is)
	}
}

// What was decided before the label was put on the pull request answers that of the issue,
// which was there before, and does not withdraw the review that the other one asks for.
func TestADecisionBetweenTwoLabels(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	issue := o.issue("Fix the gate")
	pull := o.pull("feature", fmt.Sprint("Closes #", issue.Number))
	o.forge.Label(issue, "ann", needsReview, true)
	o.later(time.Minute)
	o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Approve})
	o.later(time.Minute)
	o.forge.Label(pull, "ann", needsReview, true)
	o.later(time.Hour)
	for range 2 {
		o.look(pull)
		o.look(issue)
	}
	if is := o.task(pull, task.Review); is.State != task.Queued || is.Generation != 1 {
		t.Errorf("the review is %+v", is)
	}
}

// A pull request of somebody who may not use the label on an issue does not keep it there.
func TestAStrangersPullDoesNotKeepTheLabel(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	issue := o.issue("Fix the gate")
	pull := o.pull("feature", fmt.Sprint("Closes #", issue.Number))
	theirs := o.pull("other", fmt.Sprint("Closes #", issue.Number))
	o.forge.Change(theirs, func(i *forge.Item) { i.Author = "eve" })
	o.forge.Label(issue, "ann", needsReview, true)
	o.later(time.Hour)
	o.look(issue)
	o.noTask(theirs, task.Review)
	o.reviewed(pull, forge.Approve)
	o.look(issue)
	o.deliver(issue)
	if o.labeled(issue) {
		t.Error("the label is still on")
	}
}

// When people have taken the work over, our own reviews change nothing; theirs do.
func TestOurReviewsLeaveWorkThatWasTakenOver(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	issue := o.issue("Fix the gate")
	o.look(issue)
	pull := o.pull(o.finish(o.task(issue, task.Development), "writer").Branch, "")
	o.publish(pull, "c1")
	o.check(o.forge.Unassign(t.Context(), issue, bot))
	o.look(issue)
	o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" })
	o.reviewedWhenDue(pull, forge.RequestChanges)
	o.sync()
	o.noTask(pull, task.Development)
	o.later(time.Minute)
	o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges, Commit: "c2"})
	o.sync()
	if is := o.task(pull, task.Development); is.State != task.Queued {
		t.Errorf("a person's request leads to %+v", is)
	}
}

// What was closed and opened again was not taken over.
func TestOurReviewsAfterClosing(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]bool{"the pull request": true, "the issue": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newLoop(t)
			issue := o.issue("Fix the gate")
			o.look(issue)
			pull := o.pull(o.finish(o.task(issue, task.Development), "writer").Branch, "")
			o.publish(pull, "c1")
			o.later(time.Hour)
			o.sync()
			o.reviewed(pull, forge.RequestChanges)
			o.sync()
			if closed {
				o.forge.Close(pull)
				o.look(pull)
				o.forge.Change(pull, func(i *forge.Item) { i.State = forge.Open })
			} else {
				o.finish(o.task(pull, task.Development), "writer")
				o.forge.Close(issue)
				o.look(issue)
			}
			o.publish(pull, "c2")
			o.later(time.Hour)
			o.sync()
			o.reviewed(pull, forge.RequestChanges)
			o.sync()
			if is := o.task(pull, task.Development); is.State != task.Queued || is.Generation < 2 {
				t.Errorf("our review leads to %+v", is)
			}
		})
	}
}

// A review whose result is there is not made once more when its agent was lost.
func TestAReviewThatIsThereIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	pull := o.pull("feature", "")
	o.publish(pull, "c1")
	o.later(time.Hour)
	o.sync()
	o.hand(pull, forge.Approve)
	o.deliver(pull)
	o.look(pull)
	o.later(3 * time.Second)
	o.look(pull)
	o.deliver(pull)
	if is := o.task(pull, task.Review); is.State != task.Stopped || o.labeled(pull) {
		t.Errorf("the review is %+v; the label is on: %v", is, o.labeled(pull))
	}
}

// A program that decides about each push does not let our reviews ask for ever.
func TestDecisionsOfOthersResetTheRoundsOnce(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	pull := o.pull("feature", "")
	o.publish(pull, "c0")
	rounds := 0
	for round := range 8 {
		o.later(time.Hour)
		o.sync()
		o.reviewed(pull, forge.RequestChanges)
		o.later(time.Minute)
		o.sync()
		is, err := o.store.TaskOf(t.Context(), pull, task.Development)
		if err != nil || is.State != task.Queued {
			break
		}
		rounds++
		o.finish(is, "writer")
		o.later(time.Minute)
		o.forge.AddReview(pull, forge.Review{Author: "bob", Verdict: forge.Approve, Commit: fmt.Sprint("c", round)})
		o.publish(pull, fmt.Sprint("c", round+1))
	}
	if rounds != 3 { // one before bob's first approval, and two
		t.Errorf("there were %d rounds", rounds)
	}
}

// Without webhooks it is seen that the label was taken off an issue.
func TestLabelTakenOffAnIssueWithoutWebhooks(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	issue := o.issue("Fix the gate")
	o.look(issue)
	pull := o.pull(o.finish(o.task(issue, task.Development), "writer").Branch, fmt.Sprint("Closes #", issue.Number))
	o.forge.Label(issue, "ann", needsReview, true)
	o.later(time.Hour)
	o.sync()
	o.forge.Label(issue, "ann", needsReview, false)
	o.sync()
	if is := o.task(pull, task.Review); is.State != task.Stopped || is.Reason != task.ReasonUnlabeled {
		t.Errorf("the review is %+v", is)
	}
}

// Whatever happened to a pull request, in whichever order: once it is open and ready, and
// time has passed, either the label is off; or a review is queued; or a person is looking at
// this very commit; or the review that the label asked for has failed, or the forge has refused it. Taking the label off
// and putting it on again asks anew, and who asks for a review of what we have reviewed is
// told so.
func TestTheLabelHasNoDeadEnds(t *testing.T) {
	t.Parallel()
	o := newLoop(t, fixUpOn(intake.OnMentions, intake.OnReviewComments), merging)
	branches := 0
	rapid.Check(t, func(r *rapid.T) {
		branches++
		issue := o.forge.AddItem(team, task.Issue, "ann", "Fix the gate")
		pull := o.pull(fmt.Sprint("feature", branches), fmt.Sprint("Closes #", issue.Number))
		events := o.labelEvents(pull, issue)
		names := slices.Sorted(maps.Keys(events))
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 1, 15).Draw(r, "events") {
			o.later(time.Minute)
			events[name]()
		}
		settle := func() {
			for range 3 {
				o.later(time.Hour)
				o.look(pull)
				o.look(issue)
				o.deliver(pull)
				o.deliver(issue)
			}
		}
		o.forge.Change(pull, func(i *forge.Item) { i.State, i.Draft = forge.Open, false })
		settle()
		item, err := o.forge.Item(t.Context(), pull)
		o.check(err)
		reviews, err := o.forge.Reviews(t.Context(), pull)
		o.check(err)
		looking := slices.ContainsFunc(reviews, func(v forge.Review) bool {
			return v.Author == "ann" && v.Verdict == forge.Remark && v.Commit == item.HeadCommit
		})
		is, err := o.store.TaskOf(t.Context(), pull, task.Review)
		failed := err == nil && strings.HasPrefix(is.Occasion, item.HeadCommit+" ") && (is.State == task.Failed || o.refused(pull, item.HeadCommit))
		if (o.labeled(pull) || o.labeled(issue)) && is.State != task.Queued && !looking && !failed {
			r.Fatalf("nobody reviews %s: %+v, %v", item.HeadCommit, is, err)
		}

		o.forge.Label(pull, "ann", needsReview, false)
		o.later(time.Minute)
		o.forge.Label(pull, "ann", needsReview, true)
		before := len(o.comments(pull))
		settle()
		is, err = o.store.TaskOf(t.Context(), pull, task.Review)
		told := !o.labeled(pull) && len(o.comments(pull)) == before+1
		if (err != nil || is.State != task.Queued) && !told {
			r.Fatalf("asked again, nobody reviews %s: %+v, %v", item.HeadCommit, is, err)
		}
	})
}

// labelEvents are what can happen to a pull request and its issue, by name.
func (o *office) labelEvents(pull, issue task.Key) map[string]func() {
	head, last := 1, 1
	moveTo := func(to int) {
		head = to
		o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = fmt.Sprint("c", head) })
	}
	push := func() { last++; moveTo(last) }
	judge := func(verdict forge.Verdict, commit bool) func() {
		return func() {
			review := forge.Review{Author: "ann", Verdict: verdict}
			if commit {
				review.Commit = fmt.Sprint("c", head)
			}
			o.forge.AddReview(pull, review)
		}
	}
	queued := func(kind task.Type, do func(task.Task)) func() {
		return func() {
			if is, err := o.store.TaskOf(o.Context(), pull, kind); err == nil && is.State == task.Queued {
				do(is)
			}
		}
	}
	change := func(do func(*forge.Item)) func() { return func() { o.forge.Change(pull, do) } }
	label := func(on task.Key, put bool) func() { return func() { o.forge.Label(on, "ann", needsReview, put) } }
	publish := func() { push(); o.check(o.forge.AddLabel(o.Context(), pull, needsReview)) }
	return map[string]func(){
		"label on": label(pull, true), "label off": label(pull, false),
		"label on the issue": label(issue, true), "label off the issue": label(issue, false),
		"push": push, "publish": publish, "push back": func() { moveTo(max(1, head-1)) },
		"mention":           func() { o.forge.AddComment(pull, "ann", "@"+bot+" rename it.") },
		"comment on a line": func() { o.forge.AddThread(pull, "ann", "gate.go", 1, "Rename it.") },
		"remark":            judge(forge.Remark, true), "approve": judge(forge.Approve, true), "request": judge(forge.RequestChanges, true),
		"approve no commit": judge(forge.Approve, false), "request no commit": judge(forge.RequestChanges, false),
		"our request":  queued(task.Review, func(task.Task) { o.reviewed(pull, forge.RequestChanges) }),
		"our approval": queued(task.Review, func(task.Task) { o.reviewed(pull, forge.Approve) }),
		"our review is deleted": func() {
			reviews, err := o.forge.Reviews(o.Context(), pull)
			o.check(err)
			for _, review := range reviews {
				if task.SameLogin(review.Author, bot) {
					o.forge.DeleteReview(pull, review.ID)
				}
			}
		},
		"our review is refused": queued(task.Review, func(task.Task) {
			o.forge.SetFaults(func(call dummy.Call) dummy.Fault {
				if call.Method == "SubmitReview" {
					return dummy.Forbid
				}
				return dummy.None
			})
			o.reviewed(pull, forge.Approve)
			o.forge.SetFaults(nil)
		}),
		"our review fails": queued(task.Review, o.fail),
		"fixed":            queued(task.Development, func(is task.Task) { o.finish(is, "writer"); publish() }),
		"close":            func() { o.forge.Close(pull) },
		"reopen":           change(func(i *forge.Item) { i.State = forge.Open }),
		"draft":            change(func(i *forge.Item) { i.Draft = true }),
		"ready":            change(func(i *forge.Item) { i.Draft = false }),
		"look":             func() { o.look(pull) },
		"look at issue":    func() { o.look(issue) },
		"deliver":          func() { o.deliver(pull); o.deliver(issue) },
		"wait":             func() { o.later(time.Hour) },
	}
}

// refused reports whether the forge has refused our review of a commit.
func (o *office) refused(pull task.Key, commit string) bool {
	submission, err := o.store.Action(o.Context(), verdicts.Submission(pull, commit).IdempotencyKey())
	return err == nil && submission.Status == store.Refused
}

// fail ends a task as failed.
func (o *office) fail(t task.Task) {
	o.Helper()
	_, err := o.store.Move(o.Context(), store.Change{Task: o.claim(t, "reviewer").ID, Trigger: task.GaveUp, Reason: task.ReasonRunFailed})
	o.check(err)
}
