package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

var quiet = slog.New(slog.DiscardHandler)

// expiry is an expiry whose clock can be set.
func newExpiry(s store.Store, now func() time.Time) *broker.Expiry {
	return &broker.Expiry{
		Leases: s, Tasks: s, MaxAttempts: 3, Labels: labels, Now: now, OutboxChanged: func() {}, Log: quiet,
		GaveUp: func(_ context.Context, t task.Task) string {
			return broker.AttemptsComment(task.Automatic.Of(t.Title), t)
		},
	}
}

// A lease that runs out makes a new generation; after the last attempt the task
// fails, with a comment.
func TestLeasesRunOut(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.Store) {
		t.Helper()
		s := open()
		x := assignTask(t, s, func(w *store.NewTask) { w.Title = "門を直す" })
		now := time.Now()
		e := newExpiry(s, func() time.Time { return now })
		for attempt := 1; attempt <= 3; attempt++ {
			h, _ := handsOut(t, s, func(o *broker.HandOutOptions) { o.Now = func() time.Time { return now } })
			made := ask(t, h, fmt.Sprint("agent ", attempt)).get(t)
			h.Stop()
			if made.Task.Generation != int64(attempt) || made.Task.Attempts != attempt {
				t.Fatalf("attempt %d is %+v", attempt, made.Task)
			}
			if err := e.Expire(t.Context()); err != nil {
				t.Fatal(err)
			}
			if held, err := s.Task(t.Context(), x.ID); err != nil || held.State != task.Running {
				t.Fatalf("it ended early: %+v, %v", held, err)
			}
			now = now.Add(time.Minute)
			if err := e.Expire(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Renew(t.Context(), x.ID, made.Task.Generation, []byte(made.Token), now.Add(time.Hour)); task.CodeOf(err) != task.LeaseLost {
				t.Errorf("an agent that comes back late is told %v", err)
			}
		}
		failed, err := s.Task(t.Context(), x.ID)
		if err != nil || failed.State != task.Failed || failed.Reason != task.ReasonAttemptsExhausted {
			t.Errorf("the task is %+v, %v", failed, err)
		}
		comment, err := s.Action(t.Context(), string(x.ID)+"/3/attempts")
		if err != nil || comment.Kind != (outbox.Comment{}).Kind() {
			t.Errorf("the comment is %+v, %v", comment, err)
		}
	})
}

// TestLeasesOutlastAnOutage: agents cannot renew leases while the database is down or its
// disk full. They have the time of one renewal for it afterwards.
func TestLeasesOutlastAnOutage(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.Store) {
		t.Helper()
		s := open()
		x := assignTask(t, s)
		now := time.Now()
		e := newExpiry(s, func() time.Time { return now })
		e.Grace = 15 * time.Second
		h, _ := handsOut(t, s, func(o *broker.HandOutOptions) { o.Now = func() time.Time { return now } })
		made := ask(t, h, "agent").get(t)
		h.Stop()
		state := func(after time.Duration, want task.State) {
			t.Helper()
			now = now.Add(after)
			if err := e.Expire(t.Context()); err != nil {
				t.Fatal(err)
			}
			if found, err := s.Task(t.Context(), x.ID); err != nil || found.State != want {
				t.Fatalf("the task is %s, %v", found.State, err)
			}
		}
		state(0, task.Running)
		state(10*time.Minute, task.Running) // the outage is over, and the lease too
		state(10*time.Second, task.Running)
		if err := s.Holds(t.Context(), x.ID, 1, []byte(made.Token)); err != nil {
			t.Errorf("the agent that comes then is told %v", err)
		}
		if err := s.Renew(t.Context(), x.ID, 1, []byte(made.Token), now.Add(time.Minute)); err != nil {
			t.Errorf("the agent that comes then is told %v", err)
		}
		for range 5 {
			state(10*time.Second, task.Running)
		}
		state(11*time.Second, task.Queued) // it did not come again
	})
}

// downLeases is a database that cannot be asked for leases while it is down.
type downLeases struct {
	store.Leases
	down bool
}

func (f *downLeases) Expired(ctx context.Context, now time.Time, limit int) ([]task.Task, error) {
	if f.down {
		return nil, task.Errorf(task.DatabaseDown, "the database is down")
	}
	return f.Leases.Expired(ctx, now, limit)
}

// A look that fails is none: agents have the same time after an outage in which somebody looked
// again and again.
func TestLooksThatFailAreNone(t *testing.T) {
	t.Parallel()
	s := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	x := assignTask(t, s)
	now := time.Now()
	e := newExpiry(s, func() time.Time { return now })
	database := &downLeases{Leases: s}
	e.Leases, e.Grace = database, 15*time.Second
	h, _ := handsOut(t, s, func(o *broker.HandOutOptions) { o.Now = func() time.Time { return now } })
	ask(t, h, "agent").get(t)
	h.Stop()
	look := func(want task.State) {
		t.Helper()
		if err := e.Expire(t.Context()); (err != nil) != database.down {
			t.Fatal(err)
		}
		if found, err := s.Task(t.Context(), x.ID); err != nil || found.State != want {
			t.Fatalf("the task is %s, %v", found.State, err)
		}
		now = now.Add(10 * time.Second)
	}
	look(task.Running)
	database.down = true
	for range 60 {
		look(task.Running)
	}
	database.down = false
	look(task.Running)
	look(task.Running)
	look(task.Queued) // nobody has renewed it since
}

// renewing renews a lease at the last moment: after it was found to be over.
type renewing struct {
	store.Leases
	last func(task.Task)
}

func (r renewing) Expired(ctx context.Context, now time.Time, limit int) ([]task.Task, error) {
	found, err := r.Leases.Expired(ctx, now, limit)
	for _, t := range found {
		r.last(t)
	}
	return found, err
}

func TestALeaseRenewedAtTheLastMoment(t *testing.T) {
	t.Parallel()
	s := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	h, _ := handsOut(t, s)
	assignTask(t, s)
	made := ask(t, h, "a").get(t)
	now := time.Now().Add(2 * time.Minute)
	e := newExpiry(s, func() time.Time { return now })
	e.Leases = renewing{s, func(x task.Task) {
		if err := s.Renew(t.Context(), x.ID, x.Generation, []byte(made.Token), now.Add(time.Minute)); err != nil {
			t.Error(err)
		}
	}}
	if err := e.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is, err := s.Task(t.Context(), made.Task.ID); err != nil || is.State != task.Running || is.Generation != 1 {
		t.Errorf("the task is %+v, %v", is, err)
	}
}

// A halt that waits for the run is what happens when its lease is over.
func TestAHaltComesBeforeTheQueue(t *testing.T) {
	t.Parallel()
	s := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	h, _ := handsOut(t, s)
	assignTask(t, s)
	made := ask(t, h, "a").get(t)
	e := newExpiry(s, func() time.Time { return time.Now().Add(2 * time.Minute) })
	e.Halted = func(ctx context.Context, x task.Task) (bool, error) {
		_, err := s.Move(ctx, store.Change{Task: x.ID, Trigger: task.PauseSet, Reason: task.ReasonPauseRequested})
		return true, err
	}
	if err := e.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is, err := s.Task(t.Context(), made.Task.ID); err != nil || is.State != task.Paused {
		t.Errorf("the task is %+v, %v", is, err)
	}
}

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
			effects := outbox.Labels(labels).Effects
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
