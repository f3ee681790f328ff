package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var restoreChecks = []check{
	{"after a restore no generation begins that was handed out before", fenceGenerations},
	{"after a restore what ran is queued, and its run can do nothing", fenceRuns},
	{"after a restore a task that waits keeps what it waits for", fenceWaiting},
	{"after a restore writes look before they are made", fenceWrites},
	{"after a restore nobody holds anything", fenceHolders},
	{"a new task after a restore begins as usual", fenceNew},
}

func fenced(t testing.TB, s store.Store) store.Fenced {
	t.Helper()
	return got[store.Fenced](t)(s.Fence(t.Context(), nil))
}

func fenceGenerations(t *testing.T, s store.Store) {
	queued, held, paused, done := assigned(t, s), running(t, s), moved(t, s, running(t, s), task.PauseSet), moved(t, s, running(t, s), task.Finished)
	first := fenced(t, s)
	equal(t, first.Active, 3)
	equal(t, first.Requeued, 1)
	// Far above what a task gets to in ordinary life.
	if first.Generation < held.Generation+1_000_000 {
		t.Fatalf("generations go on with %d", first.Generation)
	}
	now := func(x task.Task) task.Task { return got[task.Task](t)(s.Task(t.Context(), x.ID)) }
	equal(t, now(queued).Generation, first.Generation)
	equal(t, now(held).Generation, first.Generation)
	equal(t, now(paused), paused)
	equal(t, now(done), done)
	equal(t, moved(t, s, paused, task.Resumed).Generation, first.Generation)
	again, is, err := s.Assign(t.Context(), newTaskOn(done.Key), nil)
	must(t, err)
	equal(t, is, true)
	equal(t, again.Generation, first.Generation)
	equal(t, again.FirstGeneration, first.Generation)
	// Then they go on one by one.
	equal(t, moved(t, s, again, task.Withdrawn).Generation, first.Generation+1)

	// The second time is as the first.
	second := fenced(t, s)
	if second.Generation < first.Generation+1_000_000 {
		t.Fatalf("generations go on with %d, and did with %d", second.Generation, first.Generation)
	}
	equal(t, second.Requeued, 0)
	equal(t, now(queued).Generation, second.Generation)
}

func fenceRuns(t *testing.T, s store.Store) {
	x := running(t, s)
	equal(t, got[int](t)(s.Append(t.Context(), []task.Event{eventOf(x, task.FromAgent, 1)})), 1)
	pending, _ := put(t, s, actionOf(x, "comment"))
	var seen []task.State
	done, err := s.Fence(t.Context(), func(before, after task.Task) []store.Action {
		seen = append(seen, before.State, after.State)
		return []store.Action{actionOf(after, "label")}
	})
	must(t, err)
	equal(t, seen, []task.State{task.Running, task.Queued})
	after := got[task.Task](t)(s.Task(t.Context(), x.ID))
	equal(t, after.State, task.Queued)
	equal(t, after.Reason, task.ReasonRestored)
	equal(t, after.Attempts, 0)
	equal(t, after.Lease, task.Lease{})
	equal(t, after.FirstGeneration, x.FirstGeneration)
	wantCode(t, s.Holds(t.Context(), x.ID, x.Generation, tokenHash), task.LeaseLost)
	wantCode(t, s.Renew(t.Context(), x.ID, x.Generation, tokenHash, noon.Add(time.Hour)), task.LeaseLost)
	_, err = s.Report(t.Context(), store.RunReport{Task: x.ID, Generation: x.Generation, Events: []task.Event{eventOf(x, task.FromAgent, 2)}})
	wantCode(t, err, task.StaleGeneration)
	_, _, err = s.Put(t.Context(), actionOf(x, "comment"))
	wantCode(t, err, task.StaleGeneration)
	equal(t, actionNow(t, s, pending).Status, store.Refused)
	equal(t, lastReason(t, s, x), task.ReasonRestored)

	// Another agent takes it.
	claim := claimOf(after)
	claim.TokenHash = []byte("another")
	held := got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{claim}, nil))
	equal(t, ids(held), []task.ID{x.ID})
	equal(t, held[0].Generation, done.Generation)
	wantCode(t, s.Holds(t.Context(), x.ID, done.Generation, tokenHash), task.LeaseLost)
}

// lastReason is the reason in the last entry of a task's journal, which is one about its state.
func lastReason(t testing.TB, s store.Store, x task.Task) task.Reason {
	t.Helper()
	entries := journal(t, s, x.ID)
	last := entries[len(entries)-1]
	equal(t, last.Kind, task.StateChanged)
	var change task.StateChange
	must(t, json.Unmarshal(last.Data, &change))
	return change.Reason
}

func fenceWaiting(t *testing.T, s store.Store) {
	queued := assigned(t, s)
	waits, _ := put(t, s, actionOf(queued, "label"))
	asks := running(t, s)
	asks = got[task.Task](t)(s.Move(t.Context(), store.Change{Task: asks.ID, Trigger: task.PauseSet, Reason: task.ReasonAwaitingAnswer}))
	question, _ := put(t, s, actionOf(asks, "question"))
	stop := running(t, s)
	_, _, err := s.RequestHalt(t.Context(), store.Halt{Task: stop.ID, Signal: task.SignalStop, Reason: task.ReasonUnassigned})
	must(t, err)
	pause := running(t, s)
	_, _, err = s.RequestHalt(t.Context(), store.Halt{Task: pause.ID, Signal: task.SignalPause, Reason: task.ReasonAllPaused})
	must(t, err)
	for _, source := range []string{"file /data/contexts/pause_signal on gone", "operator"} {
		_, err := s.PauseAll(t.Context(), store.GeneralPause{Source: source})
		must(t, err)
	}

	done := fenced(t, s)
	equal(t, got[task.Task](t)(s.Task(t.Context(), queued.ID)).Reason, queued.Reason)
	equal(t, lastReason(t, s, queued), task.ReasonRestored)
	equal(t, lastReason(t, s, asks), task.ReasonRestored)
	equal(t, got[task.Task](t)(s.Task(t.Context(), asks.ID)), asks)
	equal(t, actionNow(t, s, waits).Generation, done.Generation)
	equal(t, got[[]store.Action](t)(s.RunActions(t.Context(), asks.ID, asks.Generation, asks.Generation, "question"))[0].ID, question.ID)
	equal(t, kinds(taken(t, s, noon)), []string{"label", "question"})
	equal(t, len(got[[]store.Halt](t)(s.HaltsOf(t.Context(), stop.ID))), 1)
	equal(t, len(got[[]store.Halt](t)(s.HaltsOf(t.Context(), pause.ID))), 0)
	left := got[[]store.GeneralPause](t)(s.GeneralPauses(t.Context()))
	equal(t, len(left), 1)
	equal(t, left[0].Source, "operator")
}

func fenceWrites(t *testing.T, s store.Store) {
	x := assigned(t, s)
	_, _ = put(t, s, own(newKey(), "of nobody"))
	before, _ := put(t, s, actionOf(x, "before"))
	equal(t, before.Attempts, 0)
	fenced(t, s)
	x = got[task.Task](t)(s.Task(t.Context(), x.ID))
	for _, a := range taken(t, s, noon) { // the server may have made them since the backup
		if a.Attempts < 2 && !a.Restored {
			t.Errorf("%s would be made without a look", a.Kind)
		}
		must(t, s.Deliver(t.Context(), a.ID, nil))
	}
	put(t, s, actionOf(x, "later"))
	put(t, s, actionOf(assigned(t, s), "new"))
	put(t, s, own(newKey(), "a review")) // of which the backup may not know
	for _, a := range taken(t, s, noon) {
		equal(t, a.Attempts, 1)
		equal(t, a.Restored, a.Kind != "new")
	}
}

func fenceHolders(t *testing.T, s store.Store) {
	s.ActAs("dead")
	thread := newThread(t, s)
	begin(t, s, store.Ask{ThreadID: thread.ID, Content: "a"})
	held, _ := put(t, s, own(newKey(), "held"))
	equal(t, len(taken(t, s, noon)), 1)
	equal(t, len(taken(t, s, noon)), 0)
	equal(t, got[bool](t)(s.Lead(t.Context(), "expiry", "before", time.Hour)), true)
	session := signedIn(t, s, "ann")
	must(t, s.CacheAnswer(t.Context(), store.CachedAnswer{Key: "k", Body: []byte("b")}))

	s.ActAs("next")
	fenced(t, s)
	equal(t, got[[]store.Message](t)(s.Messages(t.Context(), thread.ID))[0].State, store.Unanswered)
	again := taken(t, s, noon)
	equal(t, len(again), 1)
	equal(t, again[0].ID, held.ID)
	equal(t, got[bool](t)(s.Lead(t.Context(), "expiry", "next", time.Hour)), true)
	_, err := s.SessionUser(t.Context(), session, noon.Add(-time.Hour))
	wantCode(t, err, task.NotFound)
	_, err = s.CachedAnswer(t.Context(), "k")
	wantCode(t, err, task.NotFound)
}

func fenceNew(t *testing.T, s store.Store) {
	fenced(t, s)
	equal(t, assigned(t, s).Generation, int64(1))
}
