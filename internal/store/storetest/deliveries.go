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
	{"what was delivered about a subject is known", deliveredAbout},
	{"the last webhooks are kept, and those that were refused apart", received},
}

func recordDelivery(t *testing.T, s store.Store) {
	equal(t, got[bool](t)(s.DeliverySeen(t.Context(), task.GitHub, "a")), false)
	equal(t, got[bool](t)(s.RecordDelivery(t.Context(), store.Delivery{Forge: task.GitHub, ID: "a", At: noon})), true)
	equal(t, got[bool](t)(s.DeliverySeen(t.Context(), task.GitHub, "a")), true)
	equal(t, got[bool](t)(s.RecordDelivery(t.Context(), store.Delivery{Forge: task.GitHub, ID: "a", At: noon})), false)
	equal(t, got[bool](t)(s.DeliverySeen(t.Context(), task.GitLab, "a")), false)
	equal(t, got[bool](t)(s.DeliverySeen(t.Context(), task.GitHub, "A")), false)
	_, err := s.RecordDelivery(t.Context(), store.Delivery{Forge: task.GitHub, ID: "", At: noon})
	wantCode(t, err, task.Invalid)
}

func recordTogether(t *testing.T, s store.Store) {
	var firsts atomic.Int64
	together(8, func(int) {
		first, err := s.RecordDelivery(t.Context(), store.Delivery{Forge: task.GitHub, ID: "a", At: noon})
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
		got[bool](t)(s.RecordDelivery(t.Context(), store.Delivery{Forge: task.Gitea, ID: id, At: noon.Add(time.Duration(i) * time.Hour)}))
	}
	equal(t, pruned(t, s, store.KeptDeliveries, noon.Add(2*time.Hour)), 2)
	equal(t, got[bool](t)(s.DeliverySeen(t.Context(), task.Gitea, "b")), false)
	equal(t, got[bool](t)(s.DeliverySeen(t.Context(), task.Gitea, "c")), true)
}

func deliveredAbout(t *testing.T, s store.Store) {
	for i, d := range []store.Delivery{
		{Subject: "github:a/b#1", Event: "issues", At: noon},
		{Subject: "github:a/b#1", Event: "issues", At: noon.Add(time.Second)},
		{Subject: "github:a/b#1", Event: "issue_comment", At: noon.Add(2 * time.Second)},
		{Subject: "github:a/b#2", Event: "other", At: noon.Add(3 * time.Second)},
		{Subject: task.Repository{Forge: task.GitHub, Name: "a/b"}.String(), At: noon.Add(3 * time.Second)},
	} {
		d.Forge, d.ID = task.GitHub, string(rune('a'+i))
		got[bool](t)(s.RecordDelivery(t.Context(), d))
	}
	about := func(subject string, since time.Time) []string {
		return got[[]string](t)(s.DeliveredAbout(t.Context(), subject, since))
	}
	equal(t, about("github:a/b#1", noon), []string{"issue_comment", "issues"})
	equal(t, about("github:a/b#1", noon.Add(2*time.Second)), []string{"issue_comment"})
	equal(t, about("github:a/b#1", noon.Add(3*time.Second)), nil)
	equal(t, about("github:a/b#3", noon), nil)
	equal(t, about("github:a/b", noon), []string{""})
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
