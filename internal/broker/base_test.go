package broker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// history is what git knows of the branches of an office.
type history struct {
	mu     sync.Mutex
	base   string          // the commit of main; "" if it is gone
	clean  map[string]bool // heads that merge
	theirs map[string]bool // heads that a person has pushed
	tries  int
	during func() // is called once while a merge is tried
	after  func() // is called once when it was tried, before that is known
}

func (h *history) merges(_ context.Context, _ task.Repository, base, _, head string) (intake.Merge, error) {
	h.mu.Lock()
	during := h.during
	h.during = nil
	h.mu.Unlock()
	if during != nil {
		during()
	}
	h.mu.Lock()
	defer func() {
		after := h.after
		h.after = nil
		h.mu.Unlock()
		if after != nil {
			after()
		}
	}()
	h.tries++
	if base != "main" || h.base == "" {
		return intake.Merge{}, task.Errorf(task.NotFound, "there is no branch %q", base)
	}
	return intake.Merge{Base: h.base, Head: head, Conflicts: !h.clean[head+" "+h.base], Own: !h.theirs[head]}, nil
}

// tried is how many merges were tried.
func (h *history) tried() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tries
}

// move gives main another commit. The heads that are named merge into it.
func (h *history) move(base string, clean ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.base = base
	for _, head := range clean {
		h.clean[head+" "+base] = true
	}
}

// newHistory is an office with a pull request of ours, with the work of an issue, at the
// commit c1, which merges into main at b1.
func newHistory(t *testing.T, change ...func(*intake.Options)) (o *office, h *history, pull task.Key) {
	t.Helper()
	h = &history{base: "b1", clean: map[string]bool{"c1 b1": true}, theirs: map[string]bool{}}
	o = newOffice(t, append(change, func(options *intake.Options) {
		options.Merges = h.merges
		options.Facts, _ = options.Tasks.(intake.Facts)
	})...)
	o.forge.SetClock(o.now)
	o.sender.Start(t.Context())
	t.Cleanup(func() { o.sender.Stop(context.WithoutCancel(t.Context())) })
	issue := o.issue("Fix the gate", "BACKENDCODER")
	o.look(issue)
	pull = o.pull(o.finish(o.task(issue, task.Development), "writer").Branch, "Closes #1")
	o.sync()
	o.noTask(pull, task.Development)
	return o, h, pull
}

// merge ends the task that merges the base, with another head.
func (o *office) merge(h *history, pull task.Key, head string) {
	o.Helper()
	made := o.task(pull, task.Development)
	if made.State != task.Queued || made.Cause != task.ReasonBaseConflict {
		o.Fatalf("the task is %+v", made)
	}
	h.move(h.base, head)
	o.finish(made, "writer")
	o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = head })
}

// A pull request that no longer merges leads to a task, which names the commits; one that is
// only behind does not.
func TestAConflictWithTheBaseIsATask(t *testing.T) {
	t.Parallel()
	o, h, pull := newHistory(t)
	h.move("b2", "c1")
	o.sync()
	o.noTask(pull, task.Development)
	h.move("b3")
	o.sync()
	made := o.task(pull, task.Development)
	if made.State != task.Queued || made.Reason != task.ReasonBaseConflict || made.Role != "BACKENDCODER" ||
		!strings.Contains(made.Occasion, "base b3 head c1") || made.Lane() != task.FixUpLane || made.Branch != o.task(task.Key{Forge: pull.Forge, Repository: team, Kind: task.Issue, Number: 1}, task.Development).Branch {
		t.Fatalf("the task is %+v", made)
	}
	o.sync() // it stays, although nobody has assigned the bot to the pull request
	if is := o.task(pull, task.Development); is.State != task.Queued || is.Generation != made.Generation {
		t.Errorf("then the task is %+v", is)
	}
	o.merge(h, pull, "c2")
	o.sync()
	if is := o.task(pull, task.Development); is.State != task.Done {
		t.Errorf("it merges again, and the task is %+v", is)
	}
}

// A base that was deleted and pushed again with something else is a conflict, although nothing has
// happened to the pull request.
func TestABaseThatComesBack(t *testing.T) {
	t.Parallel()
	o, h, pull := newHistory(t)
	o.intake.Start(t.Context())
	t.Cleanup(o.intake.Stop)
	h.move("")
	before := h.tried()
	o.changes.Publish(items.Change{Repository: pull.Repo(), Pushed: true})
	until(t, "it was looked whether it merges", func() bool { return h.tried() > before })
	h.move("b9")
	o.changes.Publish(items.Change{Repository: pull.Repo(), Pushed: true})
	until(t, "there is a task", func() bool {
		made, err := o.store.TaskOf(t.Context(), pull, task.Development)
		return err == nil && made.Cause == task.ReasonBaseConflict
	})
}

// What is pushed while a merge is tried is seen too.
func TestAPushWhileAMergeIsTried(t *testing.T) {
	t.Parallel()
	o, h, pull := newHistory(t)
	push := func() { o.changes.Publish(items.Change{Repository: pull.Repo(), Pushed: true}) }
	o.intake.Start(t.Context())
	t.Cleanup(o.intake.Stop)
	h.mu.Lock()
	h.after = func() { // git has answered
		h.move("b9")
		push()
	}
	h.mu.Unlock()
	push()
	until(t, "there is a task", func() bool {
		made, err := o.store.TaskOf(t.Context(), pull, task.Development)
		return err == nil && made.Cause == task.ReasonBaseConflict
	})
}

// A pull request that is closed while its merge is tried is not tried any more.
func TestAPullIsClosedWhileItIsTried(t *testing.T) {
	t.Parallel()
	o, h, pull := newHistory(t)
	closed := make(chan struct{})
	h.mu.Lock()
	h.during = func() {
		o.forge.Close(pull)
		o.look(pull)
		close(closed)
	}
	h.mu.Unlock()
	o.intake.Start(t.Context())
	o.changes.Publish(items.Change{Repository: pull.Repo(), Pushed: true})
	<-closed
	o.intake.Stop()
	before := h.tried()
	o.sync()
	if more := h.tried() - before; more != 0 {
		t.Errorf("it was tried %d times more", more)
	}
}

// It ends: a task for each pair of commits, and so many in a row. A person who pushes or
// decides lets it begin anew.
func TestConflictsWithTheBaseHaveAnEnd(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(o *office, h *history, pull task.Key){
		"a person pushes": func(o *office, h *history, pull task.Key) {
			h.mu.Lock()
			h.theirs["c9"] = true
			h.mu.Unlock()
			o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c9" })
		},
		"a person decides": func(o *office, _ *history, pull task.Key) {
			o.later(time.Hour)
			o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.Approve})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, h, pull := newHistory(t)
			for round := range 2 {
				h.move(fmt.Sprint("b", round+2))
				o.sync()
				if round == 0 {
					o.merge(h, pull, "c2")
					continue
				}
				o.fail(o.task(pull, task.Development))
				o.sync()
				if is := o.task(pull, task.Development); is.State != task.Failed {
					t.Fatalf("for the same commits there is another task: %+v", is)
				}
			}
			for round := range 3 { // the base moves on
				h.move(fmt.Sprint("b", round+4))
				o.sync()
			}
			o.deliver(pull)
			if is := o.task(pull, task.Development); is.State != task.Failed {
				t.Fatalf("there is no end: %+v", is)
			}
			if said := o.comments(pull); len(said) != 1 || !strings.Contains(said[0], "no longer merges into `main`") || !strings.Contains(said[0], "2 times") {
				t.Errorf("people are told %q", said)
			}
			again(o, h, pull)
			o.sync()
			if is := o.task(pull, task.Development); is.State != task.Queued || !strings.HasSuffix(is.Occasion, "round 1") {
				t.Errorf("then the task is %+v", is)
			}
		})
	}
}

// However often a person pushes, the base is merged so many times in all.
func TestMergesOfTheBaseHaveAnEndInAll(t *testing.T) {
	t.Parallel()
	o, h, pull := newHistory(t)
	made := 0
	for round := range 9 {
		head := fmt.Sprint("theirs", round)
		h.mu.Lock()
		h.theirs[head] = true
		h.mu.Unlock()
		h.move(fmt.Sprint("b", round+2))
		o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = head })
		o.sync()
		if is := o.task(pull, task.Development); is.State == task.Queued {
			made++
			o.fail(is)
		}
	}
	o.deliver(pull)
	if said := o.comments(pull); made != 6 || len(said) != 1 || !strings.Contains(said[0], "6 times") {
		t.Errorf("there were %d tasks, and people are told %q", made, said)
	}
}

// What a review asks for comes first, and is not taken for dealt with by a merge.
func TestReviewsAndConflictsWithTheBase(t *testing.T) {
	t.Parallel()
	o, h, pull := newHistory(t)
	h.move("b2")
	o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges, Commit: "c1"})
	o.sync()
	if is := o.task(pull, task.Development); is.Cause != task.ReasonChangesRequested {
		t.Fatalf("the task is %+v", is)
	}
	o.finish(o.task(pull, task.Development), "writer")
	o.forge.Change(pull, func(i *forge.Item) { i.HeadCommit = "c2" })
	o.sync()
	o.merge(h, pull, "c3")
	o.sync()
	if is := o.task(pull, task.Development); is.State != task.Done {
		t.Fatalf("the review is dealt with a second time: %+v", is)
	}
	o.later(time.Minute)
	o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges, Commit: "c3"})
	o.sync()
	if is := o.task(pull, task.Development); is.State != task.Queued || is.Cause != task.ReasonChangesRequested {
		t.Errorf("a later review leads to %+v", is)
	}
}

// None of these is ours to merge.
func TestConflictsWithTheBaseThatAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(o *office, h *history, pull task.Key){
		"a fork": func(o *office, _ *history, pull task.Key) {
			o.forge.Change(pull, func(i *forge.Item) { i.Fork = true })
		},
		"a person's own": func(o *office, _ *history, pull task.Key) {
			o.forge.Change(pull, func(i *forge.Item) { i.Author, i.Head = "ann", "anns" })
		},
		"a person's draft of our branch": func(o *office, _ *history, pull task.Key) {
			o.forge.Change(pull, func(i *forge.Item) { i.Author, i.Draft = "ann", true })
		},
		"a closed one": func(o *office, _ *history, pull task.Key) { o.forge.Close(pull) },
		"the base is gone": func(_ *office, h *history, _ task.Key) {
			h.move("")
		},
		"retargeted to a branch that is not there": func(o *office, _ *history, pull task.Key) {
			o.forge.Change(pull, func(i *forge.Item) { i.Base = "other" })
		},
		"the bot was taken off the issue": func(o *office, _ *history, pull task.Key) {
			issue := task.Key{Forge: pull.Forge, Repository: team, Kind: task.Issue, Number: 1}
			o.check(o.forge.Unassign(o.Context(), issue, bot))
			o.look(issue)
		},
		"the work goes on": func(o *office, _ *history, pull task.Key) {
			issue := task.Key{Forge: pull.Forge, Repository: team, Kind: task.Issue, Number: 1}
			_, err := o.store.Move(o.Context(), store.Change{Task: o.task(issue, task.Development).ID, Trigger: task.Assigned, Reason: task.ReasonRetried})
			o.check(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, h, pull := newHistory(t)
			h.move("b2")
			change(o, h, pull)
			o.sync()
			o.sync()
			o.noTask(pull, task.Development)
		})
	}
}

// A push to the repository is enough, also if the forge does not say that the pull request
// has changed, and so is a pull request that was merged; without news git is asked once.
func TestThePullRequestsAreTriedAfterAPush(t *testing.T) {
	t.Parallel()
	for name, happen := range map[string]func(o *office){
		"push": func(o *office) {
			o.changes.Publish(items.Change{Repository: task.Repository{Forge: task.GitHub, Name: team}, Pushed: true})
		},
		"merge": func(o *office) {
			other := o.pull("other", "")
			o.forge.Change(other, func(i *forge.Item) { i.State = forge.Merged })
			o.look(other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, h, pull := newHistory(t)
			o.intake.Start(t.Context())
			t.Cleanup(o.intake.Stop)
			before := h.tried()
			for range 3 {
				o.look(pull)
			}
			if more := h.tried() - before; more != 0 {
				t.Errorf("without news git was asked %d times", more)
			}
			h.move("b2")
			happen(o)
			until(t, "there is a task", func() bool {
				is, err := o.store.TaskOf(t.Context(), pull, task.Development)
				return err == nil && is.Cause == task.ReasonBaseConflict
			})
		})
	}
}

// Pull requests that the forge does not list as changed are tried with each sync.
func TestSyncTriesPullRequestsThatHaveNotChanged(t *testing.T) {
	t.Parallel()
	o, h, pull := newHistory(t)
	h.move("b2")
	o.later(24 * time.Hour)
	o.check(o.intake.Sync(t.Context(), []task.Forge{task.GitHub}, o.now().Add(-time.Minute)))
	if is := o.task(pull, task.Development); is.Cause != task.ReasonBaseConflict {
		t.Errorf("the task is %+v", is)
	}
}
