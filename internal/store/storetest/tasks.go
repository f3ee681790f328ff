package storetest

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var taskChecks = []check{
	{"a new task is queued in generation 1 with everything it was given", newTask},
	{"an active task is not assigned again", activeNotAssigned},
	{"an ended task is queued again in a new generation", endedAssigned},
	{"an item has one task of each type", onePerType},
	{"of many that assign one item at once, one makes the task", assignTogether},
	{"a bad key or type is refused", badNewTask},
	{"a move changes the task and is an event", moveAndEvent},
	{"what is said about a state is kept with it, and bounded", detailOfMove},
	{"a move that does not exist changes nothing", illegalMove},
	{"a move of an older generation is stale", staleMove},
	{"a task that is not there is not found", missingTask},
	{"claiming is not a move", claimIsNoMove},
	{"a move that begins a generation refuses the writes of older ones", moveRefusesOlder},
	{"a write that a sender has is not refused by a move", moveSparesHeld},
	{"effects go into the outbox with the move, or neither happens", effects},
	{"the phase belongs to the run", setPhase},
	{"listings are narrowed and in order", listTasks},
	{"one of many moves at once wins", moveTogether},
}

func newTask(t *testing.T, s store.Store) {
	want := newTaskOn(newKey())
	want.Priority, want.ReadyAt = 7, noon
	want.Occasion, want.Branch, want.Author, want.BlockedBy = "abc", "toryo/1", "writer", task.KeysOf(newKey(), newKey())
	made, queued, err := s.Assign(t.Context(), want, func(before, after task.Task) []store.Action {
		if before.State != "" || before.Generation != 0 || before.ID != after.ID || before.Key != want.Key {
			t.Errorf("before is %+v", before)
		}
		return nil
	})
	must(t, err)
	equal(t, queued, true)
	if made.ID == "" || made.CreatedAt.IsZero() || made.UpdatedAt.IsZero() {
		t.Fatalf("the task has no id or no times: %+v", made)
	}
	equal(t, made, task.Task{
		ID: made.ID, Key: want.Key, Type: want.Type, Role: want.Role, Title: want.Title, URL: want.URL,
		State: task.Queued, Generation: 1, Reason: want.Reason, Priority: 7, ReadyAt: noon,
		CreatedAt: made.CreatedAt, UpdatedAt: made.UpdatedAt,
		Cause: want.Reason, Occasion: "abc", AssignedAt: made.CreatedAt, FirstGeneration: 1, Branch: "toryo/1", Author: "writer", BlockedBy: want.BlockedBy,
	})
	equal(t, got[task.Task](t)(s.Task(t.Context(), made.ID)), made)
	equal(t, got[task.Task](t)(s.TaskOf(t.Context(), want.Key, want.Type)), made)
}

func activeNotAssigned(t *testing.T, s store.Store) {
	first := running(t, s)
	again := newTaskOn(first.Key)
	again.Title = "another"
	same, queued, err := s.Assign(t.Context(), again, func(task.Task, task.Task) []store.Action {
		t.Error("effects of nothing")
		return nil
	})
	must(t, err)
	equal(t, queued, false)
	equal(t, same, first)
	paused := moved(t, s, first, task.PauseSet)
	same, queued, err = s.Assign(t.Context(), again, nil)
	must(t, err)
	equal(t, queued, false)
	equal(t, same, paused)
	equal(t, len(journal(t, s, first.ID)), 3)
}

func endedAssigned(t *testing.T, s store.Store) {
	for _, end := range []task.Trigger{task.Finished, task.GaveUp, task.Withdrawn} {
		ended := moved(t, s, running(t, s), end)
		want := newTaskOn(ended.Key)
		want.Title, want.Role, want.Priority, want.Reason = "new title", "REVIEWER", 3, task.ReasonChangesRequested
		next, queued, err := s.Assign(t.Context(), want, nil)
		must(t, err)
		equal(t, queued, true)
		equal(t, next.ID, ended.ID)
		equal(t, next.Generation, ended.Generation+1)
		equal(t, next.State, task.Queued)
		equal(t, next.Attempts, 0)
		equal(t, next.Title, "new title")
		equal(t, next.Role, task.Role("REVIEWER"))
		equal(t, next.Reason, task.ReasonChangesRequested)
		equal(t, next.CreatedAt, ended.CreatedAt)
		equal(t, got[task.Task](t)(s.Task(t.Context(), next.ID)), next)
	}
}

func onePerType(t *testing.T, s store.Store) {
	first := assigned(t, s)
	want := newTaskOn(first.Key)
	want.Type = task.Review
	second, queued, err := s.Assign(t.Context(), want, nil)
	must(t, err)
	equal(t, queued, true)
	if second.ID == first.ID {
		t.Fatal("both types have one task")
	}
	equal(t, got[task.Task](t)(s.TaskOf(t.Context(), first.Key, task.Review)), second)
	want.Key.Kind = task.Pull
	third, queued, err := s.Assign(t.Context(), want, nil)
	must(t, err)
	equal(t, queued, true)
	if third.ID == second.ID {
		t.Fatal("an issue and a pull request of one number have one task")
	}
}

func assignTogether(t *testing.T, s store.Store) {
	want := newTaskOn(newKey())
	for round := range int64(3) {
		var queues atomic.Int64
		together(12, func(int) {
			made, queued, err := s.Assign(t.Context(), want, nil)
			if err != nil {
				t.Error(err)
			}
			if queued {
				queues.Add(1)
			}
			if made.State != task.Queued || made.Generation != 2*round+1 {
				t.Errorf("the task is %s in generation %d, want queued in %d", made.State, made.Generation, 2*round+1)
			}
		})
		equal(t, queues.Load(), int64(1))
		moved(t, s, got[task.Task](t)(s.TaskOf(t.Context(), want.Key, want.Type)), task.Withdrawn)
	}
	equal(t, len(got[[]task.Task](t)(s.ListTasks(t.Context(), store.TaskFilter{}))), 1)
}

func badNewTask(t *testing.T, s store.Store) {
	for _, spoil := range []func(*store.NewTask){
		func(w *store.NewTask) { w.Key.Forge = "sourceforge" },
		func(w *store.NewTask) { w.Key.Repository = "name" },
		func(w *store.NewTask) { w.Key.Number = 0 },
		func(w *store.NewTask) { w.Key.Kind = "" },
		func(w *store.NewTask) { w.Type = "cooking" },
		func(w *store.NewTask) { w.Title = "a\x00b" },
		func(w *store.NewTask) { w.Role = "\xff" },
	} {
		want := newTaskOn(newKey())
		spoil(&want)
		_, _, err := s.Assign(t.Context(), want, nil)
		wantCode(t, err, task.Invalid)
	}
	equal(t, len(got[[]task.Task](t)(s.ListTasks(t.Context(), store.TaskFilter{}))), 0)
}

func journal(t testing.TB, s store.Store, id task.ID) []task.Event {
	t.Helper()
	events, err := s.EventsAfter(t.Context(), id, 0, 0)
	must(t, err)
	return events
}

func moveAndEvent(t *testing.T, s store.Store) {
	before := running(t, s)
	after, err := s.Move(t.Context(), store.Change{
		Task: before.ID, Generation: before.Generation, Trigger: task.Returned, Reason: task.ReasonAgentStopping,
	})
	must(t, err)
	want := before
	_, err = want.Apply(task.Returned, task.ReasonAgentStopping)
	must(t, err)
	want.UpdatedAt = after.UpdatedAt
	equal(t, after, want)
	if after.UpdatedAt.Before(before.UpdatedAt) {
		t.Fatal("the task was changed before it was made")
	}
	equal(t, got[task.Task](t)(s.Task(t.Context(), before.ID)), after)

	events := journal(t, s, before.ID)
	equal(t, len(events), 3)
	for i, e := range events {
		equal(t, e.Position, int64(i+1))
		equal(t, e.Kind, task.StateChanged)
		equal(t, e.Source, task.FromServer)
	}
	var change task.StateChange
	must(t, json.Unmarshal(events[2].Data, &change))
	equal(t, change, task.StateChange{Trigger: task.Returned, From: task.Running, To: task.Queued, Reason: task.ReasonAgentStopping})
	equal(t, events[2].Generation, int64(2))
	equal(t, events[2].Sequence, int64(1))
	equal(t, events[1].Sequence, int64(2))
	equal(t, events[2].At, after.UpdatedAt)
}

// detailOfMove is what is said about a state, and is gone with the next one.
func detailOfMove(t *testing.T, s store.Store) {
	one := assigned(t, s)
	long := strings.Repeat("\u3042", task.LongestDetail)
	failed := got[task.Task](t)(s.Move(t.Context(), store.Change{
		Task: one.ID, Trigger: task.GaveUp, Reason: task.ReasonRunFailed, Detail: "git said:\x00 no \xff", Hint: long,
	}))
	equal(t, failed.Detail, "git said: no \uFFFD")
	if len(failed.Hint) > task.LongestDetail || !strings.HasPrefix(long, failed.Hint) || failed.Hint == "" {
		t.Errorf("a hint of %d bytes has %d", len(long), len(failed.Hint))
	}
	equal(t, got[task.Task](t)(s.Task(t.Context(), one.ID)), failed)
	again := got[task.Task](t)(s.Move(t.Context(), store.Change{Task: one.ID, Trigger: task.Assigned, Reason: task.ReasonRetried}))
	equal(t, again.Detail+again.Hint, "")
}

func illegalMove(t *testing.T, s store.Store) {
	before := assigned(t, s)
	_, err := s.Move(t.Context(), store.Change{Task: before.ID, Trigger: task.Finished, Effects: func(task.Task, task.Task) []store.Action {
		t.Error("effects of nothing")
		return nil
	}})
	wantIllegal(t, err)
	wantCode(t, err, task.IllegalMove)
	equal(t, got[task.Task](t)(s.Task(t.Context(), before.ID)), before)
	equal(t, len(journal(t, s, before.ID)), 1)
}

func staleMove(t *testing.T, s store.Store) {
	first := running(t, s)
	second := moved(t, s, first, task.Lost)
	_, err := s.Move(t.Context(), store.Change{Task: first.ID, Generation: first.Generation, Trigger: task.Withdrawn})
	wantCode(t, err, task.StaleGeneration)
	_, err = s.Move(t.Context(), store.Change{Task: first.ID, Generation: second.Generation + 1, Trigger: task.Withdrawn})
	wantCode(t, err, task.StaleGeneration)
	equal(t, got[task.Task](t)(s.Task(t.Context(), first.ID)), second)
}

func missingTask(t *testing.T, s store.Store) {
	_, err := s.Task(t.Context(), "nobody")
	wantCode(t, err, task.NotFound)
	_, err = s.TaskOf(t.Context(), newKey(), task.Development)
	wantCode(t, err, task.NotFound)
	_, err = s.Move(t.Context(), store.Change{Task: "nobody", Trigger: task.Withdrawn})
	wantCode(t, err, task.NotFound)
	wantCode(t, s.SetPhase(t.Context(), "nobody", 1, task.Planning), task.NotFound)
}

func claimIsNoMove(t *testing.T, s store.Store) {
	before := assigned(t, s)
	_, err := s.Move(t.Context(), store.Change{Task: before.ID, Trigger: task.Claimed})
	wantCode(t, err, task.Invalid)
	equal(t, got[task.Task](t)(s.Task(t.Context(), before.ID)), before)
}

func moveRefusesOlder(t *testing.T, s store.Store) {
	x := running(t, s)
	old, _ := put(t, s, actionOf(x, "old"))
	own, _ := put(t, s, store.Action{Item: x.Key, IdempotencyKey: newName(), Kind: "comment"})
	after, err := s.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.Withdrawn, Effects: func(before, after task.Task) []store.Action {
		equal(t, before.Generation+1, after.Generation)
		return []store.Action{actionOf(after, "new")}
	}})
	must(t, err)
	refused := got[store.Action](t)(s.Action(t.Context(), old.IdempotencyKey))
	equal(t, refused.Status, store.Refused)
	equal(t, refused.Reason, task.ReasonStaleGeneration)
	pending := got[[]store.Action](t)(s.PendingActions(t.Context(), x.Key))
	equal(t, len(pending), 2)
	equal(t, pending[0], own)
	equal(t, pending[1].Generation, after.Generation)
}

func moveSparesHeld(t *testing.T, s store.Store) {
	x := running(t, s)
	old, _ := put(t, s, actionOf(x, "old"))
	equal(t, len(got[[]store.Action](t)(s.Take(t.Context(), noon, noon.Add(time.Minute), 1))), 1)
	moved(t, s, x, task.Withdrawn)
	equal(t, got[store.Action](t)(s.Action(t.Context(), old.IdempotencyKey)).Status, store.Pending)
	// Its sender vanishes. When it would be taken again it is refused.
	equal(t, len(got[[]store.Action](t)(s.Take(t.Context(), noon.Add(time.Minute), noon.Add(time.Hour), 1))), 0)
	refused := got[store.Action](t)(s.Action(t.Context(), old.IdempotencyKey))
	equal(t, refused.Status, store.Refused)
	equal(t, refused.Reason, task.ReasonStaleGeneration)
}

func effects(t *testing.T, s store.Store) {
	x := running(t, s)
	bad := func(_, after task.Task) []store.Action {
		broken := actionOf(after, "broken")
		broken.Payload = json.RawMessage(`{`)
		return []store.Action{actionOf(after, "good"), broken}
	}
	_, err := s.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.Finished, Effects: bad})
	wantCode(t, err, task.Invalid)
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)), x)
	equal(t, len(got[[]store.Action](t)(s.PendingActions(t.Context(), x.Key))), 0)

	good := func(_, after task.Task) []store.Action {
		return []store.Action{actionOf(after, "label"), actionOf(after, "comment")}
	}
	_, err = s.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.Finished, Effects: good})
	must(t, err)
	pending := got[[]store.Action](t)(s.PendingActions(t.Context(), x.Key))
	equal(t, len(pending), 2)
	equal(t, pending[0].Kind, "label")
	equal(t, pending[1].Kind, "comment")
}

func setPhase(t *testing.T, s store.Store) {
	x := running(t, s)
	must(t, s.SetPhase(t.Context(), x.ID, x.Generation, task.Planning))
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)).Phase, task.Planning)
	wantCode(t, s.SetPhase(t.Context(), x.ID, x.Generation, "dancing"), task.Invalid)
	wantCode(t, s.SetPhase(t.Context(), x.ID, x.Generation+1, task.Execution), task.StaleGeneration)
	paused := moved(t, s, x, task.PauseSet)
	equal(t, paused.Phase, task.Planning)
	wantCode(t, s.SetPhase(t.Context(), x.ID, x.Generation, task.Execution), task.StaleGeneration)
	queued := moved(t, s, x, task.Resumed)
	equal(t, queued.Phase, task.Phase(""))
	wantCode(t, s.SetPhase(t.Context(), x.ID, x.Generation, task.Execution), task.StaleGeneration)
	wantCode(t, s.SetPhase(t.Context(), x.ID, queued.Generation, task.Execution), task.StaleGeneration)
}

func listTasks(t *testing.T, s store.Store) {
	a, b, c := assigned(t, s), running(t, s), moved(t, s, running(t, s), task.Finished)
	other := newTaskOn(task.Key{Forge: task.GitLab, Repository: "group/sub/name", Kind: task.Pull, Number: 1})
	other.Type = task.Review
	d, _, err := s.Assign(t.Context(), other, nil)
	must(t, err)
	for _, test := range []struct {
		filter store.TaskFilter
		want   []task.ID
	}{
		{store.TaskFilter{}, []task.ID{a.ID, b.ID, c.ID, d.ID}},
		{store.TaskFilter{Limit: 2}, []task.ID{a.ID, b.ID}},
		{store.TaskFilter{States: []task.State{task.Queued}}, []task.ID{a.ID, d.ID}},
		{store.TaskFilter{States: []task.State{task.Running, task.Done}}, []task.ID{b.ID, c.ID}},
		{store.TaskFilter{Forge: task.GitLab}, []task.ID{d.ID}},
		{store.TaskFilter{Repository: "owner/name", States: []task.State{task.Queued}}, []task.ID{a.ID}},
		{store.TaskFilter{Type: task.Review}, []task.ID{d.ID}},
		{store.TaskFilter{After: b.ID}, []task.ID{c.ID, d.ID}},
		{store.TaskFilter{After: d.ID}, nil},
		{store.TaskFilter{UpdatedSince: b.UpdatedAt}, []task.ID{b.ID, c.ID, d.ID}},
		{store.TaskFilter{UpdatedSince: d.UpdatedAt.Add(time.Hour)}, nil},
		{store.TaskFilter{Repository: "' OR 1=1 --"}, nil},
	} {
		equal(t, ids(got[[]task.Task](t)(s.ListTasks(t.Context(), test.filter))), test.want)
		if test.filter.Limit == 0 {
			total := 0
			for _, count := range got[map[task.State]int](t)(s.CountTasks(t.Context(), test.filter)) {
				total += count
			}
			equal(t, total, len(test.want))
		}
	}
	_, err = s.ListTasks(t.Context(), store.TaskFilter{Limit: -1})
	wantCode(t, err, task.Invalid)
}

func moveTogether(t *testing.T, s store.Store) {
	x := running(t, s)
	var won atomic.Int64
	together(10, func(i int) {
		trigger := []task.Trigger{task.Finished, task.Withdrawn, task.Lost, task.PauseSet, task.GaveUp}[i%5]
		_, err := s.Move(t.Context(), store.Change{Task: x.ID, Generation: x.Generation, Trigger: trigger, Effects: func(_, after task.Task) []store.Action {
			return []store.Action{actionOf(after, "label")}
		}})
		switch task.CodeOf(err) {
		case "":
			won.Add(1)
		case task.IllegalMove, task.StaleGeneration:
		default:
			t.Error(err)
		}
	})
	// A pause may come before another move that is legal afterwards.
	events := journal(t, s, x.ID)
	equal(t, int64(len(events)), 2+won.Load())
	if won.Load() < 1 || won.Load() > 2 {
		t.Fatalf("%d moves won", won.Load())
	}
}
