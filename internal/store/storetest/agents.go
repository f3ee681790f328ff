package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var agentChecks = []check{
	{"leave to enrol is used once", enrol},
	{"of many that enrol with one leave, one succeeds", enrolTogether},
	{"leave runs out", enrolLate},
	{"a name is one agent's until it is revoked", agentNames},
	{"of many that enrol under one name, one succeeds", namesTogether},
	{"agents are listed with when they were seen", agentsSeen},
	{"old leave is pruned", pruneEnrolments},
}

func leave(t *testing.T, s store.Store, hash string) {
	t.Helper()
	must(t, s.AddEnrolment(t.Context(), store.Enrolment{Hash: []byte(hash), CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}))
}

func agentToken(name, hash string) store.Token { return store.Token{Name: name, Hash: []byte(hash)} }

func enrol(t *testing.T, s store.Store) {
	leave(t, s, "once")
	wantCode(t, s.AddEnrolment(t.Context(), store.Enrolment{Hash: []byte("once")}), task.Conflict)
	wantCode(t, s.AddEnrolment(t.Context(), store.Enrolment{}), task.Invalid)
	must(t, s.MayEnrol(t.Context(), []byte("once"), noon))
	wantCode(t, s.MayEnrol(t.Context(), []byte("once"), noon.Add(time.Hour)), task.Unauthorized)
	made := got[store.Token](t)(s.Enrol(t.Context(), []byte("once"), agentToken("a", "h"), noon))
	equal(t, made, store.Token{ID: made.ID, Name: "a", Role: "agent", Hash: []byte("h"), CreatedAt: noon})
	equal(t, got[store.Token](t)(s.TokenByHash(t.Context(), []byte("h"))), made)
	for _, hash := range []string{"once", "never", ""} {
		_, err := s.Enrol(t.Context(), []byte(hash), agentToken("b", "other"), noon)
		wantCode(t, err, task.Unauthorized)
		wantCode(t, s.MayEnrol(t.Context(), []byte(hash), noon), task.Unauthorized)
	}
	equal(t, len(got[[]store.Token](t)(s.ListTokens(t.Context()))), 1)
}

func enrolTogether(t *testing.T, s store.Store) {
	leave(t, s, "once")
	equal(t, successes(8, func(i int) error {
		_, err := s.Enrol(t.Context(), []byte("once"), agentToken(fmt.Sprint("a", i), fmt.Sprint("h", i)), noon)
		return err
	}), 1)
	equal(t, len(got[[]store.Agent](t)(s.ListAgents(t.Context()))), 1)
}

func successes(n int, do func(int) error) int64 {
	var succeeded atomic.Int64
	together(n, func(i int) {
		if do(i) == nil {
			succeeded.Add(1)
		}
	})
	return succeeded.Load()
}

func enrolLate(t *testing.T, s store.Store) {
	leave(t, s, "once")
	_, err := s.Enrol(t.Context(), []byte("once"), agentToken("a", "h"), noon.Add(time.Hour))
	wantCode(t, err, task.Unauthorized)
	got[store.Token](t)(s.Enrol(t.Context(), []byte("once"), agentToken("a", "h"), noon.Add(time.Hour-time.Second)))
}

func agentNames(t *testing.T, s store.Store) {
	leave(t, s, "one")
	leave(t, s, "two")
	first := got[store.Token](t)(s.Enrol(t.Context(), []byte("one"), agentToken("a", "h1"), noon))
	_, err := s.Enrol(t.Context(), []byte("two"), agentToken("a", "h2"), noon)
	wantCode(t, err, task.Conflict)
	_, err = s.Enrol(t.Context(), []byte("two"), agentToken("", "h2"), noon)
	wantCode(t, err, task.Invalid)
	must(t, s.RevokeToken(t.Context(), first.ID, noon))
	// What failed has not used the leave up.
	got[store.Token](t)(s.Enrol(t.Context(), []byte("two"), agentToken("a", "h2"), noon))
}

func namesTogether(t *testing.T, s store.Store) {
	for i := range 8 {
		leave(t, s, fmt.Sprint("leave", i))
	}
	equal(t, successes(8, func(i int) error {
		_, err := s.Enrol(t.Context(), []byte(fmt.Sprint("leave", i)), agentToken("a", fmt.Sprint("h", i)), noon)
		return err
	}), 1)
}

func agentsSeen(t *testing.T, s store.Store) {
	leave(t, s, "one")
	first := got[store.Token](t)(s.Enrol(t.Context(), []byte("one"), agentToken("a", "h1"), noon))
	second := got[store.Token](t)(s.AddToken(t.Context(), store.Token{Name: "b", Role: "agent", Hash: []byte("h2"), CreatedAt: noon}))
	got[store.Token](t)(s.AddToken(t.Context(), store.Token{Name: "c", Role: "viewer", Hash: []byte("h3"), CreatedAt: noon}))
	must(t, s.AgentsSeen(t.Context(), map[string]time.Time{first.ID: noon.Add(time.Minute), "nothing": noon}))
	must(t, s.AgentsSeen(t.Context(), map[string]time.Time{first.ID: noon}))
	must(t, s.AgentsSeen(t.Context(), nil))
	must(t, s.RevokeToken(t.Context(), second.ID, noon))
	equal(t, got[[]store.Agent](t)(s.ListAgents(t.Context())), []store.Agent{
		{Token: first.ID, Name: "a", EnrolledAt: noon, SeenAt: noon.Add(time.Minute)},
		{Token: second.ID, Name: "b", EnrolledAt: noon, RevokedAt: noon},
	})

	// An agent says whether it can take tasks, and is heard of by that.
	unable := store.Condition{Unable: task.ReasonNoSandbox, Detail: "bwrap is not there"}
	must(t, s.AgentIs(t.Context(), first.ID, unable, noon))
	must(t, s.AgentIs(t.Context(), second.ID, unable, noon.Add(time.Hour)))
	must(t, s.AgentIs(t.Context(), second.ID, store.Condition{}, noon.Add(2*time.Hour)))
	must(t, s.AgentIs(t.Context(), "nothing", unable, noon))
	must(t, s.AgentsSeen(t.Context(), map[string]time.Time{first.ID: noon.Add(time.Hour)}))
	equal(t, got[[]store.Agent](t)(s.ListAgents(t.Context())), []store.Agent{
		{Token: first.ID, Name: "a", EnrolledAt: noon, SeenAt: noon.Add(time.Hour), Condition: unable},
		{Token: second.ID, Name: "b", EnrolledAt: noon, SeenAt: noon.Add(2 * time.Hour), RevokedAt: noon},
	})
}

func pruneEnrolments(t *testing.T, s store.Store) {
	leave(t, s, "one")
	equal(t, pruned(t, s, store.KeptEnrolments, noon), 0)
	equal(t, pruned(t, s, store.KeptEnrolments, noon.Add(2*time.Hour)), 1)
	_, err := s.Enrol(t.Context(), []byte("one"), agentToken("a", "h"), noon)
	wantCode(t, err, task.Unauthorized)
}
