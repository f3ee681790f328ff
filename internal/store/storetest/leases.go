package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var leaseChecks = []check{
	{"candidates are ready, by priority and then by age", candidates},
	{"a claim makes the task running under its agent", claimOne},
	{"claims are given in the order asked for, without those that are gone", claimSome},
	{"a claim needs an agent and a token", badClaim},
	{"a claim of hundreds is one call", claimMany},
	{"many that claim the same tasks at once get each once", claimTogether},
	{"a claim with effects fills the outbox for each task", claimEffects},
	{"a claim whose effects fail claims nothing", claimFails},
	{"a lease is renewed by its token only", renew},
	{"a lease is held until it ends", holds},
	{"writes of a run are put while its lease is held", putHeld},
	{"expired leases are found, longest ago first", expired},
	{"claims and appends at once do not keep each other from anything", claimWhileAppending},
}

func candidates(t *testing.T, s store.Store) {
	add := func(priority int, ready time.Time) task.ID {
		want := newTaskOn(newKey())
		want.Priority, want.ReadyAt = priority, ready
		made, _, err := s.Assign(t.Context(), want, nil)
		must(t, err)
		return made.ID
	}
	low := add(-1, time.Time{})
	first := add(0, time.Time{})
	second := add(0, noon)
	later := add(9, noon.Add(time.Microsecond))
	high := add(5, noon)
	running(t, s)

	ready := readyAt(t, s, noon)
	equal(t, ids(ready), []task.ID{high, first, second, low})
	equal(t, readyAt(t, s, noon.Add(time.Second))[0].ID, later)
	equal(t, ready[0], got[task.Task](t)(s.Task(t.Context(), high)))
}

// readyAt are the tasks that may be handed out, in their order.
func readyAt(t testing.TB, s store.Store, at time.Time) []task.Task {
	t.Helper()
	return got[store.Queue](t)(s.Queue(t.Context(), at, 0)).Ready
}

func claimOne(t *testing.T, s store.Store) {
	before := assigned(t, s)
	claim := claimOf(before)
	held := got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{claim}, nil))
	equal(t, len(held), 1)
	want := before
	want.Lease = task.Lease{Agent: claim.Agent, ExpiresAt: noon}
	_, err := want.Apply(task.Claimed, task.ReasonClaimed)
	must(t, err)
	want.UpdatedAt = held[0].UpdatedAt
	equal(t, held[0], want)
	equal(t, held[0].Attempts, 1)
	equal(t, got[task.Task](t)(s.Task(t.Context(), before.ID)), held[0])
	equal(t, len(got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{claim}, nil))), 0)
	equal(t, len(readyAt(t, s, noon)), 0)
	events := journal(t, s, before.ID)
	equal(t, len(events), 2)
	equal(t, events[1].Generation, before.Generation)
	equal(t, got[[]task.Task](t)(s.Claim(t.Context(), nil, nil)), nil)
}

func claimSome(t *testing.T, s store.Store) {
	a, b, c, gone := assigned(t, s), assigned(t, s), assigned(t, s), running(t, s)
	older := claimOf(b)
	older.Generation = 7
	held := got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{
		claimOf(c), claimOf(gone), older, {Task: "nobody", Generation: 1, Agent: "x", TokenHash: tokenHash}, claimOf(a), claimOf(a),
	}, nil))
	equal(t, ids(held), []task.ID{c.ID, a.ID})
	equal(t, got[task.Task](t)(s.Task(t.Context(), b.ID)), b)
	equal(t, len(journal(t, s, a.ID)), 2)
}

func badClaim(t *testing.T, s store.Store) {
	x := assigned(t, s)
	for _, spoil := range []func(*store.Claim){
		func(c *store.Claim) { c.Agent = "" },
		func(c *store.Claim) { c.TokenHash = nil },
		func(c *store.Claim) { c.Agent = "a\x00b" },
	} {
		bad := claimOf(x)
		spoil(&bad)
		_, err := s.Claim(t.Context(), []store.Claim{bad}, nil)
		wantCode(t, err, task.Invalid)
	}
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)), x)
}

func claimMany(t *testing.T, s store.Store) {
	var claims []store.Claim
	for range 300 {
		claims = append(claims, claimOf(assigned(t, s)))
	}
	held := got[[]task.Task](t)(s.Claim(t.Context(), claims, nil))
	equal(t, len(held), len(claims))
	for i := range held {
		equal(t, held[i].ID, claims[i].Task)
	}
	equal(t, len(got[[]task.Task](t)(s.ListTasks(t.Context(), store.TaskFilter{States: []task.State{task.Running}}))), len(claims))
}

func claimTogether(t *testing.T, s store.Store) {
	const tasks, callers = 60, 8
	var all []task.Task
	for range tasks {
		all = append(all, assigned(t, s))
	}
	var guard sync.Mutex
	given := map[task.ID]string{}
	together(callers, func(i int) {
		agent := fmt.Sprint("agent ", i)
		var claims []store.Claim
		for n := range all {
			claim := claimOf(all[(n*7+i*3)%tasks])
			claim.Agent = agent
			claims = append(claims, claim)
		}
		for len(claims) > 0 {
			held, err := s.Claim(t.Context(), claims[:5], nil)
			if err != nil {
				t.Error(err)
				return
			}
			guard.Lock()
			for _, x := range held {
				if given[x.ID] != "" {
					t.Errorf("task %s was given to %s and %s", x.ID, given[x.ID], agent)
				}
				given[x.ID] = agent
			}
			guard.Unlock()
			claims = claims[5:]
		}
	})
	for _, x := range all {
		now := got[task.Task](t)(s.Task(t.Context(), x.ID))
		equal(t, now.State, task.Running)
		equal(t, now.Lease.Agent, given[x.ID])
		equal(t, len(journal(t, s, x.ID)), 2)
	}
}

func claimEffects(t *testing.T, s store.Store) {
	var claims []store.Claim
	for range 20 {
		claims = append(claims, claimOf(assigned(t, s)))
	}
	held := got[[]task.Task](t)(s.Claim(t.Context(), claims, func(before, after task.Task) []store.Action {
		equal(t, before.State, task.Queued)
		equal(t, after.State, task.Running)
		progress := actionOf(after, "progress")
		progress.Coalesce = "progress"
		return []store.Action{actionOf(after, "label"), progress}
	}))
	equal(t, len(held), 20)
	for _, x := range held {
		pending := got[[]store.Action](t)(s.PendingActions(t.Context(), x.Key))
		equal(t, len(pending), 2)
		equal(t, pending[0].Kind, "label")
		equal(t, pending[1].Kind, "progress")
		equal(t, pending[1].Sequence, int64(2))
	}
}

func claimFails(t *testing.T, s store.Store) {
	x := assigned(t, s)
	_, err := s.Claim(t.Context(), []store.Claim{claimOf(x)}, func(_, after task.Task) []store.Action {
		after.Generation = 0
		return []store.Action{actionOf(after, "label")}
	})
	wantCode(t, err, task.Invalid)
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)), x)
	equal(t, len(journal(t, s, x.ID)), 1)
}

func renew(t *testing.T, s store.Store) {
	x := running(t, s)
	until := noon.Add(time.Hour)
	must(t, s.Renew(t.Context(), x.ID, x.Generation, tokenHash, until))
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)).Lease, task.Lease{Agent: "agent", ExpiresAt: until})
	must(t, s.Renew(t.Context(), x.ID, x.Generation, tokenHash, noon))
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)).Lease.ExpiresAt, until)
	wantCode(t, s.Renew(t.Context(), x.ID, x.Generation, []byte("other"), until), task.LeaseLost)
	wantCode(t, s.Renew(t.Context(), x.ID, x.Generation, nil, until), task.LeaseLost)
	wantCode(t, s.Renew(t.Context(), x.ID, x.Generation+1, tokenHash, until), task.LeaseLost)
	wantCode(t, s.Renew(t.Context(), "nobody", 1, tokenHash, until), task.LeaseLost)
	moved(t, s, x, task.PauseSet)
	wantCode(t, s.Renew(t.Context(), x.ID, x.Generation, tokenHash, until), task.LeaseLost)
	queued := assigned(t, s)
	wantCode(t, s.Renew(t.Context(), queued.ID, queued.Generation, nil, until), task.LeaseLost)
}

func holds(t *testing.T, s store.Store) {
	x := running(t, s)
	must(t, s.Holds(t.Context(), x.ID, x.Generation, tokenHash))
	wantCode(t, s.Holds(t.Context(), x.ID, x.Generation, []byte("other")), task.LeaseLost)
	wantCode(t, s.Holds(t.Context(), x.ID, 0, tokenHash), task.LeaseLost)
	wantCode(t, s.Holds(t.Context(), "nobody", 1, tokenHash), task.LeaseLost)
	moved(t, s, x, task.Lost)
	wantCode(t, s.Holds(t.Context(), x.ID, x.Generation, tokenHash), task.LeaseLost)
	wantCode(t, s.Holds(t.Context(), x.ID, x.Generation+1, tokenHash), task.LeaseLost)
}

// putHeld puts writes of many runs at the same time. Of each three one holds its task, one was stopped
// before, and one has another token.
func putHeld(t *testing.T, s store.Store) {
	const many = 24
	runs, codes := make([]task.Task, many), make([]task.Code, many)
	for i := range runs {
		runs[i] = running(t, s)
		if i%3 == 1 {
			moved(t, s, runs[i], task.Withdrawn)
		}
	}
	together(many, func(i int) {
		hash := tokenHash
		if i%3 == 2 {
			hash = []byte("other")
		}
		codes[i] = task.CodeOf(s.PutHeld(t.Context(), store.Held{
			Task: runs[i].ID, Generation: runs[i].Generation, TokenHash: hash, Actions: []store.Action{actionOf(runs[i], "label"), actionOf(runs[i], "comment")},
		}))
	})
	for i, x := range runs {
		want := [2]any{task.LeaseLost, 0}
		if i%3 == 0 {
			want = [2]any{task.Code(""), 2}
		}
		equal(t, [2]any{codes[i], len(got[[]store.Action](t)(s.PendingActions(t.Context(), x.Key)))}, want)
	}
	err := s.PutHeld(t.Context(), store.Held{Task: "nothing", Generation: 1, TokenHash: tokenHash})
	wantCode(t, err, task.LeaseLost)
}

func expired(t *testing.T, s store.Store) {
	until := func(at time.Time) task.ID {
		claim := claimOf(assigned(t, s))
		claim.ExpiresAt = at
		held := got[[]task.Task](t)(s.Claim(t.Context(), []store.Claim{claim}, nil))
		return held[0].ID
	}
	second := until(noon.Add(-time.Minute))
	until(noon.Add(time.Microsecond))
	first := until(noon.Add(-time.Hour))
	assigned(t, s)
	equal(t, ids(got[[]task.Task](t)(s.Expired(t.Context(), noon, 0))), []task.ID{first, second})
	equal(t, ids(got[[]task.Task](t)(s.Expired(t.Context(), noon, 1))), []task.ID{first})
	moved(t, s, got[task.Task](t)(s.Task(t.Context(), first)), task.Lost)
	equal(t, ids(got[[]task.Task](t)(s.Expired(t.Context(), noon, 0))), []task.ID{second})
}

// claimWhileAppending: writing to a task's journal does not make it look claimed.
func claimWhileAppending(t *testing.T, s store.Store) {
	for round := range 10 {
		x := assigned(t, s)
		together(2, func(i int) {
			if i == 0 {
				if _, err := s.Append(t.Context(), []task.Event{eventOf(x, task.FromAgent, 1)}); err != nil {
					t.Error(err)
				}
				return
			}
			held, err := s.Claim(t.Context(), []store.Claim{claimOf(x)}, nil)
			if err != nil || len(held) != 1 {
				t.Errorf("round %d: claimed %d: %v", round, len(held), err)
			}
		})
	}
}
