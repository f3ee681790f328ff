package site

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/leader"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

// Nobody is told anything before the server can say what it cannot use: what was told of it
// would count as over.
func TestNotificationsBeginWithTheServer(t *testing.T) {
	t.Parallel()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var requests atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(web.Close)
	database, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), DatabaseFile))
	check(err)
	t.Cleanup(func() { check(database.Close()) })
	clock, err := leader.NewClock(t.Context(), database)
	check(err)
	c := config.Config{Notifications: config.Notifications{TimeZone: "UTC", Webhooks: map[string]config.NotificationWebhook{
		"team": {Format: "json", URL: redact.Secret(web.URL), About: []string{string(task.NeedPause), string(task.NeedServer)}},
	}}}
	f := &connections{store: database, clock: clock, log: slog.New(slog.DiscardHandler)}
	d := &dispatch{notifier: new(broker.Notifier)}
	d.needs = &broker.Needs{Store: database, Now: clock.Now, Faults: d.serverFaults}
	jobs, err := notifying(c, f, d)
	check(err)
	_, err = database.PauseAll(t.Context(), store.GeneralPause{Source: "operator", At: clock.Now()})
	check(err)
	check(jobs[0].Do(t.Context()))
	if requests.Load() != 0 {
		t.Error("people are told before the server is there")
	}
	d.setFaults(func(context.Context) []broker.Fault { return []broker.Fault{{Name: "data_folder", Detail: "full"}} })
	check(jobs[0].Do(t.Context()))
	known, err := database.ListNotifications(t.Context(), "team")
	check(err)
	if requests.Load() != 1 || len(known) != 2 {
		t.Errorf("%d messages, and %+v is remembered", requests.Load(), known)
	}
}

// The doctor hears what could not be told that still waits.
func TestWhatBecameOfNotifications(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	if count, why := unsentOf([]store.Notification{{Key: "waits"}, {Key: "over", OverAt: at, Problem: "closed"}}); count != 0 || why != "" {
		t.Errorf("it hears %d, %s", count, why)
	}
	if count, why := unsentOf([]store.Notification{{Key: "failed", Problem: "closed"}, {Key: "sent", SentAt: at}, {Key: "sent and over", SentAt: at, OverAt: at}}); count != 1 || why != "closed" {
		t.Errorf("it hears %d, %s", count, why)
	}
}
