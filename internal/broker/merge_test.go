package broker_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/task"
)

func merging(options *intake.Options) { options.Rules.Merge = true }

// setCheck sets what a check says about a commit.
func (o *office) setCheck(commit, name string, state forge.StatusState) {
	o.forge.SetCheck(team, commit, forge.Check{Name: name, State: state}, "")
}

// green is a commit that we and others have checked.
func (o *office) green(commit string) {
	o.setCheck(commit, "toryo/verification", forge.StatusSuccess)
	o.setCheck(commit, "CI / build", forge.StatusSuccess)
}

// verified notes that we have published the commit c1 to a pull request.
func (o *office) verified(pull task.Key) {
	o.Helper()
	action, err := outbox.NewVerification(pull, outbox.SetStatus{Commit: "c1", State: forge.StatusSuccess})
	o.check(err)
	action.DueAt = o.now()
	stored, _, err := o.store.Put(o.Context(), action)
	o.check(err)
	o.check(o.store.Deliver(o.Context(), stored.ID, nil))
}

// refuseMerges has the forge make no merges for now.
func (o *office) refuseMerges() {
	o.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "MergePull" {
			return dummy.Refuse
		}
		return dummy.None
	})
}

func (o *office) merged(pull task.Key) bool {
	o.Helper()
	item, err := o.forge.Item(o.Context(), pull)
	o.check(err)
	return item.State == forge.Merged
}

// approve is the approval of a person, who can merge it then.
func (o *office) approve(pull task.Key, by, commit string) {
	o.forge.AddReview(pull, forge.Review{Author: by, Verdict: forge.Approve, Commit: commit})
}

// A pull request of ours is merged if all of these are so, and not if one is not.
func TestMerge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(o *office, pull task.Key)
		merged bool
	}{
		"approved and green":  {func(*office, task.Key) {}, true},
		"several checks":      {func(o *office, _ task.Key) { o.setCheck("c1", "CI / test", forge.StatusSuccess) }, true},
		"a check failed":      {func(o *office, _ task.Key) { o.setCheck("c1", "CI / test", forge.StatusFailure) }, false},
		"a check was cut off": {func(o *office, _ task.Key) { o.setCheck("c1", "CI / test", forge.StatusError) }, false},
		"a check goes on":     {func(o *office, _ task.Key) { o.setCheck("c1", "CI / test", forge.StatusPending) }, false},
		"another head": {func(o *office, pull task.Key) {
			o.green("c2")
			o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" })
		}, false},
		"no checks but ours": {func(o *office, pull task.Key) {
			o.setCheck("c2", "toryo/verification", forge.StatusSuccess)
			o.approve(pull, "ann", "c2")
			o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" })
		}, false},
		"no checks of ours": {func(o *office, pull task.Key) {
			o.setCheck("c2", "CI / build", forge.StatusSuccess)
			o.approve(pull, "ann", "c2")
			o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" })
		}, true},
		"ours failed": {func(o *office, _ task.Key) { o.setCheck("c1", "toryo/verification", forge.StatusFailure) }, false},
		"no checks": {func(o *office, pull task.Key) {
			o.approve(pull, "ann", "c2")
			o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" })
		}, false},
		"a draft":       {func(o *office, pull task.Key) { o.forge.Change(pull, func(i *forge.Item) { i.Draft = true }) }, false},
		"a fork":        {func(o *office, pull task.Key) { o.forge.Change(pull, func(i *forge.Item) { i.Fork = true }) }, false},
		"somebody's":    {func(o *office, pull task.Key) { o.forge.Change(pull, func(i *forge.Item) { i.Author = "bob" }) }, false},
		"the author's":  {func(o *office, pull task.Key) { o.forge.Change(pull, func(i *forge.Item) { i.Author = "ann" }) }, false},
		"was withdrawn": {func(o *office, pull task.Key) { o.withoutReviews(pull) }, false},
		"of a stranger": {func(o *office, pull task.Key) { o.withoutReviews(pull); o.approve(pull, "eve", "c1") }, false},
		"of ours":       {func(o *office, pull task.Key) { o.withoutReviews(pull); o.approve(pull, bot, "c1") }, false},
		"of a program": {func(o *office, pull task.Key) {
			o.withoutReviews(pull)
			o.forge.SetAccess(team, "ci[bot]", forge.WriteAccess)
			o.approve(pull, "ci[bot]", "c1")
		}, false},
		"of no commit": {func(o *office, pull task.Key) {
			o.withoutReviews(pull)
			o.verified(pull)
			o.later(time.Minute)
			o.approve(pull, "ann", "")
		}, true},
		"of no commit, before the publication": {func(o *office, pull task.Key) {
			o.withoutReviews(pull)
			o.approve(pull, "ann", "")
			o.later(time.Minute)
			o.verified(pull)
		}, false},
		"of no commit, and a person has pushed": {func(o *office, pull task.Key) {
			o.withoutReviews(pull)
			o.verified(pull)
			o.later(time.Minute)
			o.approve(pull, "ann", "")
			o.green("c2")
			o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" })
		}, false},
		"dismissed": {func(o *office, pull task.Key) {
			o.withoutReviews(pull)
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Approve, Commit: "c1", Dismissed: true})
		}, false},
		"somebody requests changes": {func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "bob", Verdict: forge.RequestChanges, Commit: "c1"})
			o.look(pull)
			o.fail(o.task(pull, task.Development))
		}, false},
		"a stranger requests changes": {func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "eve", Verdict: forge.RequestChanges, Commit: "c1"})
		}, true},
		"somebody asks for more since": {func(o *office, pull task.Key) {
			o.later(time.Minute)
			o.forge.AddComment(pull, "bob", "@toryo-bot rename it first.")
			o.look(pull)
			o.fail(o.task(pull, task.Development))
		}, false},
		"the work goes on": {func(o *office, pull task.Key) { o.check(o.forge.Assign(o.Context(), pull, bot)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newLoop(t, merging, fixUpOn(intake.OnMentions))
			pull := o.pull("feature", "")
			o.later(time.Minute)
			o.green("c1")
			o.approve(pull, "ann", "c1")
			test.change(o, pull)
			o.later(time.Minute)
			o.look(pull)
			o.deliver(pull)
			if o.merged(pull) != test.merged {
				t.Errorf("merged: %v", o.merged(pull))
			}
			o.look(pull)
			o.deliver(pull)
			said := slices.DeleteFunc(o.comments(pull), func(s string) bool { return strings.HasPrefix(s, "@toryo-bot") })
			if len(said) > 0 {
				t.Errorf("people are told %q", said)
			}
		})
	}
}

// withoutReviews deletes the reviews of a pull request.
func (o *office) withoutReviews(pull task.Key) {
	o.Helper()
	reviews, err := o.forge.Reviews(o.Context(), pull)
	o.check(err)
	for _, review := range reviews {
		o.forge.DeleteReview(pull, review.ID)
	}
}

// When people have taken the work over, they merge it.
func TestWhatWasTakenOverIsNotMerged(t *testing.T) {
	t.Parallel()
	o := newLoop(t, merging)
	issue := o.issue("Fix the gate")
	o.look(issue)
	pull := o.pull(o.finish(o.task(issue, task.Development), "writer").Branch, "")
	o.green("c1")
	o.check(o.forge.Unassign(t.Context(), issue, bot))
	o.look(issue)
	o.later(time.Minute)
	o.approve(pull, "ann", "c1")
	o.look(pull)
	o.deliver(pull)
	if o.merged(pull) {
		t.Error("it was merged")
	}
	o.check(o.forge.Assign(t.Context(), issue, bot))
	o.look(issue)
	o.finish(o.task(issue, task.Development), "writer")
	o.later(time.Minute)
	o.look(pull)
	o.deliver(pull)
	if !o.merged(pull) {
		t.Error("it was not merged when the bot was assigned again and done")
	}
}

// What is off costs nothing, and merges nothing.
func TestMergeNever(t *testing.T) {
	t.Parallel()
	o := newLoop(t)
	pull := o.pull("feature", "")
	o.green("c1")
	o.approve(pull, "ann", "c1")
	o.look(pull)
	o.deliver(pull)
	if o.merged(pull) || o.forge.Count("Checks") > 0 {
		t.Errorf("merged: %v; the checks were read %d times", o.merged(pull), o.forge.Count("Checks"))
	}
}

// A merge that the forge refuses is told once for a head. Another approval is another attempt.
func TestARefusedMerge(t *testing.T) {
	t.Parallel()
	o := newLoop(t, merging)
	pull := o.pull("feature", "")
	o.green("c1")
	refuse := func(call dummy.Call) dummy.Fault {
		if call.Method == "MergePull" {
			return dummy.Forbid
		}
		return dummy.None
	}
	o.forge.SetFaults(refuse)
	for _, by := range []string{"ann", "bob"} {
		o.later(time.Minute)
		o.approve(pull, by, "c1")
		for range 3 {
			o.look(pull)
			o.deliver(pull)
		}
	}
	if tries := o.forge.Count("MergePull"); tries != 2 {
		t.Errorf("it was tried %d times", tries)
	}
	if said := o.comments(pull); len(said) != 1 || !strings.Contains(said[0], "Not merged") || !strings.Contains(said[0], "MergePull is not allowed here") {
		t.Errorf("people are told %q", said)
	}
	o.forge.SetFaults(nil)
	o.later(time.Minute)
	o.approve(pull, "ann", "c1")
	o.look(pull)
	o.deliver(pull)
	if !o.merged(pull) {
		t.Error("it was not merged")
	}
}

// What went wrong on the server is in its log, not on the forge.
func TestAMergeThatTheServerCouldNotMake(t *testing.T) {
	t.Parallel()
	o := newOffice(t, merging)
	o.forge.SetClock(o.now)
	pull := o.pull("feature", "")
	o.green("c1")
	o.later(time.Minute)
	o.approve(pull, "ann", "c1")
	o.look(pull)
	refused := 0
	pending, err := o.store.PendingActions(t.Context(), pull)
	o.check(err)
	for _, action := range pending {
		if action.Kind == (outbox.MergePull{}).Kind() {
			o.check(o.store.Refuse(t.Context(), action.ID, task.ReasonNotWritten, "/var/lib/toryo is broken"))
			refused++
		}
	}
	if refused != 1 {
		t.Fatalf("%d merges wait among %+v", refused, pending)
	}
	o.look(pull)
	pending, err = o.store.PendingActions(t.Context(), pull)
	o.check(err)
	said := ""
	for _, action := range pending {
		said += string(action.Payload)
	}
	if !strings.Contains(said, "Not merged") || !strings.Contains(said, "an error on the server prevented") || strings.Contains(said, "/var/lib") {
		t.Errorf("people are told %s", said)
	}
}

// What is pushed when the merge is under way is not merged.
func TestAPushBeforeTheMerge(t *testing.T) {
	t.Parallel()
	o := newLoop(t, merging)
	pull := o.pull("feature", "")
	o.green("c1")
	o.approve(pull, "ann", "c1")
	o.refuseMerges()
	o.look(pull)
	o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" })
	o.forge.SetFaults(nil)
	o.deliver(pull)
	o.look(pull)
	o.deliver(pull)
	if said := o.comments(pull); o.merged(pull) || len(said) > 0 {
		t.Errorf("merged: %v; people are told %q", o.merged(pull), said)
	}
}

// A conflict may be over soon: it is tried again a few times before people are told.
func TestAMergeConflictIsTriedAgain(t *testing.T) {
	t.Parallel()
	o := newLoop(t, merging)
	pull := o.pull("feature", "")
	o.green("c1")
	o.approve(pull, "ann", "c1")
	o.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "MergePull" {
			return dummy.Conflict
		}
		return dummy.None
	})
	for attempt := 1; attempt <= 4; attempt++ {
		for range 2 {
			o.look(pull)
			o.deliver(pull)
		}
		if tries, told := o.forge.Count("MergePull"), len(o.comments(pull)); tries != attempt || (told > 0) != (attempt == 4) {
			t.Fatalf("it was tried %d times, and people were told %d times, not %d", tries, told, attempt)
		}
		o.later(30 * time.Minute)
	}
	o.look(pull)
	o.deliver(pull)
	if tries, told := o.forge.Count("MergePull"), len(o.comments(pull)); tries != 4 || told != 1 {
		t.Errorf("it was tried %d times, and people were told %d times", tries, told)
	}
}

// checksRead is a forge on which something happens just before checks are read.
type checksRead struct {
	forge.Forge
	before func()
}

func (f *checksRead) Checks(ctx context.Context, repository, commit string) ([]forge.Check, error) {
	f.before()
	return f.Forge.Checks(ctx, repository, commit)
}

// Somebody requests changes when the reviews and the comments were read, and before the checks
// are: nothing is merged, and the next look makes a task of the request.
func TestChangesAreRequestedBeforeTheChecksAreRead(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]func(o *office, pull task.Key){
		"in a review": func(o *office, pull task.Key) {
			o.forge.AddReview(pull, forge.Review{Author: "bob", Verdict: forge.RequestChanges, Commit: "c1"})
		},
		"in a comment": func(o *office, pull task.Key) { o.forge.AddComment(pull, "bob", "@toryo-bot rename it first.") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := &checksRead{before: func() {}}
			o := newLoop(t, merging, fixUpOn(intake.OnMentions), func(options *intake.Options) {
				on.Forge = options.Forges[task.GitHub]
				options.Forges = map[task.Forge]forge.Forge{task.GitHub: on}
			})
			pull := o.pull("feature", "")
			o.later(time.Minute)
			o.green("c1")
			o.approve(pull, "ann", "c1")
			o.later(time.Minute)
			on.before = sync.OnceFunc(func() { request(o, pull) })
			o.look(pull)
			o.deliver(pull)
			if o.merged(pull) {
				t.Fatal("it was merged")
			}
			o.look(pull)
			if made := o.task(pull, task.Development); made.State != task.Queued || made.Cause != task.ReasonChangesRequested {
				t.Errorf("the task is %+v", made)
			}
		})
	}
}

// Somebody requests changes when the merge is decided and not made yet: what they say counts
// as it would have before.
func TestChangesAreRequestedBeforeTheMerge(t *testing.T) {
	t.Parallel()
	for by, merged := range map[string]bool{"bob": false, "eve": true} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			o := newLoop(t, merging)
			pull := o.pull("feature", "")
			o.green("c1")
			o.approve(pull, "ann", "c1")
			o.refuseMerges()
			o.look(pull)
			o.forge.AddReview(pull, forge.Review{Author: by, Verdict: forge.RequestChanges, Commit: "c1"})
			o.forge.SetFaults(nil)
			o.deliver(pull)
			o.later(2 * time.Minute) // another attempt is due
			o.look(pull)
			o.deliver(pull)
			if said := o.comments(pull); o.merged(pull) != merged || len(said) > 0 {
				t.Errorf("merged: %v; people are told %q", o.merged(pull), said)
			}
		})
	}
}
