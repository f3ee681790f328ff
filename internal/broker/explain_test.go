package broker_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// Explain is about an agent that asks; Turns is about a moment in which none does.
func TestExplainAndTurns(t *testing.T) {
	t.Parallel()
	s := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	now := time.Now()
	names := map[string]string{}
	for name, ready := range map[string]time.Time{"ready": {}, "later": now.Add(time.Hour)} {
		made := assignTask(t, s, func(w *store.NewTask) { w.ReadyAt = ready })
		names[string(made.ID)] = name
	}
	handOut := broker.NewHandOut(broker.HandOutOptions{Leases: s, Known: s, Now: func() time.Time { return now }})
	explained, err := handOut.Explain(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	turns, err := handOut.Turns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reasons := func(verdicts []broker.Verdict) map[string]string {
		all := map[string]string{}
		for _, verdict := range verdicts {
			all[names[string(verdict.Task.ID)]] = string(verdict.Reason)
		}
		return all
	}
	if diff := cmp.Diff(map[string]string{"ready": "next", "later": "not_ready"}, reasons(explained)); diff != "" {
		t.Errorf("explained (-want +got):\n%s", diff)
	}
	said := map[string]string{}
	for _, turn := range turns {
		said[names[string(turn.Task)]] = string(turn.Reason)
	}
	if diff := cmp.Diff(map[string]string{"ready": "no_agents", "later": "not_ready"}, said); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}
