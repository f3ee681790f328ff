package broker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// countedHalts counts how often halts are asked for, and ends that when it is too often.
type countedHalts struct {
	broker.RunStore
	asked atomic.Int64
}

func (c *countedHalts) RequestHalt(ctx context.Context, halt store.Halt) (task.Task, bool, error) {
	if c.asked.Add(1) > 1000 {
		return task.Task{}, false, errors.New("this is asked again and again")
	}
	return c.RunStore.RequestHalt(ctx, halt)
}

// While everything is paused and a run has not ended yet, its pause is asked for when
// something happens and now and then, and not all the time.
func TestPauseOfEverythingWaits(t *testing.T) {
	t.Parallel()
	path := testkit.SQLite(t, sqlite.Open)
	synctest.Test(t, func(t *testing.T) {
		database := opened(t, sqlite.Open, path)
		made := assignTask(t, database)
		if held, err := database.Claim(t.Context(), []store.Claim{{
			Task: made.ID, Generation: made.Generation, Agent: "a", TokenHash: []byte("x"), ExpiresAt: time.Now().Add(time.Hour),
		}}, nil); err != nil || len(held) != 1 {
			t.Fatalf("claimed %v, %v", held, err)
		}
		counted := &countedHalts{RunStore: database}
		sender := outbox.NewSender(outbox.SenderOptions{Outbox: database, Tasks: database})
		halts := broker.NewController(broker.ControllerOptions{Store: counted, Sender: sender, Status: &broker.StatusText{Labels: labels}})
		halts.Start(t.Context())
		t.Cleanup(halts.Stop)
		if err := halts.PauseAll(t.Context(), "test", ""); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if n := counted.asked.Load(); n == 0 || n > 20 {
			t.Errorf("the pause was asked for %d times in a minute", n)
		}
	})
}
