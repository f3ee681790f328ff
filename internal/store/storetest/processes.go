package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var processChecks = []check{
	{"the turns of a process that has ended are free at once, those of others are not", freeTurns},
	{"the actions of a process that has ended are free at the moment given, those of others are not", freeActions},
	{"the leases of an agent's process that has ended run out, those of others do not", endLeases},
	{"what nobody in particular holds is not freed", freeNobody},
}

func freeTurns(t *testing.T, s store.Store) {
	dead, alive := newThread(t, s), newThread(t, s)
	s.ActAs("dead")
	asked := begin(t, s, store.Ask{ThreadID: dead.ID, Content: "a"})
	s.ActAs("alive")
	begin(t, s, store.Ask{ThreadID: alive.ID, Content: "b"})
	for _, thread := range []store.Thread{dead, alive} {
		_, begun, err := try(t, s, store.Ask{ThreadID: thread.ID, Content: "c", Claim: "other"})
		must(t, err)
		equal(t, begun, false)
	}

	turns, actions, err := s.FreeHeld(t.Context(), []string{"dead", "unheard of"}, noon)
	must(t, err)
	equal(t, turns, 1)
	equal(t, actions, 0)
	said := got[[]store.Message](t)(s.Messages(t.Context(), dead.ID))
	equal(t, said[0].State, store.Unanswered)
	equal(t, said[0].Cause, "interrupted")
	wantCode(t, s.HoldTurn(t.Context(), asked.Message.ID, "me", noon.Add(time.Hour)), task.LeaseLost)
	_, err = s.EndTurn(t.Context(), store.Ended{MessageID: asked.Message.ID, Claim: "me", Content: "late"})
	wantCode(t, err, task.LeaseLost)
	again := begin(t, s, store.Ask{ThreadID: dead.ID, Content: "a", Claim: "other"})
	equal(t, again.Message.ID, asked.Message.ID)
	equal(t, again.Message.Attempts, 2)
	_, begun, err := try(t, s, store.Ask{ThreadID: alive.ID, Content: "c", Claim: "other"})
	must(t, err)
	equal(t, begun, false)

	// It is held by the process that has asked again.
	turns, _, err = s.FreeHeld(t.Context(), []string{"dead"}, noon)
	must(t, err)
	equal(t, turns, 0)
}

func freeActions(t *testing.T, s store.Store) {
	s.ActAs("dead")
	first, _ := put(t, s, own(newKey(), "first"))
	equal(t, len(taken(t, s, noon)), 1)
	s.ActAs("alive")
	put(t, s, own(newKey(), "second"))
	equal(t, len(taken(t, s, noon)), 1)

	settled := noon.Add(5 * time.Second)
	turns, actions, err := s.FreeHeld(t.Context(), []string{"dead"}, settled)
	must(t, err)
	equal(t, turns, 0)
	equal(t, actions, 1)
	equal(t, heldUntil(t, s, noon), settled) // also for those who look only now
	equal(t, len(taken(t, s, settled.Add(-time.Microsecond))), 0)
	again := taken(t, s, settled)
	equal(t, len(again), 1)
	equal(t, again[0].ID, first.ID)
	equal(t, again[0].Attempts, 2)
	equal(t, again[0].TakenOver, false) // from one that has ended
	wantCode(t, s.KeepTaken(t.Context(), first.ID, 1, noon.Add(time.Hour)), task.Conflict)

	// A moment that is later than that at which it is free anyway changes nothing.
	_, actions, err = s.FreeHeld(t.Context(), []string{"alive"}, noon.Add(time.Hour))
	must(t, err)
	equal(t, actions, 2)
	for _, free := range taken(t, s, settled.Add(time.Minute)) {
		equal(t, free.TakenOver, false)
	}
	for _, held := range taken(t, s, settled.Add(10*time.Minute)) {
		equal(t, held.TakenOver, true) // its hold has ended, and it may not have
	}
	equal(t, len(taken(t, s, settled.Add(20*time.Minute))), 2)
}

func endLeases(t *testing.T, s store.Store) {
	claimed := func(process string) task.Task {
		claim := claimOf(assigned(t, s))
		claim.Process, claim.ExpiresAt = process, noon.Add(time.Hour)
		held := got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{claim}, nil))
		equal(t, len(held), 1)
		return held[0]
	}
	dead, alive := claimed("dead"), claimed("alive")
	ended := got[[]task.Task](t)(s.EndLeases(t.Context(), []string{"dead", "unheard of"}))
	equal(t, ids(ended), []task.ID{dead.ID})
	equal(t, ended[0].State, task.Running)
	equal(t, ended[0].Lease.Held(noon), false)
	wantCode(t, s.Holds(t.Context(), dead.ID, dead.Generation, tokenHash), task.LeaseLost)
	wantCode(t, s.Renew(t.Context(), dead.ID, dead.Generation, tokenHash, noon.Add(time.Hour)), task.LeaseLost)
	must(t, s.Holds(t.Context(), alive.ID, alive.Generation, tokenHash))
	equal(t, ids(got[[]task.Task](t)(s.Expired(t.Context(), noon, 0))), []task.ID{dead.ID})

	// A process that has a task no longer has nothing to end.
	moved := got[task.Task](t)(s.Move(t.Context(), store.Change{Task: dead.ID, Generation: dead.Generation, Trigger: task.Lost, Reason: task.ReasonAgentRestarted}))
	claim := claimOf(moved)
	claim.Process, claim.ExpiresAt = "next", noon.Add(time.Hour)
	equal(t, len(got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{claim}, nil))), 1)
	equal(t, len(got[[]task.Task](t)(s.EndLeases(t.Context(), []string{"dead"}))), 0)
	must(t, s.Holds(t.Context(), moved.ID, moved.Generation, tokenHash))
	_, err := s.EndLeases(t.Context(), []string{strings.Repeat("x", 3000)})
	wantCode(t, err, task.TooLarge)
}

func freeNobody(t *testing.T, s store.Store) {
	held := running(t, s)
	thread := newThread(t, s)
	begin(t, s, store.Ask{ThreadID: thread.ID, Content: "a"})
	put(t, s, own(newKey(), "first"))
	equal(t, len(taken(t, s, noon)), 1)
	turns, actions, err := s.FreeHeld(t.Context(), []string{""}, noon)
	must(t, err)
	equal(t, turns, 0)
	equal(t, actions, 0)
	equal(t, len(got[[]task.Task](t)(s.EndLeases(t.Context(), []string{""}))), 0)
	equal(t, got[task.Task](t)(s.Task(t.Context(), held.ID)), held)
}
