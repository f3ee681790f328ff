package storetest

import (
	"strconv"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var webhookChecks = []check{
	{"deliveries are counted for each repository and event", countDelivered},
	{"repositories that are not worked on leave nothing behind", unknownRepositories},
	{"an event that was missed is not trusted any more", missedEvent},
	{"trust that has lapsed begins anew", lapsedTrust},
	{"deliveries that are counted at once are all counted", countTogether},
}

const webhookRepository = "team/app"

// delivered counts deliveries at a time, some minutes after noon. Trust lapses after an
// hour.
func delivered(t *testing.T, s store.Store, event string, count int64, minutes int) {
	t.Helper()
	at := noon.Add(time.Duration(minutes) * time.Minute)
	must(t, s.AddDelivered(t.Context(), []store.DeliveredCount{
		{Forge: task.Gitea, Repository: webhookRepository, Event: event, Count: count, LastAt: at},
	}, at.Add(-time.Hour)))
}

func webhookEvents(t *testing.T, s store.Store) []store.WebhookEvent {
	t.Helper()
	return got[[]store.WebhookEvent](t)(s.ListWebhookEvents(t.Context()))
}

func countDelivered(t *testing.T, s store.Store) {
	equal(t, webhookEvents(t, s), nil)
	must(t, s.SetWebhookRepositories(t.Context(), task.Gitea, []string{webhookRepository, "team/quiet"}))
	must(t, s.SetWebhookRepositories(t.Context(), task.GitHub, []string{webhookRepository}))
	must(t, s.AddDelivered(t.Context(), nil, noon))
	delivered(t, s, "issues", 2, 0)
	delivered(t, s, "issues", 3, 5)
	delivered(t, s, "issues", 1, 4) // of another server, which was slower
	delivered(t, s, "issue_comment", 1, 1)
	equal(t, webhookEvents(t, s), []store.WebhookEvent{
		{Forge: task.Gitea, Repository: webhookRepository, Event: "issue_comment", Delivered: 1, Trusted: 1, LastAt: noon.Add(time.Minute)},
		{Forge: task.Gitea, Repository: webhookRepository, Event: "issues", Delivered: 6, Trusted: 6, LastAt: noon.Add(5 * time.Minute)},
		{Forge: task.Gitea, Repository: "team/quiet"},
		{Forge: task.GitHub, Repository: webhookRepository},
	})
}

func unknownRepositories(t *testing.T, s store.Store) {
	delivered(t, s, "issues", 1, 0)
	equal(t, webhookEvents(t, s), nil)
	must(t, s.SetMissed(t.Context(), task.Gitea, webhookRepository, "issues", "gitea:team/app#1", noon))
	equal(t, webhookEvents(t, s), nil)
	must(t, s.SetWebhookRepositories(t.Context(), task.Gitea, []string{webhookRepository, webhookRepository}))
	delivered(t, s, "issues", 1, 0)
	must(t, s.SetWebhookRepositories(t.Context(), task.Gitea, []string{webhookRepository}))
	equal(t, len(webhookEvents(t, s)), 1)
	equal(t, webhookEvents(t, s)[0].Delivered, 1)
	must(t, s.SetWebhookRepositories(t.Context(), task.Gitea, nil))
	delivered(t, s, "issues", 1, 0)
	equal(t, webhookEvents(t, s), nil)
	wantCode(t, s.SetWebhookRepositories(t.Context(), task.Gitea, []string{""}), task.Invalid)
}

func missedEvent(t *testing.T, s store.Store) {
	must(t, s.SetWebhookRepositories(t.Context(), task.Gitea, []string{webhookRepository}))
	delivered(t, s, "issues", 5, 0)
	delivered(t, s, "issue_comment", 5, 0)
	must(t, s.SetMissed(t.Context(), task.Gitea, webhookRepository, "issues", "gitea:team/app#1", noon.Add(10*time.Minute)))
	delivered(t, s, "issues", 2, 9) // came before it was missed, and is counted after
	events := webhookEvents(t, s)
	equal(t, events[1], store.WebhookEvent{
		Forge: task.Gitea, Repository: webhookRepository, Event: "issues", Delivered: 7, LastAt: noon.Add(9 * time.Minute),
		MissedAt: noon.Add(10 * time.Minute), Missed: "gitea:team/app#1",
	})
	equal(t, events[0].Trusted, 5)
	delivered(t, s, "issues", 1, 11)
	equal(t, webhookEvents(t, s)[1].Trusted, 1)
}

func lapsedTrust(t *testing.T, s store.Store) {
	must(t, s.SetWebhookRepositories(t.Context(), task.Gitea, []string{webhookRepository}))
	delivered(t, s, "issues", 5, 0)
	delivered(t, s, "issues", 5, 59)
	equal(t, webhookEvents(t, s)[0].Trusted, 10)
	delivered(t, s, "issues", 1, 119)
	equal(t, webhookEvents(t, s)[0].Trusted, 1)
	equal(t, webhookEvents(t, s)[0].Delivered, 11)
}

func countTogether(t *testing.T, s store.Store) {
	must(t, s.SetWebhookRepositories(t.Context(), task.Gitea, []string{webhookRepository}))
	together(8, func(i int) {
		var all []store.DeliveredCount
		for n := range 8 { // in another order each time
			all = append(all, store.DeliveredCount{
				Forge: task.Gitea, Repository: webhookRepository, Event: strconv.Itoa((n + i) % 8), Count: 1, LastAt: noon,
			})
		}
		if err := s.AddDelivered(t.Context(), all, noon.Add(-time.Hour)); err != nil {
			t.Error(err)
		}
	})
	for _, event := range webhookEvents(t, s) {
		equal(t, event.Trusted, 8)
	}
}
