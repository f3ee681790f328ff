package storetest

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var spendingChecks = []check{
	{"a reservation counts in full until it is settled", reserveAndSettle},
	{"a call that is refused leaves nothing behind", refuseSpend},
	{"a call is charged to its own day in UTC, also when it is settled later", chargeItsDay},
	{"a call for no task is charged to the day only", spendForNobody},
	{"what cannot be a call is not taken", wrongSpending},
	{"pruning keeps what is spent", pruneSpending},
}

func anything(store.Amount, store.Amount) error { return nil }

func callOf(x task.Task, tokens, money int64) store.Call {
	return store.Call{Task: x.ID, Generation: x.Generation, At: noon, Most: store.Amount{Tokens: tokens, Money: money}}
}

func wantSpent(t *testing.T, s store.Store, id task.ID, at time.Time, ofTask, ofDay store.Amount) {
	t.Helper()
	isTask, isDay, err := s.Spent(t.Context(), id, at)
	must(t, err)
	equal(t, [2]store.Amount{isTask, isDay}, [2]store.Amount{ofTask, ofDay})
}

func reserveAndSettle(t *testing.T, s store.Store) {
	one, two := assigned(t, s), assigned(t, s)
	wantSpent(t, s, one.ID, noon, store.Amount{}, store.Amount{})
	a := got[string](t)(s.ReserveSpend(t.Context(), callOf(one, 100, 7), anything))
	b := got[string](t)(s.ReserveSpend(t.Context(), callOf(two, 30, 1), func(ofTask, ofDay store.Amount) error {
		equal(t, ofTask, store.Amount{})
		equal(t, ofDay, store.Amount{Tokens: 100, Money: 7})
		return nil
	}))
	wantSpent(t, s, one.ID, noon, store.Amount{Tokens: 100, Money: 7}, store.Amount{Tokens: 130, Money: 8})
	must(t, s.SettleSpend(t.Context(), a, store.Amount{Tokens: 40, Money: 2}))
	wantSpent(t, s, one.ID, noon, store.Amount{Tokens: 40, Money: 2}, store.Amount{Tokens: 70, Money: 3})
	must(t, s.SettleSpend(t.Context(), a, store.Amount{Tokens: 40, Money: 2}))
	must(t, s.SettleSpend(t.Context(), b, store.Amount{Tokens: 90, Money: 4})) // more than was reserved
	wantSpent(t, s, two.ID, noon, store.Amount{Tokens: 90, Money: 4}, store.Amount{Tokens: 130, Money: 6})
	must(t, s.SettleSpend(t.Context(), a, store.Amount{}))
	wantSpent(t, s, one.ID, noon, store.Amount{}, store.Amount{Tokens: 90, Money: 4})
}

func refuseSpend(t *testing.T, s store.Store) {
	x := assigned(t, s)
	full := errors.New("the budget is used up")
	id, err := s.ReserveSpend(t.Context(), callOf(x, 100, 7), func(store.Amount, store.Amount) error { return full })
	if err != full || id != "" { //nolint:errorlint // as it is, and not wrapped
		t.Fatalf("%q, %v, want the error of whoever decides", id, err)
	}
	wantSpent(t, s, x.ID, noon, store.Amount{}, store.Amount{})
}

func chargeItsDay(t *testing.T, s store.Store) {
	x := assigned(t, s)
	beyond := time.FixedZone("east", 9*3600)
	late := callOf(x, 100, 0)
	late.At = time.Date(2031, 5, 7, 1, 0, 0, 0, beyond) // still the day of noon in UTC
	a := got[string](t)(s.ReserveSpend(t.Context(), late, anything))
	tomorrow := callOf(x, 10, 0)
	tomorrow.At = noon.Add(24 * time.Hour)
	got[string](t)(s.ReserveSpend(t.Context(), tomorrow, anything))
	must(t, s.SettleSpend(t.Context(), a, store.Amount{Tokens: 60}))
	wantSpent(t, s, x.ID, noon, store.Amount{Tokens: 70}, store.Amount{Tokens: 60})
	wantSpent(t, s, x.ID, tomorrow.At, store.Amount{Tokens: 70}, store.Amount{Tokens: 10})
}

func spendForNobody(t *testing.T, s store.Store) {
	call := store.Call{At: noon, Most: store.Amount{Tokens: 5}}
	got[string](t)(s.ReserveSpend(t.Context(), call, anything))
	id := got[string](t)(s.ReserveSpend(t.Context(), call, func(ofTask, ofDay store.Amount) error {
		equal(t, ofTask, store.Amount{})
		equal(t, ofDay, store.Amount{Tokens: 5})
		return nil
	}))
	must(t, s.SettleSpend(t.Context(), id, store.Amount{Tokens: 1}))
	wantSpent(t, s, "", noon, store.Amount{}, store.Amount{Tokens: 6})
}

func wrongSpending(t *testing.T, s store.Store) {
	x := assigned(t, s)
	_, err := s.ReserveSpend(t.Context(), callOf(x, -1, 0), anything)
	wantCode(t, err, task.Invalid)
	_, err = s.ReserveSpend(t.Context(), store.Call{Task: "nobody", At: noon, Most: store.Amount{Tokens: 9}}, anything)
	wantCode(t, err, task.NotFound)
	id := got[string](t)(s.ReserveSpend(t.Context(), callOf(x, 1, 1), anything))
	wantCode(t, s.SettleSpend(t.Context(), id, store.Amount{Money: -1}), task.Invalid)
	wantCode(t, s.SettleSpend(t.Context(), "nothing", store.Amount{}), task.NotFound)
	wantSpent(t, s, x.ID, noon, store.Amount{Tokens: 1, Money: 1}, store.Amount{Tokens: 1, Money: 1})
}

func pruneSpending(t *testing.T, s store.Store) {
	x := assigned(t, s)
	old := got[string](t)(s.ReserveSpend(t.Context(), callOf(x, 3, 0), anything))
	call := callOf(x, 5, 0)
	call.At = noon.Add(time.Hour)
	kept := got[string](t)(s.ReserveSpend(t.Context(), call, anything))
	equal(t, pruned(t, s, store.KeptCalls, noon.Add(time.Minute)), 1)
	wantCode(t, s.SettleSpend(t.Context(), old, store.Amount{}), task.NotFound)
	must(t, s.SettleSpend(t.Context(), kept, store.Amount{Tokens: 4}))
	wantSpent(t, s, x.ID, noon, store.Amount{Tokens: 7}, store.Amount{Tokens: 7})
}

// overspend lets twelve agents of two servers spend at once, for three tasks.
// Each call uses what it reserved or less, but every tenth is never settled, as
// when its agent dies. Whatever the order, no limit is passed, and the books say
// exactly what was used.
func overspend(t *testing.T, open func() store.Store) {
	const agents, most, taskLimit, dayLimit = 12, 100, 2000, 5000
	servers := []store.Store{opened(t, open), opened(t, open)}
	tasks := []task.Task{assigned(t, servers[0]), assigned(t, servers[0]), assigned(t, servers[0])}
	full := errors.New("full")
	admit := func(ofTask, ofDay store.Amount) error {
		if ofTask.Tokens+most > taskLimit || ofDay.Tokens+most > dayLimit {
			return full
		}
		return nil
	}
	spent := make([]atomic.Int64, len(tasks))
	together(agents, func(agent int) {
		server, of := servers[agent%len(servers)], agent%len(tasks)
		for i := agent; ; i += agents {
			id, err := server.ReserveSpend(t.Context(), callOf(tasks[of], most, 0), admit)
			if errors.Is(err, full) {
				return
			}
			if err != nil {
				t.Errorf("agent %d: %v", agent, err)
				return
			}
			used := int64(i * 37 % (most + 1))
			if i%10 == 0 {
				spent[of].Add(most)
				continue
			}
			spent[of].Add(used)
			if err := server.SettleSpend(t.Context(), id, store.Amount{Tokens: used}); err != nil {
				t.Errorf("agent %d: %v", agent, err)
			}
		}
	})
	all := int64(0)
	for i, x := range tasks {
		if spent[i].Load() > taskLimit {
			t.Errorf("task %d used %d tokens of %d", i, spent[i].Load(), taskLimit)
		}
		all += spent[i].Load()
		ofTask, _, err := servers[1].Spent(t.Context(), x.ID, noon)
		must(t, err)
		equal(t, ofTask.Tokens, spent[i].Load())
	}
	if all > dayLimit {
		t.Errorf("everyone together used %d tokens of %d", all, dayLimit)
	}
	wantSpent(t, servers[0], "", noon, store.Amount{}, store.Amount{Tokens: all})
}
