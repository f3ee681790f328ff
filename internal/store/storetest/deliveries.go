package storetest

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var deliveryChecks = []check{
	{"a delivery is recorded once", recordDelivery},
	{"of many that record one delivery, one is first", recordTogether},
	{"old deliveries are pruned", pruneDeliveries},
	{"the last webhooks are kept, and those that were refused apart", received},
}

func recordDelivery(t *testing.T, s store.Store) {
	equal(t, got[bool](t)(s.DeliverySeen(t.Context(), task.GitHub, "a")), false)
	equal(t, got[bool](t)(s.RecordDelivery(t.Context(), task.GitHub, "a", noon)), true)
	equal(t, got[bool](t)(s.DeliverySeen(t.Context(), task.GitHub, "a")), true)
	equal(t, got[bool](t)(s.RecordDelivery(t.Context(), task.GitHub, "a", noon)), false)
	equal(t, got[bool](t)(s.DeliverySeen(t.Context(), task.GitLab, "a")), false)
	equal(t, got[bool](t)(s.DeliverySeen(t.Context(), task.GitHub, "A")), false)
	_, err := s.RecordDelivery(t.Context(), task.GitHub, "", noon)
	wantCode(t, err, task.Invalid)
}

func recordTogether(t *testing.T, s store.Store) {
	var firsts atomic.Int64
	together(8, func(int) {
		first, err := s.RecordDelivery(t.Context(), task.GitHub, "a", noon)
		if err != nil {
			t.Error(err)
		}
		if first {
			firsts.Add(1)
		}
	})
	equal(t, firsts.Load(), 1)
}

func pruneDeliveries(t *testing.T, s store.Store) {
	for i, id := range []string{"a", "b", "c"} {
		got[bool](t)(s.RecordDelivery(t.Context(), task.Gitea, id, noon.Add(time.Duration(i)*time.Hour)))
	}
	equal(t, got[int](t)(s.PruneDeliveries(t.Context(), noon.Add(2*time.Hour))), 2)
	equal(t, got[bool](t)(s.DeliverySeen(t.Context(), task.Gitea, "b")), false)
	equal(t, got[bool](t)(s.DeliverySeen(t.Context(), task.Gitea, "c")), true)
}

func received(t *testing.T, s store.Store) {
	equal(t, got[[]store.Received](t)(s.ListReceived(t.Context(), task.GitHub)), nil)
	taken := store.Received{Forge: task.GitHub, At: noon, Event: "push", Repository: "a/b", Status: 204}
	refused := store.Received{Forge: task.GitHub, At: noon, Event: "", Status: 401, Problem: "not signed"}
	must(t, s.AddReceived(t.Context(), taken, 2))
	for i := range 4 { // they drive each other out, and not what was taken
		refused.Status = 400 + i
		must(t, s.AddReceived(t.Context(), refused, 2))
	}
	older := refused
	older.Status = 402
	equal(t, got[[]store.Received](t)(s.ListReceived(t.Context(), task.GitHub)), []store.Received{refused, older, taken})
	equal(t, got[[]store.Received](t)(s.ListReceived(t.Context(), task.Gitea)), nil)
	must(t, s.AddReceived(t.Context(), store.Received{Forge: task.Gitea, At: noon, Event: strings.Repeat("é", 500), Repository: "\xff", Status: 204}, 2))
	odd := got[[]store.Received](t)(s.ListReceived(t.Context(), task.Gitea))[0]
	equal(t, odd.Event, strings.Repeat("é", 100))
	equal(t, odd.Repository, "")
}
