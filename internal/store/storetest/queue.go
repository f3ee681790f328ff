package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var queueChecks = []check{
	{"the queue is by lane, priority and age, without what is not ready", queueOrder},
	{"of each repository only the first ones are in the queue", queueWindow},
	{"tasks that are blocked do not hide others of their repository", queueWindowBlocked},
	{"nothing is ready while everything is paused", queuePaused},
	{"a hand-out claims what was chosen", handOut},
	{"hand-outs do not come between one another", handOutTogether},
	{"the same occasion does not queue a task twice", sameOccasion},
	{"a branch stays, and leads to its task", taskOfBranch},
	{"a description changes what has not ended", describe},
	{"where the bot was seen is kept until the task is assigned again", seenOn},
	{"tasks are found by the end of their occasion, which can be changed", occasions},
	{"a released task is not among the unreleased, until it is assigned again", release},
	{"a lease that was renewed is not ended", leaseOver},
	{"a task that goes back may be made to wait", readyLater},
	{"the last entry of a source is found", lastFrom},
}

// queue makes a queued task as described.
func queue(t *testing.T, s store.Store, changes ...func(*store.NewTask)) task.Task {
	t.Helper()
	want := newTaskOn(newKey())
	for _, change := range changes {
		change(&want)
	}
	made, queued, err := s.Assign(t.Context(), want, nil)
	must(t, err)
	equal(t, queued, true)
	return made
}

func queueOrder(t *testing.T, s store.Store) {
	late := queue(t, s, func(w *store.NewTask) { w.ReadyAt = noon.Add(time.Hour) })
	low := queue(t, s, func(w *store.NewTask) { w.Priority = -1 })
	first := queue(t, s, func(*store.NewTask) {})
	second := queue(t, s, func(*store.NewTask) {})
	high := queue(t, s, func(w *store.NewTask) { w.Priority = 9 })
	fixUp := queue(t, s, func(w *store.NewTask) { w.Reason = task.ReasonChangesRequested })
	review := queue(t, s, func(w *store.NewTask) { w.Type, w.Priority = task.Review, -5 })
	busy := running(t, s)

	seen := got[store.Queue](t)(s.Queue(t.Context(), noon, 0))
	equal(t, ids(seen.Ready), []task.ID{review.ID, fixUp.ID, high.ID, first.ID, second.ID, low.ID})
	equal(t, ids(seen.Running), []task.ID{busy.ID})
	equal(t, seen.NextReady, noon.Add(time.Hour))
	equal(t, seen.Ready[1], fixUp)
	all := got[store.Queue](t)(s.Queue(t.Context(), noon.Add(time.Hour), 0))
	equal(t, len(all.Ready), 7)
	equal(t, all.NextReady, time.Time{})
	// A fix-up whose agent was lost is still one.
	moved(t, s, got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{claimOf(fixUp)}, nil))[0], task.Lost)
	equal(t, ids(got[store.Queue](t)(s.Queue(t.Context(), noon, 0)).Ready)[1], fixUp.ID)
	equal(t, late.ReadyAt, noon.Add(time.Hour))
	_, err := s.Queue(t.Context(), noon, -1)
	wantCode(t, err, task.Invalid)
}

func queueWindow(t *testing.T, s store.Store) {
	in := func(repository string) func(*store.NewTask) {
		return func(w *store.NewTask) { w.Key.Repository = repository }
	}
	first := queue(t, s, in("team/large")).ID
	for range 4 {
		queue(t, s, in("team/large"))
	}
	small := queue(t, s, in("team/small")).ID
	urgent := queue(t, s, in("team/large"), func(w *store.NewTask) { w.Priority = 5 }).ID
	elsewhere := queue(t, s, in("team/large"), func(w *store.NewTask) { w.Key.Forge = task.GitLab }).ID
	queue(t, s, in("team/large"), func(w *store.NewTask) { w.Priority, w.ReadyAt = 9, noon.Add(time.Minute) })
	equal(t, ids(got[store.Queue](t)(s.Queue(t.Context(), noon, 2)).Ready), []task.ID{urgent, first, small, elsewhere})
}

// queueWindowBlocked: tasks that are blocked do not hide the one that they wait for, however many come before it.
func queueWindowBlocked(t *testing.T, s store.Store) {
	last := newKey()
	var blocked []task.ID
	for range 3 {
		blocked = append(blocked, queue(t, s, func(w *store.NewTask) {
			w.Key.Repository, w.Priority, w.BlockedBy = last.Repository, 5, task.KeysOf(last)
		}).ID)
	}
	free := queue(t, s, func(w *store.NewTask) { w.Key = last }).ID
	equal(t, ids(got[store.Queue](t)(s.Queue(t.Context(), noon, 2)).Ready), []task.ID{free})
	equal(t, ids(got[store.Queue](t)(s.Queue(t.Context(), noon, 0)).Ready), append(blocked, free))
	held := got[[]task.Task](t)(s.HandOut(t.Context(), noon, 2, func(q store.Queue) []store.Claim {
		equal(t, ids(q.Ready), []task.ID{free})
		return []store.Claim{claimOf(q.Ready[0])}
	}, nil))
	equal(t, ids(held), []task.ID{free})
}

func queuePaused(t *testing.T, s store.Store) {
	x := assigned(t, s)
	got[bool](t)(s.PauseAll(t.Context(), store.GeneralPause{Source: "test"}))
	equal(t, len(got[store.Queue](t)(s.Queue(t.Context(), noon, 0)).Ready), 0)
	equal(t, len(got[store.Queue](t)(s.Queue(t.Context(), noon, 5)).Ready), 0)
	got[bool](t)(s.ResumeAll(t.Context(), "test"))
	equal(t, ids(got[store.Queue](t)(s.Queue(t.Context(), noon, 5)).Ready), []task.ID{x.ID})
}

func handOut(t *testing.T, s store.Store) {
	a, b := assigned(t, s), assigned(t, s)
	held := got[[]task.Task](t)(s.HandOut(t.Context(), noon, 0, func(q store.Queue) []store.Claim {
		equal(t, ids(q.Ready), []task.ID{a.ID, b.ID})
		return []store.Claim{claimOf(q.Ready[1])}
	}, nil))
	equal(t, ids(held), []task.ID{b.ID})
	equal(t, held[0].State, task.Running)
	equal(t, held[0].LastAgent, "agent")
	none := got[[]task.Task](t)(s.HandOut(t.Context(), noon, 0, func(store.Queue) []store.Claim { return nil }, nil))
	equal(t, len(none), 0)
	_, err := s.HandOut(t.Context(), noon, 0, func(store.Queue) []store.Claim { return []store.Claim{{Task: a.ID, Generation: 1}} }, nil)
	wantCode(t, err, task.Invalid)
}

// handOutTogether: each takes one task, and only if none is running.
func handOutTogether(t *testing.T, s store.Store) {
	for range 6 {
		assigned(t, s)
	}
	together(6, func(i int) {
		_, err := s.HandOut(t.Context(), noon, 0, func(q store.Queue) []store.Claim {
			if len(q.Running) > 0 {
				return nil
			}
			claim := claimOf(q.Ready[i%len(q.Ready)])
			claim.Agent = fmt.Sprint("agent ", i)
			return []store.Claim{claim}
		}, nil)
		if err != nil {
			t.Error(err)
		}
	})
	equal(t, len(got[store.Queue](t)(s.Queue(t.Context(), noon, 0)).Running), 1)
}

func sameOccasion(t *testing.T, s store.Store) {
	want := newTaskOn(newKey())
	want.Occasion = "commit 1"
	for i, step := range []struct {
		occasion string
		queued   bool
		kept     string
	}{{"commit 1", true, "commit 1"}, {"commit 1", false, "commit 1"}, {"commit 2", true, "commit 2"}, {"", true, "commit 2"}, {"commit 2", false, "commit 2"}} {
		want.Occasion = step.occasion
		made, queued, err := s.Assign(t.Context(), want, nil)
		must(t, err)
		if queued != step.queued || made.Occasion != step.kept {
			t.Fatalf("step %d: queued %v, occasion %q", i+1, queued, made.Occasion)
		}
		if queued {
			equal(t, made.FirstGeneration, made.Generation)
			moved(t, s, got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{claimOf(made)}, nil))[0], task.Finished)
		}
	}
}

func taskOfBranch(t *testing.T, s store.Store) {
	x := queue(t, s, func(w *store.NewTask) { w.Branch = "toryo/1-x" })
	queue(t, s, func(w *store.NewTask) { w.Branch = "toryo/1-x" }) // a later one on the same branch
	queue(t, s, func(*store.NewTask) {})
	find := func(repository, branch string) (task.Task, error) {
		return s.TaskOfBranch(t.Context(), task.GitHub, repository, branch)
	}
	equal(t, got[task.Task](t)(find(x.Key.Repository, "toryo/1-x")), x)
	for _, other := range [][2]string{{x.Key.Repository, "toryo/2"}, {"team/other", "toryo/1-x"}, {x.Key.Repository, ""}} {
		_, err := find(other[0], other[1])
		wantCode(t, err, task.NotFound)
	}
	moved(t, s, x, task.Withdrawn)
	again := newTaskOn(x.Key)
	again.Branch = "toryo/1-another-title"
	made, _, err := s.Assign(t.Context(), again, nil)
	must(t, err)
	equal(t, made.Branch, "toryo/1-x")
}

func describe(t *testing.T, s store.Store) {
	x := assigned(t, s)
	as := store.Description{Role: "OTHER", Title: "new", URL: "https://forge.example/2", Priority: 4, BlockedBy: task.KeysOf(newKey())}
	must(t, s.Describe(t.Context(), x.ID, as))
	is := got[task.Task](t)(s.Task(t.Context(), x.ID))
	equal(t, store.Description{Role: is.Role, Title: is.Title, URL: is.URL, Priority: is.Priority, BlockedBy: is.BlockedBy}, as)
	equal(t, is.Generation, x.Generation)
	ended := moved(t, s, x, task.Withdrawn)
	must(t, s.Describe(t.Context(), x.ID, store.Description{}))
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)), ended)
	wantCode(t, s.Describe(t.Context(), "nobody", as), task.NotFound)
}

func release(t *testing.T, s store.Store) {
	unreleased := func() []task.ID {
		return ids(got[[]task.Task](t)(s.ListTasks(t.Context(), store.TaskFilter{Unreleased: true})))
	}
	x := assigned(t, s)
	equal(t, unreleased(), []task.ID{x.ID})
	moved(t, s, x, task.Withdrawn)
	must(t, s.Release(t.Context(), x.ID))
	equal(t, len(unreleased()), 0)
	_, queued, err := s.Assign(t.Context(), newTaskOn(x.Key), nil)
	must(t, err)
	equal(t, queued, true)
	equal(t, unreleased(), []task.ID{x.ID})
	wantCode(t, s.Release(t.Context(), "nobody"), task.NotFound)
}

func seenOn(t *testing.T, s store.Store) {
	seen := func() []task.ID {
		return ids(got[[]task.Task](t)(s.ListTasks(t.Context(), store.TaskFilter{SeenOn: true})))
	}
	first, second := newKey(), newKey()
	want := newTaskOn(newKey())
	want.AssignedOn = task.KeysOf(first)
	x, _, err := s.Assign(t.Context(), want, nil)
	must(t, err)
	other := assigned(t, s)
	equal(t, x.AssignedOn, task.KeysOf(first))
	equal(t, seen(), []task.ID{x.ID})
	must(t, s.SeenOn(t.Context(), x.ID, task.KeysOf(first, second)))
	moved(t, s, x, task.Withdrawn)
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)).AssignedOn, task.KeysOf(first, second))
	equal(t, moved(t, s, x, task.Assigned).AssignedOn, "")
	must(t, s.SeenOn(t.Context(), other.ID, task.KeysOf(second)))
	equal(t, seen(), []task.ID{other.ID})
	moved(t, s, other, task.Withdrawn)
	want = newTaskOn(other.Key)
	_, _, err = s.Assign(t.Context(), want, nil)
	must(t, err)
	equal(t, len(seen()), 0)
	wantCode(t, s.SeenOn(t.Context(), "nobody", ""), task.NotFound)
}

func occasions(t *testing.T, s store.Store) {
	ending := func(with string) []task.ID {
		return ids(got[[]task.Task](t)(s.ListTasks(t.Context(), store.TaskFilter{OccasionEnd: with})))
	}
	want := newTaskOn(newKey())
	want.Occasion = "c1 0 github:team/a_b%!#3"
	x, _, err := s.Assign(t.Context(), want, nil)
	must(t, err)
	assigned(t, s)
	equal(t, ending(" github:team/a_b%!#3"), []task.ID{x.ID})
	for _, other := range []string{" github:team/axb%!#3", " github:team/a_bx!#3", " github:team/a_b%!#", "c1"} {
		equal(t, len(ending(other)), 0)
	}
	must(t, s.SetOccasion(t.Context(), x.ID, x.Generation, "c2 0"))
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)).Occasion, "c2 0")
	wantCode(t, s.SetOccasion(t.Context(), x.ID, x.Generation+1, "c3"), task.StaleGeneration)
}

func leaseOver(t *testing.T, s store.Store) {
	x := running(t, s) // until noon
	lost := store.Change{Task: x.ID, Generation: x.Generation, Trigger: task.Lost, LeaseOver: noon.Add(-time.Second)}
	_, err := s.Move(t.Context(), lost)
	wantCode(t, err, task.Conflict)
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)), x)
	lost.LeaseOver = noon
	equal(t, got[task.Task](t)(s.Move(t.Context(), lost)).State, task.Queued)
}

func readyLater(t *testing.T, s store.Store) {
	x := running(t, s)
	back := got[task.Task](t)(s.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.Returned, ReadyAt: noon}))
	equal(t, back.ReadyAt, noon)
	equal(t, back.Attempts, 0)
	equal(t, len(got[store.Queue](t)(s.Queue(t.Context(), noon.Add(-time.Second), 0)).Ready), 0)
}

func lastFrom(t *testing.T, s store.Store) {
	x := assigned(t, s)
	_, err := s.LastFrom(t.Context(), x.ID, task.FromAgent)
	wantCode(t, err, task.NotFound)
	_, err = s.Append(t.Context(), []task.Event{eventOf(x, task.FromAgent, 1), eventOf(x, task.FromAgent, 2), eventOf(x, task.FromServer, 0)})
	must(t, err)
	equal(t, got[task.Event](t)(s.LastFrom(t.Context(), x.ID, task.FromAgent)).Sequence, int64(2))
	equal(t, got[task.Event](t)(s.LastFrom(t.Context(), x.ID, task.FromServer)).Position, int64(4))
}
