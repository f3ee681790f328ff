package leader_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/leader"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/testkit"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// onBoth tests on both databases. What open returns are connections of several servers.
func onBoth(t *testing.T, test func(t *testing.T, open func() store.Store)) {
	t.Helper()
	for name, of := range map[string]struct {
		address func(t *testing.T) string
		open    func(context.Context, string) (store.Store, error)
	}{
		"SQLite":     {func(t *testing.T) string { t.Helper(); return testkit.SQLite(t, sqlite.Open) }, sqlite.Open},
		"PostgreSQL": {func(t *testing.T) string { t.Helper(); return testkit.Postgres(t) }, postgres.Open},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := of.address(t)
			test(t, func() store.Store {
				s, err := of.open(t.Context(), address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
				return s
			})
		})
	}
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !is() {
		if lifecycle.Sleep(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// Somebody else leads while no server does, and not while one does.
func TestTake(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.Store) {
		database := open()
		var begun sync.Once
		works := make(chan struct{})
		server := &leader.Election{Elections: database, Server: "a", Log: slog.New(slog.DiscardHandler), Jobs: []leader.Job{
			{Name: "work", Every: time.Hour, Do: func(context.Context) error { begun.Do(func() { close(works) }); return nil }},
		}}
		server.Start(t.Context())
		<-works
		if taken, err := leader.Take(t.Context(), database, "somebody"); err != nil || taken {
			t.Errorf("while a server leads: %v, %v", taken, err)
		}
		server.Stop(t.Context())
		for range 2 {
			if taken, err := leader.Take(t.Context(), database, "somebody"); err != nil || !taken {
				t.Errorf("after the server has stopped: %v, %v", taken, err)
			}
		}
	})
}

// One server of several does the background work. When it stops another does, and
// when it dies without a word too, within seconds.
func TestOneServerLeads(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.Store) {
		t.Helper()
		var mu sync.Mutex
		working := map[string]bool{}
		var most atomic.Int64
		server := func(name string, elections store.Elections) *leader.Election {
			e := &leader.Election{Elections: elections, Server: name, Log: slog.New(slog.DiscardHandler), Jobs: []leader.Job{
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
			e.Start(t.Context())
			return e
		}
		who := func() string {
			mu.Lock()
			defer mu.Unlock()
			for name := range working {
				return name
			}
			return ""
		}
		dead := &cutOff{Elections: open()}
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
		next := map[string]*leader.Election{"second": second, "third": third}
		was := who()
		next[was].Stop(t.Context())
		until(t, "the last server works", func() bool { return who() != "" && who() != was })
	})
}

// cutOff is a connection to the database that can be cut.
type cutOff struct {
	store.Elections
	cut atomic.Bool
}

// Lead fails once it is cut.
func (c *cutOff) Lead(ctx context.Context, election, server string, lasting time.Duration) (bool, error) {
	if c.cut.Load() {
		return false, errors.New("no connection")
	}
	return c.Elections.Lead(ctx, election, server, lasting)
}

// Servers whose own clocks differ agree on the time, because it is the database's.
func TestClocksAgree(t *testing.T) {
	t.Parallel()
	source := &shifted{at: noon}
	one, err := leader.NewClock(t.Context(), source)
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
