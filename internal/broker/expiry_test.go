package broker_test

import (
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// A task that is lost with an agent that was started again goes on at once. Only one that
// is lost again shortly after it was handed out or came to its phase waits a little.
func TestLostWithRestartedAgents(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		claims int           // before the loss
		after  time.Duration // the last of them
		waits  bool
	}{
		"for the first time":              {1, time.Second, false},
		"again, a moment after the claim": {2, time.Second, true},
		"again, long after the claim":     {2, 10 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tasks := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
			effects := broker.Labels(labels).Effects
			is := assignTask(t, tasks)
			var err error
			for claim := 1; err == nil && claim <= test.claims; claim++ {
				if claim > 1 {
					is, err = tasks.Move(t.Context(), store.Change{Task: is.ID, Trigger: task.Lost, Reason: task.ReasonLeaseExpired})
				}
				if err != nil {
					break
				}
				var held []task.Task
				held, err = tasks.Claim(t.Context(), []store.Claim{{Task: is.ID, Generation: is.Generation, Agent: "a", TokenHash: []byte("x"), ExpiresAt: time.Now()}}, effects)
				if len(held) == 1 {
					is = held[0]
				}
			}
			if err != nil || is.State != task.Running {
				t.Fatalf("the task is %s: %v", is.State, err)
			}
			now := is.UpdatedAt.Add(test.after)
			expiry := newExpiry(tasks, func() time.Time { return now })
			if err := expiry.Restarted(t.Context(), []task.Task{is}); err != nil {
				t.Fatal(err)
			}
			lost, err := tasks.Task(t.Context(), is.ID)
			if err != nil || lost.State != task.Queued {
				t.Fatalf("the task is %s: %v", lost.State, err)
			}
			if waits := lost.ReadyAt.After(now); waits != test.waits {
				t.Errorf("it can be handed out at %s, lost at %s", lost.ReadyAt, now)
			}
		})
	}
}
