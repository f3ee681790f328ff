package storetest

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// reopen closes a database, opens it again and finds everything, then has two
// stores on it at once.
func reopen(t *testing.T, open func() store.Store) {
	s := open()
	x := running(t, s)
	a, _ := put(t, s, actionOf(x, "comment"))
	equal(t, got[int](t)(s.Append(t.Context(), []task.Event{eventOf(x, task.FromAgent, 1)})), 1)
	events := journal(t, s, x.ID)
	thread := newThread(t, s)
	item := boardAdd(t, s, boardRepository(t, s), task.Pull)
	token := got[store.Token](t)(s.AddToken(t.Context(), store.Token{Hash: []byte("h")}))
	must(t, s.CacheAnswer(t.Context(), store.CachedAnswer{Key: "k", Body: []byte("b")}))
	must(t, s.Close())

	s = opened(t, open)
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)), x)
	must(t, s.Holds(t.Context(), x.ID, x.Generation, tokenHash))
	equal(t, actionNow(t, s, a), a)
	equal(t, journal(t, s, x.ID), events)
	equal(t, got[store.Thread](t)(s.Thread(t.Context(), thread.ID)), thread)
	equal(t, boardNow(t, s, item), item)
	equal(t, got[store.Token](t)(s.TokenByHash(t.Context(), token.Hash)), token)
	equal(t, string(got[store.CachedAnswer](t)(s.CachedAnswer(t.Context(), "k")).Body), "b")
	next, _ := put(t, s, actionOf(x, "next"))
	equal(t, next.Sequence, a.Sequence+1)
	equal(t, boardAdd(t, s, item.Repository, task.Issue).Number, item.Number+1)

	second := opened(t, open)
	after := moved(t, second, x, task.Finished)
	equal(t, got[task.Task](t)(s.Task(t.Context(), x.ID)), after)
	_, err := s.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.Finished})
	wantIllegal(t, err)
}
