package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var refsChecks = []check{
	{"refs come back as they were kept", keepRefs},
	{"refs are kept in order, by the generation that is", keepRefsInOrder},
	{"of many that keep refs after the same, one does", keepRefsTogether},
	{"refs of tasks that have ended are pruned", pruneRefs},
}

func refsOf(x task.Task, commit string) store.KeptRefs {
	return store.KeptRefs{
		Task: x.ID, Generation: x.Generation, Head: "refs/heads/main", Base: "b",
		Refs: map[string]string{"refs/heads/main": "b", "refs/toryo/wip": commit},
	}
}

func keepRefs(t *testing.T, s store.Store) {
	x := running(t, s)
	_, err := s.NewestRefs(t.Context(), x.ID)
	wantCode(t, err, task.NotFound)
	equal(t, len(got[[]store.KeptRefs](t)(s.RefsSince(t.Context(), x.ID, 0))), 0)
	one, two := refsOf(x, "c1"), refsOf(x, "c2")
	one.Pack, two.Head, two.Base = []byte{0, 1, 0xff}, "", ""
	one.Position = got[int64](t)(s.KeepRefs(t.Context(), one, 0))
	two.Position = got[int64](t)(s.KeepRefs(t.Context(), two, one.Position))
	if two.Position <= one.Position {
		t.Errorf("position %d comes after %d", two.Position, one.Position)
	}
	equal(t, got[store.KeptRefs](t)(s.NewestRefs(t.Context(), x.ID)), two)
	equal(t, got[[]store.KeptRefs](t)(s.RefsSince(t.Context(), x.ID, 0)), []store.KeptRefs{one, two})
	equal(t, got[[]store.KeptRefs](t)(s.RefsSince(t.Context(), x.ID, one.Position)), []store.KeptRefs{two})
	withoutPack := one
	withoutPack.Pack = nil
	y := running(t, s)
	withoutPack.Task, one.Task = y.ID, y.ID
	withoutPack.Position = got[int64](t)(s.KeepRefs(t.Context(), one, 0))
	equal(t, got[store.KeptRefs](t)(s.NewestRefs(t.Context(), y.ID)), withoutPack)
}

func keepRefsInOrder(t *testing.T, s store.Store) {
	x := running(t, s)
	first := got[int64](t)(s.KeepRefs(t.Context(), refsOf(x, "c1"), 0))
	_, err := s.KeepRefs(t.Context(), refsOf(x, "c2"), 0)
	wantCode(t, err, task.Conflict)
	_, err = s.KeepRefs(t.Context(), refsOf(x, "c2"), first+1)
	wantCode(t, err, task.Conflict)
	lost := moved(t, s, x, task.Lost)
	_, err = s.KeepRefs(t.Context(), refsOf(x, "c2"), first)
	wantCode(t, err, task.StaleGeneration)
	equal(t, got[store.KeptRefs](t)(s.NewestRefs(t.Context(), x.ID)).Refs["refs/toryo/wip"], "c1")
	got[int64](t)(s.KeepRefs(t.Context(), refsOf(lost, "c3"), first))
	_, err = s.KeepRefs(t.Context(), refsOf(task.Task{ID: "none", Generation: 1}, "c"), 0)
	wantCode(t, err, task.NotFound)
}

func keepRefsTogether(t *testing.T, s store.Store) {
	x := running(t, s)
	var kept atomic.Int64
	together(8, func(int) {
		switch _, err := s.KeepRefs(t.Context(), refsOf(x, "c"), 0); {
		case err == nil:
			kept.Add(1)
		case task.CodeOf(err) != task.Conflict:
			t.Error(err)
		}
	})
	equal(t, kept.Load(), 1)
}

func pruneRefs(t *testing.T, s store.Store) {
	goesOn, ends := running(t, s), running(t, s)
	for _, x := range []task.Task{goesOn, ends} {
		got[int64](t)(s.KeepRefs(t.Context(), refsOf(x, "c1"), 0))
	}
	last := got[store.KeptRefs](t)(s.NewestRefs(t.Context(), ends.ID)).Position
	ended := moved(t, s, ends, task.Finished)
	equal(t, pruned(t, s, store.KeptGit, ended.UpdatedAt), 0)
	equal(t, pruned(t, s, store.KeptGit, ended.UpdatedAt.Add(time.Second)), 1)
	_, err := s.NewestRefs(t.Context(), ends.ID)
	wantCode(t, err, task.NotFound)
	got[store.KeptRefs](t)(s.NewestRefs(t.Context(), goesOn.ID))
	if again := got[int64](t)(s.KeepRefs(t.Context(), refsOf(ended, "c2"), 0)); again <= last {
		t.Errorf("position %d was used before", again)
	}
	pruned(t, s, store.KeptGit, ended.UpdatedAt.Add(time.Second))
	prunePromised(t, s)
}

// prunePromised shows that what people were told stays until then, whatever the period is by now.
func prunePromised(t *testing.T, s store.Store) {
	t.Helper()
	promise := func(x task.Task, trigger task.Trigger, until time.Duration) task.Task {
		return got[task.Task](t)(s.Move(t.Context(), store.Change{Task: x.ID, Trigger: trigger, Reason: task.ReasonCompleted, KeptUntil: time.Now().Add(until)}))
	}
	x := running(t, s)
	got[int64](t)(s.KeepRefs(t.Context(), refsOf(x, "c1"), 0))
	x = promise(x, task.Finished, time.Hour)
	later := x.UpdatedAt.Add(time.Minute)
	equal(t, got[store.Extent](t)(s.Prunable(t.Context(), store.KeptGit, later)).Rows, 0)
	equal(t, pruned(t, s, store.KeptGit, later), 0)
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)).KeptUntil, x.KeptUntil)

	y := running(t, s)
	got[int64](t)(s.KeepRefs(t.Context(), refsOf(y, "c1"), 0))
	y = promise(y, task.Finished, -time.Hour)
	equal(t, pruned(t, s, store.KeptGit, y.UpdatedAt.Add(time.Minute)), 1)
	got[store.KeptRefs](t)(s.NewestRefs(t.Context(), x.ID))
}
