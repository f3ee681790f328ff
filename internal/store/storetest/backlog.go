package storetest

import (
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var backlogChecks = []check{
	{"an empty database has no backlog", emptyBacklog},
	{"what has not ended is counted by state", backlogOfTasks},
	{"what is blocked, or whose time has not come, does not wait", backlogSince},
	{"writes are counted until they are delivered", backlogOfWrites},
}

func backlog(t *testing.T, s store.Store, at time.Time) store.Backlog {
	t.Helper()
	return got[store.Backlog](t)(s.Backlog(t.Context(), at))
}

func emptyBacklog(t *testing.T, s store.Store) {
	equal(t, backlog(t, s, noon), store.Backlog{Tasks: map[task.State]int64{}})
}

func backlogOfTasks(t *testing.T, s store.Store) {
	queue(t, s, func(*store.NewTask) {})
	queue(t, s, func(w *store.NewTask) { w.ReadyAt = noon.Add(time.Hour) })
	running(t, s)
	moved(t, s, running(t, s), task.PauseSet)
	moved(t, s, running(t, s), task.Finished)
	equal(t, backlog(t, s, noon).Tasks, map[task.State]int64{task.Queued: 2, task.Running: 1, task.Paused: 1})
}

func backlogSince(t *testing.T, s store.Store) {
	queue(t, s, func(w *store.NewTask) { w.BlockedBy = task.KeysOf(newKey()) })
	later := queue(t, s, func(w *store.NewTask) { w.ReadyAt = time.Now().Add(time.Hour) })
	equal(t, backlog(t, s, time.Now()).QueuedSince, time.Time{})
	equal(t, backlog(t, s, later.ReadyAt).QueuedSince, later.ReadyAt)
	first := queue(t, s, func(*store.NewTask) {})
	queue(t, s, func(*store.NewTask) {})
	equal(t, backlog(t, s, later.ReadyAt).QueuedSince, first.UpdatedAt)
	got[bool](t)(s.PauseAll(t.Context(), store.GeneralPause{Source: "alice", At: noon}))
	equal(t, backlog(t, s, later.ReadyAt).QueuedSince, time.Time{})
}

func backlogOfWrites(t *testing.T, s store.Store) {
	a, _ := put(t, s, own(newKey(), "first"))
	b, _ := put(t, s, own(newKey(), "second"))
	taken(t, s, noon)
	must(t, s.Retry(t.Context(), a.ID, 1, noon.Add(time.Second), "the forge is down"))
	now := backlog(t, s, noon)
	equal(t, [2]int64{now.Writes, now.Retried}, [2]int64{1, 1})
	must(t, s.Deliver(t.Context(), b.ID, nil))
	taken(t, s, noon.Add(time.Second))
	must(t, s.Refuse(t.Context(), a.ID, task.ReasonRejectedByForge, "422"))
	now = backlog(t, s, noon)
	equal(t, [2]int64{now.Writes, now.Retried}, [2]int64{0, 0})
}
