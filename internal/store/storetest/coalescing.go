package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var coalesceChecks = []check{
	{"a newer action takes the place of an earlier one that was not tried", coalesced},
	{"the earlier due time stays", coalescedDue},
	{"what was tried is not replaced", triedNotCoalesced},
	{"other names, other items and no name are not replaced", othersNotCoalesced},
	{"effects replace each other too", coalescedEffects},
	{"what is put behind is not held up", hurried},
	{"many that overwrite one thing leave one", coalesceTogether},
}

func progress(item task.Key, text string) store.Action {
	a := own(item, text)
	a.Coalesce = "progress"
	return a
}

func coalesced(t *testing.T, s store.Store) {
	item := newKey()
	first, _ := put(t, s, progress(item, "10%"))
	put(t, s, own(item, "label"))
	second, isNew := put(t, s, progress(item, "20%"))
	equal(t, isNew, true)
	equal(t, second.Sequence, first.Sequence)
	third, _ := put(t, s, progress(item, "30%"))
	equal(t, kinds(got[[]store.Action](t)(s.PendingActions(t.Context(), item))), []string{"30%", "label"})
	equal(t, actionNow(t, s, first).Status, store.Replaced)
	equal(t, actionNow(t, s, second).Status, store.Replaced)
	equal(t, actionNow(t, s, third), third)
	// The key of what was replaced is still known.
	_, isNew = put(t, s, first)
	equal(t, isNew, false)
	equal(t, kinds(taken(t, s, noon)), []string{"30%"})
	wantCode(t, s.Retry(t.Context(), first.ID, 0, noon, ""), task.Conflict)
}

func coalescedDue(t *testing.T, s store.Store) {
	item := newKey()
	first := progress(item, "10%")
	first.DueAt = noon
	put(t, s, first)
	later := progress(item, "20%")
	later.DueAt = noon.Add(time.Hour)
	stored, _ := put(t, s, later)
	equal(t, stored.DueAt, noon)
	sooner := progress(item, "30%")
	sooner.DueAt = noon.Add(-time.Hour)
	stored, _ = put(t, s, sooner)
	equal(t, stored.DueAt, sooner.DueAt)
}

func hurried(t *testing.T, s store.Store) {
	item, other := newKey(), newKey()
	for _, on := range []task.Key{item, other} {
		waiting := progress(on, "10%")
		waiting.DueAt = noon.Add(time.Hour)
		put(t, s, waiting)
	}
	label := own(item, "label")
	label.DueAt = noon.Add(time.Minute)
	put(t, s, label)
	equal(t, kinds(taken(t, s, noon)), nil)
	first := taken(t, s, noon.Add(time.Minute))
	equal(t, kinds(first), []string{"10%"})
	equal(t, first[0].Item, item)
	must(t, s.Deliver(t.Context(), first[0].ID, nil))
	equal(t, kinds(taken(t, s, noon.Add(time.Minute))), []string{"label"})
}

func triedNotCoalesced(t *testing.T, s store.Store) {
	item := newKey()
	first, _ := put(t, s, progress(item, "10%"))
	taken(t, s, noon)
	put(t, s, progress(item, "20%"))
	put(t, s, progress(item, "30%"))
	equal(t, kinds(got[[]store.Action](t)(s.PendingActions(t.Context(), item))), []string{"10%", "30%"})
	must(t, s.Retry(t.Context(), first.ID, 1, noon, "no answer"))
	put(t, s, progress(item, "40%"))
	equal(t, kinds(got[[]store.Action](t)(s.PendingActions(t.Context(), item))), []string{"10%", "40%"})
}

func othersNotCoalesced(t *testing.T, s store.Store) {
	item := newKey()
	put(t, s, progress(item, "10%"))
	other := own(item, "other name")
	other.Coalesce = "plan"
	put(t, s, other)
	put(t, s, own(item, "no name"))
	put(t, s, own(item, "no name either"))
	put(t, s, progress(newKey(), "other item"))
	equal(t, kinds(got[[]store.Action](t)(s.PendingActions(t.Context(), item))), []string{"10%", "other name", "no name", "no name either"})
}

func coalescedEffects(t *testing.T, s store.Store) {
	x := running(t, s)
	step := func(after task.Task, text string) store.Action {
		a := actionOf(after, text)
		a.Coalesce = "progress"
		return a
	}
	put(t, s, step(x, "stored"))
	var replaced store.Action
	_, err := s.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.Finished, Effects: func(_, after task.Task) []store.Action {
		replaced = step(after, "first")
		return []store.Action{actionOf(after, "label"), replaced, step(after, "second"), actionOf(after, "comment")}
	}})
	must(t, err)
	pending := got[[]store.Action](t)(s.PendingActions(t.Context(), x.Key))
	equal(t, kinds(pending), []string{"second", "label", "comment"})
	equal(t, pending[0].Payload, json.RawMessage(`{"kind": "second"}`))
	equal(t, actionNow(t, s, replaced).Status, store.Replaced)
}

func coalesceTogether(t *testing.T, s store.Store) {
	item := newKey()
	together(10, func(i int) {
		for n := range 5 {
			if _, _, err := s.Put(t.Context(), progress(item, fmt.Sprint(i, n))); err != nil {
				t.Error(err)
			}
		}
	})
	pending := got[[]store.Action](t)(s.PendingActions(t.Context(), item))
	equal(t, len(pending), 1)
	equal(t, pending[0].Sequence, int64(1))
	next, _ := put(t, s, own(item, "next"))
	equal(t, next.Sequence, int64(51))
}
