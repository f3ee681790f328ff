package broker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

var quiet = slog.New(slog.DiscardHandler)

// One server of several does the background work. When it stops another does, and
// when it dies without a word too, within seconds.
func TestOneServerDoesTheDuties(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.Store) {
		t.Helper()
		var mu sync.Mutex
		working := map[string]bool{}
		var most atomic.Int64
		server := func(name string, offices store.Offices) *broker.Duties {
			d := &broker.Duties{Offices: offices, Holder: name, Log: quiet, All: []broker.Duty{
				{Name: "fail", Every: time.Millisecond, Do: func(context.Context) error { return errors.New("as always") }},
				{Name: "work", Every: time.Hour, Do: func(ctx context.Context) error {
					mu.Lock()
					working[name] = true
					most.Store(max(most.Load(), int64(len(working))))
					mu.Unlock()
					<-ctx.Done()
					mu.Lock()
					delete(working, name)
					mu.Unlock()
					return ctx.Err()
				}},
			}}
			d.Start(t.Context())
			return d
		}
		who := func() string {
			mu.Lock()
			defer mu.Unlock()
			for name := range working {
				return name
			}
			return ""
		}
		dead := &deadOffices{Offices: open()}
		first := server("first", dead)
		until(t, "the first server works", func() bool { return who() == "first" })
		second := server("second", open())
		defer second.Stop(t.Context())
		third := server("third", open())
		defer third.Stop(t.Context())
		// It is cut off from the database: it stops by itself, and another begins.
		dead.cut.Store(true)
		until(t, "another server works", func() bool { return who() == "second" || who() == "third" })
		if most.Load() != 1 {
			t.Errorf("%d servers worked at the same time", most.Load())
		}
		first.Stop(t.Context())
		next := map[string]*broker.Duties{"second": second, "third": third}
		was := who()
		next[was].Stop(t.Context())
		until(t, "the last server works", func() bool { return who() != "" && who() != was })
	})
}

type deadOffices struct {
	store.Offices
	cut atomic.Bool
}

func (d *deadOffices) Hold(ctx context.Context, office, holder string, lasting time.Duration) (bool, error) {
	if d.cut.Load() {
		return false, errors.New("no connection")
	}
	return d.Offices.Hold(ctx, office, holder, lasting)
}

// expiry is an expiry whose clock can be set.
func newExpiry(s store.Store, now func() time.Time) *broker.Expiry {
	return &broker.Expiry{
		Leases: s, Tasks: s, MaxAttempts: 3, Labels: labels, Now: now, Wrote: func() {}, Log: quiet,
		GaveUp: func(t task.Task) string { return broker.AttemptsComment("auto", t) },
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
		if err != nil || comment.Kind != (broker.Comment{}).Kind() {
			t.Errorf("the comment is %+v, %v", comment, err)
		}
	})
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

// Servers whose own clocks differ agree on the time, because it is the database's.
func TestClocksAgree(t *testing.T) {
	t.Parallel()
	source := &shifted{at: noon}
	one, err := broker.NewClock(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	if ahead := one.Now().Sub(noon); ahead < 0 || ahead > time.Minute {
		t.Errorf("the clock is %s ahead of the database", ahead)
	}
	source.at = noon.Add(time.Hour)
	if err := one.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if one.Now().Before(noon.Add(time.Hour)) {
		t.Errorf("it is %s", one.Now())
	}
	source.err = errors.New("down")
	if err := one.Read(t.Context()); err == nil || one.Now().Before(noon.Add(time.Hour)) {
		t.Errorf("a clock that cannot be read stops ours: %v", err)
	}
}

type shifted struct {
	at  time.Time
	err error
}

func (s *shifted) Time(context.Context) (time.Time, error) { return s.at, s.err }
