package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

func fixUpOn(what ...intake.FixUpOn) func(*intake.Options) {
	return func(options *intake.Options) { options.Rules.FixUpOn = what }
}

// What people write on a pull request of ours leads to changes if it is configured to, they
// may steer it, and nobody else answers it.
func TestWhatLeadsToAFixUp(t *testing.T) {
	t.Parallel()
	const mention = "@Toryo-bot please rename it."
	both := []intake.FixUpOn{intake.OnMentions, intake.OnReviewComments}
	for name, test := range map[string]struct {
		say func(o *office, pull task.Key)
		on  []intake.FixUpOn // with which it leads to changes
	}{
		"a mention": {func(o *office, pull task.Key) { o.forge.AddComment(pull, "ann", mention) }, []intake.FixUpOn{intake.OnMentions}},
		"a comment": {func(o *office, pull task.Key) { o.forge.AddComment(pull, "ann", "Nice.") }, nil},
		"a mention in a thread": {func(o *office, pull task.Key) {
			thread := o.forge.AddThread(pull, "eve", "gate.go", 1, "Hm.")
			o.forge.AddReply(pull, thread.ID, "ann", mention)
		}, both},
		"a comment on a line": {func(o *office, pull task.Key) { o.forge.AddThread(pull, "ann", "gate.go", 1, "Rename it.") }, []intake.FixUpOn{intake.OnReviewComments}},
		"a review that decides nothing": {func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Remark, Body: "Rename it.", Commit: "c1"})
		}, []intake.FixUpOn{intake.OnReviewComments}},
		"one with a mention": {func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Remark, Body: mention, Commit: "c1"})
		}, both},
		"one without a text": {func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Remark, Commit: "c1"})
		}, nil},
		"an approval": {func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Approve, Body: mention, Commit: "c1"})
		}, nil},
		"a stranger": {func(o *office, pull task.Key) {
			o.forge.AddComment(pull, "eve", mention)
			o.forge.AddThread(pull, "eve", "gate.go", 1, mention)
			o.forge.AddReview(pull, forge.Review{Author: "eve", Verdict: forge.Remark, Body: mention, Commit: "c1"})
		}, nil},
		"ourselves": {func(o *office, pull task.Key) {
			o.forge.AddComment(pull, bot, mention)
			o.forge.AddThread(pull, bot, "gate.go", 1, mention)
		}, nil},
		"another program": {func(o *office, pull task.Key) {
			o.forge.SetAccess(team, "ci[bot]", forge.WriteAccess)
			o.forge.AddComment(pull, "ci[bot]", mention)
		}, nil},
		"a reply to a review of ours": {func(o *office, pull task.Key) { // the review chat answers
			thread := o.forge.AddThread(pull, bot, "gate.go", 1, "Why?")
			o.forge.AddReply(pull, thread.ID, "ann", mention)
		}, nil},
		"a thread that is resolved": {func(o *office, pull task.Key) {
			thread := o.forge.AddThread(pull, "ann", "gate.go", 1, mention)
			o.check(o.forge.ResolveThread(o.Context(), pull, thread.ID))
		}, nil},
		"an old mention": {func(o *office, pull task.Key) {
			o.forge.AddComment(pull, "ann", mention)
			o.later(8 * 24 * time.Hour)
		}, nil},
	} {
		for _, on := range []intake.FixUpOn{"", intake.OnMentions, intake.OnReviewComments} {
			t.Run(fmt.Sprint(name, " with ", on), func(t *testing.T) {
				t.Parallel()
				o := newLoop(t, fixUpOn(on))
				pull := o.pull("feature", "")
				o.later(time.Minute)
				test.say(o, pull)
				o.later(time.Minute)
				o.look(pull)
				wanted := false
				for _, one := range test.on {
					wanted = wanted || one == on
				}
				if !wanted {
					o.noTask(pull, task.Development)
					return
				}
				first := o.task(pull, task.Development)
				if first.State != task.Queued || first.Cause != task.ReasonChangesRequested || first.Branch != "feature" {
					t.Fatalf("the task is %+v", first)
				}
				// Once, whatever becomes of it.
				o.fail(first)
				o.look(pull)
				o.sync()
				if is := o.task(pull, task.Development); is.State != task.Failed {
					t.Errorf("it begins again: %+v", is)
				}
				// The next one is another.
				o.later(time.Minute)
				test.say(o, pull)
				o.look(pull)
				if is := o.task(pull, task.Development); is.State != task.Queued {
					t.Errorf("asked again, it is %+v", is)
				}
			})
		}
	}
}

// What a run has taken up while it worked is not done a second time, and what it has not is:
// also a review without a text that came before a comment that it has taken up.
func TestWhatARunHasTakenUp(t *testing.T) {
	t.Parallel()
	var told []string
	o := newLoop(t, fixUpOn(intake.OnMentions), func(options *intake.Options) {
		options.TakenUp = func(_ context.Context, _ task.Task, comment task.Comment) (bool, error) {
			return slices.Contains(told, comment.ID), nil
		}
	})
	pull := o.pull("feature", "")
	o.later(time.Minute)
	o.forge.AddComment(pull, "ann", "@toryo-bot rename it.")
	o.look(pull)
	is := o.task(pull, task.Development)
	o.later(time.Minute)
	told = append(told, o.forge.AddComment(pull, "ann", "@toryo-bot and document it.").ID)
	o.finish(is, "writer")
	o.look(pull)
	if now := o.task(pull, task.Development); now.State != task.Done {
		t.Fatalf("what the run took up is done again: %+v", now)
	}
	o.later(time.Minute)
	o.forge.AddReview(pull, forge.Review{Author: "bob", Verdict: forge.RequestChanges})
	o.later(time.Minute)
	told = append(told, o.forge.AddComment(pull, "ann", "@toryo-bot and test it.").ID)
	o.look(pull)
	if now := o.task(pull, task.Development); now.State != task.Queued {
		t.Errorf("the request for changes is left alone: %+v", now)
	}
}

// People who may not write to the repository cannot ask for ever, also where they count.
func TestCommentsOfOthersHaveAnEnd(t *testing.T) {
	t.Parallel()
	o := newLoop(t, fixUpOn(intake.OnMentions))
	o.steering.Accept = items.FromAll
	pull := o.pull("feature", "")
	rounds := 0
	for range 5 {
		o.later(time.Minute)
		o.forge.AddComment(pull, "eve", "@toryo-bot once more.")
		o.look(pull)
		if is, err := o.store.TaskOf(t.Context(), pull, task.Development); err == nil && is.State == task.Queued {
			rounds++
			o.finish(is, "writer")
		}
	}
	o.deliver(pull)
	if rounds != 2 {
		t.Errorf("there were %d rounds", rounds)
	}
	if said := strings.Join(o.comments(pull), "\n"); strings.Count(said, "A person has to decide") != 1 {
		t.Errorf("people are told %q", said)
	}
}

// A program that may write to the repository cannot ask for ever in comments either. A person
// who decides begins the count anew.
func TestCommentsHaveAnEnd(t *testing.T) {
	t.Parallel()
	o := newLoop(t, fixUpOn(intake.OnMentions))
	pull := o.pull("feature", "")
	ask := func(times int) (rounds int) {
		for range times {
			o.later(time.Minute)
			o.forge.AddComment(pull, "ann", "@toryo-bot once more.")
			o.look(pull)
			if is := o.task(pull, task.Development); is.State == task.Queued {
				rounds++
				o.finish(is, "writer")
			}
		}
		return rounds
	}
	if rounds := ask(8); rounds != 6 {
		t.Errorf("there were %d rounds", rounds)
	}
	o.forge.AddReview(pull, forge.Review{Author: "bob", Verdict: forge.Approve, Commit: "c1"})
	if rounds := ask(1); rounds != 1 {
		t.Error("a person has decided, and it does not begin anew")
	}
}

// While the task of the issue works on the branch, nobody else begins to.
func TestAFixUpWaitsForTheTaskOfTheIssue(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	issue := o.issue("Fix the gate")
	o.look(issue)
	first := o.task(issue, task.Development)
	pull := o.pull(first.Branch, "")
	o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges})
	o.look(pull)
	o.noTask(pull, task.Development)
	o.finish(first, "writer")
	o.look(pull)
	if is := o.task(pull, task.Development); is.State != task.Queued {
		t.Errorf("the fix-up is %+v", is)
	}
}

// What one author may do cannot be read: the others count all the same, and nothing is merged
// that this author may have asked to change.
func TestAnAuthorWhoseRightsCannotBeRead(t *testing.T) {
	t.Parallel()
	o := newLoop(t, merging, fixUpOn(intake.OnMentions))
	pull := o.pull("feature", "")
	o.green("c1")
	o.approve(pull, "ann", "c1")
	o.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "Access" && call.Detail == "eve" {
			return dummy.Refuse
		}
		return dummy.None
	})
	o.later(time.Minute)
	o.forge.AddComment(pull, "eve", "@toryo-bot rename it.")
	o.look(pull)
	o.noTask(pull, task.Development)
	o.deliver(pull)
	if o.merged(pull) {
		t.Error("it was merged")
	}
	o.forge.AddComment(pull, "bob", "@toryo-bot document it.")
	o.look(pull)
	if is := o.task(pull, task.Development); is.State != task.Queued {
		t.Errorf("the fix-up is %+v", is)
	}
}

// held is a run on a task, with the writes of runs.
func (o *office) held(t task.Task) (*broker.Runs, broker.Lease) {
	o.Helper()
	snapshots := items.NewSnapshots(map[task.Forge]forge.Reader{task.GitHub: o.forge}, items.DefaultAges, o.now)
	o.Cleanup(snapshots.Stop)
	snapshots.ReadReviews(map[task.Forge]items.ReviewSource{task.GitHub: o.forge})
	return broker.NewRuns(broker.RunOptions{
		Store: o.store, Sender: o.sender, Snapshots: snapshots, Steering: o.steering, Now: o.now,
		Own: func(_ task.Forge, login string) bool { return login == bot },
	}), broker.Lease{Task: o.claim(t, "writer"), TokenHash: []byte("x")}
}

// published notes that a run has published something.
func (o *office) published(held broker.Lease, result any) {
	o.Helper()
	data, err := json.Marshal(result)
	o.check(err)
	action, err := outbox.NewAction(outbox.Write{Item: held.Key, Task: held.ID, Generation: held.Generation, What: "publish/c2"},
		outbox.PublishBranch{Branch: held.Branch, Commit: "c2"})
	o.check(err)
	stored, _, err := o.store.Put(o.Context(), action)
	o.check(err)
	o.check(o.store.Deliver(o.Context(), stored.ID, data))
}

// A thread that a run has dealt with is answered and resolved, and no other.
func TestThreadsAreResolved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		author    string
		published bool
		dealtWith bool
		fault     dummy.Fault // of resolving
		answered  bool        // the reply is on the forge before the run says that it is dealt with
		late      bool        // and somebody says something after it
		moved     string      // the commit of somebody else that was there when it was to be published
		lost      bool        // the agent is lost after the publication, and another one goes on
		resolved  bool
	}{
		"dealt with":                    {author: "ann", published: true, dealtWith: true, resolved: true},
		"dealt with, of ours":           {author: bot, published: true, dealtWith: true, resolved: true},
		"another agent went on":         {author: "ann", published: true, dealtWith: true, lost: true, resolved: true},
		"only answered":                 {author: "ann", published: true},
		"nothing was published":         {author: "ann", dealtWith: true},
		"somebody else has pushed":      {author: "ann", published: true, dealtWith: true, moved: "c9"},
		"of a stranger":                 {author: "eve", published: true, dealtWith: true},
		"of a stranger, answered":       {author: "eve", published: true, dealtWith: true, answered: true},
		"answered":                      {author: "ann", published: true, dealtWith: true, answered: true, resolved: true},
		"somebody has spoken since":     {author: "ann", published: true, dealtWith: true, answered: true, late: true},
		"the forge does not let us":     {author: "ann", published: true, dealtWith: true, fault: dummy.Forbid},
		"the forge was not there once":  {author: "ann", published: true, dealtWith: true, fault: dummy.Refuse, resolved: true},
		"the answer of it was not seen": {author: "ann", published: true, dealtWith: true, fault: dummy.Lose, resolved: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newLoop(t)
			pull := o.pull("feature", "")
			thread := o.forge.AddThread(pull, test.author, "gate.go", 1, "Rename it.")
			other := o.forge.AddThread(pull, "ann", "gate.go", 2, "Hm.")
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges})
			o.look(pull)
			runs, held := o.held(o.task(pull, task.Development))
			if test.published {
				o.published(held, outbox.Published{Commit: "c2", Moved: test.moved})
			}
			if test.lost {
				again, err := o.store.Move(t.Context(), store.Change{Task: held.ID, Trigger: task.Lost, Reason: task.ReasonLeaseExpired})
				o.check(err)
				held.Task = o.claim(again, "writer")
			}
			tried := 0
			o.forge.SetFaults(func(call dummy.Call) dummy.Fault {
				if call.Method == "ResolveThread" {
					if tried++; tried == 1 || test.fault == dummy.Forbid {
						return test.fault
					}
				}
				return dummy.None
			})
			if test.answered {
				o.check(runs.Reply(t.Context(), held, broker.ThreadReply{Name: "1", Text: "Renamed.", Thread: thread.ID}))
				o.deliver(pull)
			}
			if test.late {
				o.forge.AddReply(pull, thread.ID, "ann", "No, the other one.")
			}
			o.check(runs.Reply(t.Context(), held, broker.ThreadReply{Name: "1", Text: "Renamed.", Thread: thread.ID, Resolved: test.dealtWith}))
			o.deliver(pull)
			threads, err := o.forge.ReviewThreads(t.Context(), pull)
			o.check(err)
			for _, one := range threads {
				switch {
				case one.ID == other.ID:
					if one.Resolved || len(one.Comments) != 1 {
						t.Errorf("the other thread is %+v", one)
					}
				case one.Resolved != test.resolved:
					t.Errorf("resolved: %v", one.Resolved)
				case forge.StripMarker(one.Comments[1].Body) != "Renamed.":
					t.Errorf("the reply is %+v", one.Comments[1:])
				}
			}
			if test.fault == dummy.Forbid && tried != 1 {
				t.Errorf("it was tried %d times", tried)
			}
		})
	}
}

// A review that the forge refuses for good was not made: its label stays, and asking again has
// the commit reviewed again.
func TestARefusedReviewWasNotMade(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	o.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "SubmitReview" {
			return dummy.Forbid
		}
		return dummy.None
	})
	pull := o.reviewedPull(forge.Approve)
	o.sync()
	o.deliver(pull)
	if !o.labeled(pull) {
		t.Error("the label is gone, and there is no review")
	}
	o.forge.SetFaults(nil)
	o.later(time.Minute)
	o.forge.Label(pull, "ann", needsReview, false)
	o.later(time.Minute)
	o.forge.Label(pull, "ann", needsReview, true)
	o.reviewedWhenDue(pull, forge.RequestChanges)
	o.sync()
	o.deliver(pull)
	reviews, err := o.forge.Reviews(t.Context(), pull)
	if err != nil || len(reviews) != 1 || len(o.comments(pull)) != 0 || o.labeled(pull) {
		t.Errorf("the forge has %+v, %v; people are told %q; the label is on: %v", reviews, err, o.comments(pull), o.labeled(pull))
	}
	if fix := o.task(pull, task.Development); fix.State != task.Queued {
		t.Errorf("the verdict of the second review leads to %+v", fix)
	}
}

// The label goes when a pull request comes back to the commit that we have reviewed, although
// it had another head when the label was to be taken off.
func TestTheLabelGoesWhenTheHeadReturns(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	pull := o.reviewedPull(forge.Approve)
	for range 2 {
		o.forge.SetFaults(func(call dummy.Call) dummy.Fault {
			if call.Method == "RemoveLabel" {
				return dummy.Refuse
			}
			return dummy.None
		})
		o.sync() // the label is to be taken off
		o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" })
		o.forge.SetFaults(nil)
		o.deliver(pull)
		if !o.labeled(pull) {
			t.Fatal("the label is gone, and what was pushed is not reviewed")
		}
		o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c1" })
	}
	o.sync()
	o.deliver(pull)
	if o.labeled(pull) {
		t.Error("the label is still on")
	}
}

// A review that was queued for one commit and was given another is not begun again for the
// second one when it has failed.
func TestAReviewIsForTheCommitThatItWasGiven(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	pull := o.pull("feature", "")
	o.publish(pull, "c1")
	o.later(time.Hour)
	o.sync()
	queued := o.task(pull, task.Review)
	o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" })
	h, _ := handsOut(t, o.store, func(options *broker.HandOutOptions) {
		options.Prepare, options.Now = preparer(o, new(seeds)).Prepare, o.now
	})
	if given := ask(t, h, "reviewer").get(t); given.Task.ID != queued.ID || given.Item.HeadCommit != "c2" {
		t.Fatalf("given %+v", given)
	}
	_, err := o.store.Move(t.Context(), store.Change{Task: queued.ID, Trigger: task.GaveUp, Reason: task.ReasonRunFailed})
	o.check(err)
	o.sync()
	if is := o.task(pull, task.Review); is.State != task.Failed {
		t.Errorf("the review is %+v", is)
	}
}

// The reviews of a pull request of ours are read once in a look, besides those for the
// conversation, and without the label nobody lists tasks.
func TestWhatALookCosts(t *testing.T) {
	t.Parallel()
	tasks := &countingTasks{}
	o := newLoop(t, fixUpOn(intake.OnMentions), func(options *intake.Options) {
		tasks.Tasks, options.Tasks, options.KeepUnassigned = options.Tasks, tasks, true
		options.Rules.Merge = true
	})
	pull := o.pull("feature", "")
	o.publish(pull, "c1")
	o.look(pull)
	before := o.forge.Count("Reviews")
	o.look(pull)
	if read := o.forge.Count("Reviews") - before; read != 2 {
		t.Errorf("the reviews were read %d times", read)
	}
	if o.forge.Count("Checks") > 0 {
		t.Error("the checks were read of what nobody has approved")
	}
	o.forge.Label(pull, "ann", needsReview, false)
	tasks.listed = 0
	o.look(pull)
	if tasks.listed > 0 {
		t.Errorf("tasks were listed %d times", tasks.listed)
	}
}

// countingTasks counts how often tasks are listed.
type countingTasks struct {
	store.Tasks
	listed int
}

func (c *countingTasks) ListTasks(ctx context.Context, filter store.TaskFilter) ([]task.Task, error) {
	c.listed++
	return c.Tasks.ListTasks(ctx, filter)
}

// came is the ground of a forge that shows a commit late.
type came struct{ missing int }

func (c *came) Prepare(_ context.Context, _ task.Task, needs assignment.Needs) (map[string]string, error) {
	if len(needs.Commits) == 0 || c.missing == 0 {
		return nil, nil
	}
	c.missing--
	return nil, task.NoCommit("c1", task.Errorf(task.NotFound, "not our ref"))
}

// A commit that was missing at first uses up none of the attempts that lost agents have.
func TestAMissingCommitIsNoAttempt(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	pull := o.pull("feature", "")
	o.check(o.forge.Assign(t.Context(), pull, bot))
	o.look(pull)
	waiting := o.task(pull, task.Development)
	h, _ := handsOut(t, o.store, func(options *broker.HandOutOptions) {
		options.Prepare, options.Now = preparer(o, &came{missing: 2}).Prepare, o.now
	})
	for range 2 {
		next := o.issue("Fix the gate")
		o.look(next)
		ask(t, h, "a").get(t)
		o.later(time.Hour)
	}
	if given := ask(t, h, "b").get(t); given.Task.ID != waiting.ID || given.Task.Attempts != 1 {
		t.Errorf("it was given with %d attempts: %+v", given.Task.Attempts, given.Task.Key)
	}
}
