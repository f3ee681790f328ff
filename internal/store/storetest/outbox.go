package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var outboxChecks = []check{
	{"an action is kept as it was put", putAction},
	{"putting an action again changes nothing", putTwice},
	{"of many that put one action at once, one puts it", putTogether},
	{"the order per item has no gaps, whoever puts", orderTogether},
	{"an action of an older generation is not stored", putStale},
	{"bad actions are refused", badActions},
	{"of each item the first pending action is taken, when it is due", takeFirst},
	{"what is taken is held until then", takeHolds},
	{"many that take at once get each action once", takeTogether},
	{"a stale action is refused and the next one taken", takeStale},
	{"delivering ends an action, once", deliver},
	{"a retry waits and blocks what comes after", retry},
	{"what has failed holds up only what has the same lane", lanes},
	{"what is to last outlasts its run", lasting},
	{"refusing ends an action", refuse},
	{"what has ended stays so", ended},
	{"an action that is not there is not found", missingAction},
	{"a cause may be any bytes", badCause},
}

var names atomic.Int64

func newName() string { return fmt.Sprint("name ", names.Add(1)) }

// actionOf is a write for a task.
func actionOf(x task.Task, kind string) store.Action {
	return store.Action{
		Item: x.Key, Task: x.ID, Generation: x.Generation, IdempotencyKey: newName(), Kind: kind,
		Payload: json.RawMessage(`{"kind": "` + kind + `"}`),
	}
}

// own is a write of the server itself.
func own(item task.Key, kind string) store.Action {
	return store.Action{Item: item, IdempotencyKey: newName(), Kind: kind}
}

func put(t testing.TB, s store.Store, a store.Action) (store.Action, bool) {
	t.Helper()
	stored, isNew, err := s.Put(t.Context(), a)
	must(t, err)
	return stored, isNew
}

func taken(t testing.TB, s store.Store, now time.Time) []store.Action {
	t.Helper()
	return got[[]store.Action](t)(s.Take(t.Context(), now, now.Add(time.Minute), 0))
}

func heldUntil(t testing.TB, s store.Store, now time.Time) time.Time {
	t.Helper()
	return got[time.Time](t)(s.HeldUntil(t.Context(), now))
}

func kinds(actions []store.Action) []string {
	var all []string
	for _, a := range actions {
		all = append(all, a.Kind)
	}
	return all
}

func actionNow(t testing.TB, s store.Store, a store.Action) store.Action {
	t.Helper()
	return got[store.Action](t)(s.Action(t.Context(), a.IdempotencyKey))
}

func putAction(t *testing.T, s store.Store) {
	x := running(t, s)
	a := actionOf(x, "comment")
	a.Coalesce, a.DueAt = "progress", noon
	a.ID, a.Status, a.Attempts, a.LastError, a.Result = "mine", store.Delivered, 5, "x", json.RawMessage(`1`)
	stored, isNew := put(t, s, a)
	equal(t, isNew, true)
	want := a
	want.ID, want.Sequence, want.Status, want.Attempts, want.LastError, want.Result = stored.ID, 1, store.Pending, 0, "", nil
	equal(t, stored, want)
	if stored.ID == "" || stored.ID == "mine" {
		t.Fatalf("the id is %q", stored.ID)
	}
	equal(t, actionNow(t, s, a), stored)
	behind := own(x.Key, "label")
	behind.DueAt = noon
	second, _ := put(t, s, behind)
	equal(t, second.Sequence, int64(2))
	equal(t, got[[]store.Action](t)(s.PendingActions(t.Context(), x.Key)), []store.Action{stored, second})
	equal(t, len(got[[]store.Action](t)(s.PendingActions(t.Context(), newKey()))), 0)
}

func putTwice(t *testing.T, s store.Store) {
	first, _ := put(t, s, own(newKey(), "first"))
	again := own(newKey(), "second")
	again.IdempotencyKey = first.IdempotencyKey
	stored, isNew := put(t, s, again)
	equal(t, isNew, false)
	equal(t, stored, first)
	must(t, s.Deliver(t.Context(), first.ID, nil))
	stored, isNew = put(t, s, again)
	equal(t, isNew, false)
	equal(t, stored.Status, store.Delivered)
	equal(t, len(got[[]store.Action](t)(s.PendingActions(t.Context(), again.Item))), 0)
}

func putTogether(t *testing.T, s store.Store) {
	a := own(newKey(), "comment")
	var isNew atomic.Int64
	together(12, func(int) {
		stored, put, err := s.Put(t.Context(), a)
		if err != nil {
			t.Error(err)
		}
		if put {
			isNew.Add(1)
		}
		if stored.IdempotencyKey != a.IdempotencyKey || stored.Sequence != 1 {
			t.Errorf("stored is %+v", stored)
		}
	})
	equal(t, isNew.Load(), int64(1))
	next, _ := put(t, s, own(a.Item, "next"))
	equal(t, next.Sequence, int64(2))
}

func orderTogether(t *testing.T, s store.Store) {
	items := []task.Key{newKey(), newKey()}
	together(8, func(i int) {
		last := int64(0)
		for range 10 {
			stored, _, err := s.Put(t.Context(), own(items[i%2], "comment"))
			if err != nil {
				t.Error(err)
			}
			if stored.Sequence <= last {
				t.Errorf("sequence %d came after %d", stored.Sequence, last)
			}
			last = stored.Sequence
		}
	})
	for _, item := range items {
		pending := got[[]store.Action](t)(s.PendingActions(t.Context(), item))
		equal(t, len(pending), 40)
		for i, a := range pending {
			equal(t, a.Sequence, int64(i+1))
		}
	}
}

func putStale(t *testing.T, s store.Store) {
	x := running(t, s)
	next := moved(t, s, x, task.Lost)
	a := actionOf(x, "comment")
	_, _, err := s.Put(t.Context(), a)
	wantCode(t, err, task.StaleGeneration)
	_, err = s.Action(t.Context(), a.IdempotencyKey)
	wantCode(t, err, task.NotFound)
	stored, isNew := put(t, s, actionOf(next, "comment"))
	equal(t, isNew, true)
	equal(t, stored.Sequence, int64(1))
}

func badActions(t *testing.T, s store.Store) {
	x := running(t, s)
	for _, test := range []struct {
		spoil func(*store.Action)
		code  task.Code
	}{
		{func(a *store.Action) { a.IdempotencyKey = "" }, task.Invalid},
		{func(a *store.Action) { a.IdempotencyKey = "a\x00" }, task.Invalid},
		{func(a *store.Action) { a.Item.Number = 0 }, task.Invalid},
		{func(a *store.Action) { a.Payload = json.RawMessage(`nope`) }, task.Invalid},
		{func(a *store.Action) { a.Generation = 0 }, task.Invalid},
		{func(a *store.Action) { a.Generation = 2 }, task.Invalid},
		{func(a *store.Action) { a.Task = "nobody" }, task.NotFound},
		{func(a *store.Action) { a.IdempotencyKey = long(2001) }, task.TooLarge},
		{func(a *store.Action) { a.Coalesce = long(2001) }, task.TooLarge},
	} {
		bad := actionOf(x, "comment")
		test.spoil(&bad)
		_, _, err := s.Put(t.Context(), bad)
		wantCode(t, err, test.code)
	}
	equal(t, len(got[[]store.Action](t)(s.PendingActions(t.Context(), x.Key))), 0)
}

func takeFirst(t *testing.T, s store.Store) {
	s.ActAs("takes first")
	one, two, three := newKey(), newKey(), newKey()
	first := own(one, "first of one")
	first.DueAt = noon
	put(t, s, first)
	put(t, s, own(one, "second of one"))
	put(t, s, own(two, "first of two"))
	put(t, s, own(two, "second of two"))
	later := own(three, "first of three")
	later.DueAt = noon.Add(time.Microsecond)
	put(t, s, later)
	put(t, s, own(three, "second of three"))

	equal(t, kinds(got[[]store.Action](t)(s.Take(t.Context(), noon, noon.Add(time.Hour), 1))), []string{"first of two"})
	now := taken(t, s, noon)
	equal(t, kinds(now), []string{"first of one"})
	equal(t, now[0].Attempts, 1)
	equal(t, kinds(taken(t, s, noon)), nil)
	equal(t, heldUntil(t, s, noon), noon.Add(time.Minute)) // that of one
	equal(t, heldUntil(t, s, noon.Add(time.Minute)), noon.Add(time.Hour))
	equal(t, heldUntil(t, s, noon.Add(time.Hour)), time.Time{})
	must(t, s.Deliver(t.Context(), now[0].ID, nil))
	equal(t, heldUntil(t, s, noon), noon.Add(time.Hour)) // what has ended is not held
	equal(t, kinds(taken(t, s, noon)), []string{"second of one"})
	_, err := s.Take(t.Context(), noon, noon, -1)
	wantCode(t, err, task.Invalid)
}

func takeHolds(t *testing.T, s store.Store) {
	put(t, s, own(newKey(), "comment"))
	first := taken(t, s, noon)
	equal(t, len(first), 1)
	equal(t, len(taken(t, s, noon.Add(time.Minute-time.Microsecond))), 0)
	again := taken(t, s, noon.Add(time.Minute))
	equal(t, len(again), 1)
	equal(t, again[0].ID, first[0].ID)
	equal(t, again[0].Attempts, 2)
	equal(t, actionNow(t, s, again[0]), again[0])

	wantCode(t, s.KeepTaken(t.Context(), again[0].ID, 1, noon.Add(time.Hour)), task.Conflict)
	must(t, s.KeepTaken(t.Context(), again[0].ID, 2, noon.Add(time.Hour)))
	equal(t, len(taken(t, s, noon.Add(time.Hour-time.Microsecond))), 0)
	equal(t, len(taken(t, s, noon.Add(time.Hour))), 1)
	must(t, s.Deliver(t.Context(), again[0].ID, nil))
	wantCode(t, s.KeepTaken(t.Context(), again[0].ID, 3, noon.Add(time.Hour)), task.Conflict)
	wantCode(t, s.KeepTaken(t.Context(), "nobody", 1, noon), task.Conflict)
}

func takeTogether(t *testing.T, s store.Store) {
	const items, perItem = 12, 5
	for range items {
		item := newKey()
		for n := range perItem {
			put(t, s, own(item, fmt.Sprint(n)))
		}
	}
	var guard sync.Mutex
	order := map[task.Key][]int64{}
	total := 0
	together(6, func(int) {
		for {
			guard.Lock()
			finished := total == items*perItem
			guard.Unlock()
			if finished {
				return
			}
			actions, err := s.Take(t.Context(), noon, noon.Add(time.Hour), 3)
			if err != nil {
				t.Error(err)
				return
			}
			guard.Lock()
			for _, a := range actions {
				order[a.Item] = append(order[a.Item], a.Sequence)
				total++
			}
			guard.Unlock()
			for _, a := range actions {
				if err := s.Deliver(t.Context(), a.ID, nil); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for item, sequences := range order {
		for i, sequence := range sequences {
			if sequence != int64(i+1) {
				t.Fatalf("actions on %s were taken in the order %v", item, sequences)
			}
		}
	}
	equal(t, total, items*perItem)
}

func takeStale(t *testing.T, s store.Store) {
	x := running(t, s)
	first, _ := put(t, s, actionOf(x, "held"))
	equal(t, kinds(taken(t, s, noon)), []string{"held"})
	next := moved(t, s, x, task.Withdrawn)
	must(t, s.Retry(t.Context(), first.ID, 1, noon, "no answer"))
	put(t, s, actionOf(next, "new"))
	equal(t, kinds(got[[]store.Action](t)(s.Take(t.Context(), noon, noon.Add(time.Minute), 1))), []string{"new"})
	refused := actionNow(t, s, first)
	equal(t, refused.Status, store.Refused)
	equal(t, refused.Reason, task.ReasonStaleGeneration)
	equal(t, refused.Attempts, 1)
}

func deliver(t *testing.T, s store.Store) {
	a, _ := put(t, s, own(newKey(), "comment"))
	taken(t, s, noon)
	wantCode(t, s.Deliver(t.Context(), a.ID, json.RawMessage(`{`)), task.Invalid)
	must(t, s.Deliver(t.Context(), a.ID, json.RawMessage(`{"id": 5}`)))
	must(t, s.Deliver(t.Context(), a.ID, json.RawMessage(`{"id": 6}`)))
	delivered := actionNow(t, s, a)
	equal(t, delivered.Status, store.Delivered)
	equal(t, delivered.Result, json.RawMessage(`{"id": 5}`))
	equal(t, len(taken(t, s, noon.Add(time.Hour))), 0)
	equal(t, len(got[[]store.Action](t)(s.PendingActions(t.Context(), a.Item))), 0)
}

func retry(t *testing.T, s store.Store) {
	a, _ := put(t, s, own(newKey(), "first"))
	put(t, s, own(a.Item, "second"))
	taken(t, s, noon)
	must(t, s.Retry(t.Context(), a.ID, 1, noon.Add(time.Second), "the forge is down"))
	equal(t, actionNow(t, s, a).LastError, "the forge is down")
	equal(t, actionNow(t, s, a).DueAt, noon.Add(time.Second))
	equal(t, len(taken(t, s, noon)), 0)
	again := taken(t, s, noon.Add(time.Second))
	equal(t, kinds(again), []string{"first"})
	equal(t, again[0].Attempts, 2)
	// Whoever had it before does not put it back for whoever has it now.
	wantCode(t, s.Retry(t.Context(), a.ID, 1, noon, "late"), task.Conflict)
	equal(t, len(taken(t, s, noon.Add(time.Second))), 0)
}

func refuse(t *testing.T, s store.Store) {
	a, _ := put(t, s, own(newKey(), "first"))
	put(t, s, own(a.Item, "second"))
	taken(t, s, noon)
	must(t, s.Refuse(t.Context(), a.ID, task.ReasonRejectedByForge, "422"))
	refused := actionNow(t, s, a)
	equal(t, refused.Status, store.Refused)
	equal(t, refused.Reason, task.ReasonRejectedByForge)
	equal(t, refused.LastError, "422")
	equal(t, kinds(taken(t, s, noon)), []string{"second"})
}

func ended(t *testing.T, s store.Store) {
	a, _ := put(t, s, own(newKey(), "comment"))
	must(t, s.Refuse(t.Context(), a.ID, task.ReasonStaleGeneration, ""))
	must(t, s.Refuse(t.Context(), a.ID, task.ReasonRejectedByForge, "late"))
	equal(t, actionNow(t, s, a).Reason, task.ReasonStaleGeneration)
	wantCode(t, s.Retry(t.Context(), a.ID, 0, noon, ""), task.Conflict)
	// The forge has it all the same: the truth wins.
	must(t, s.Deliver(t.Context(), a.ID, nil))
	equal(t, actionNow(t, s, a).Status, store.Delivered)
	equal(t, actionNow(t, s, a).Reason, task.Reason(""))
	wantCode(t, s.Retry(t.Context(), a.ID, 0, noon, ""), task.Conflict)
	wantCode(t, s.Refuse(t.Context(), a.ID, task.ReasonRejectedByForge, ""), task.Conflict)
}

func missingAction(t *testing.T, s store.Store) {
	_, err := s.Action(t.Context(), "nothing")
	wantCode(t, err, task.NotFound)
	wantCode(t, s.Deliver(t.Context(), "nothing", nil), task.NotFound)
	wantCode(t, s.Retry(t.Context(), "nothing", 1, noon, ""), task.NotFound)
	wantCode(t, s.Refuse(t.Context(), "nothing", task.ReasonRejectedByForge, ""), task.NotFound)
}

func badCause(t *testing.T, s store.Store) {
	a, _ := put(t, s, own(newKey(), "comment"))
	must(t, s.Retry(t.Context(), a.ID, 0, noon, "a\x00b\xffc"))
	equal(t, actionNow(t, s, a).LastError, "a\uFFFDb\uFFFDc")
	must(t, s.Refuse(t.Context(), a.ID, task.ReasonRejectedByForge, "\x00"))
	equal(t, actionNow(t, s, a).LastError, "\uFFFD")
}

func lanes(t *testing.T, s store.Store) {
	item := newKey()
	in := func(lane, kind string) store.Action {
		a := own(item, kind)
		a.Lane = lane
		stored, _ := put(t, s, a)
		equal(t, stored.Lane, lane)
		return stored
	}
	label, comment := in("labels", "label 1"), in("", "comment 1")
	second := in("labels", "label 2")
	in("", "comment 2")
	equal(t, kinds(taken(t, s, noon)), []string{"label 1"}) // in order while nothing fails
	equal(t, kinds(taken(t, s, noon)), nil)
	must(t, s.Retry(t.Context(), label.ID, 1, noon.Add(time.Hour), "no answer"))
	equal(t, kinds(taken(t, s, noon)), []string{"comment 1"})
	must(t, s.Retry(t.Context(), comment.ID, 1, noon.Add(2*time.Hour), "no answer"))
	equal(t, kinds(taken(t, s, noon)), nil) // each waits for the one before it in its lane
	equal(t, kinds(taken(t, s, noon.Add(time.Hour))), []string{"label 1"})
	must(t, s.Deliver(t.Context(), label.ID, nil))
	equal(t, kinds(taken(t, s, noon.Add(time.Hour))), []string{"label 2"})
	must(t, s.Deliver(t.Context(), second.ID, nil))
	equal(t, kinds(taken(t, s, noon.Add(2*time.Hour))), []string{"comment 1"})
}

func lasting(t *testing.T, s store.Store) {
	x := running(t, s)
	said := actionOf(x, "said")
	said.Lasting = true
	waiting, _ := put(t, s, said)
	equal(t, waiting.Lasting, true)
	other, _ := put(t, s, actionOf(x, "label"))
	moved(t, s, x, task.Withdrawn)
	equal(t, actionNow(t, s, other).Status, store.Refused)
	equal(t, kinds(taken(t, s, noon)), []string{"said"})
	late := actionOf(x, "late")
	late.Lasting = true
	_, _, err := s.Put(t.Context(), late)
	wantCode(t, err, task.StaleGeneration)
}
