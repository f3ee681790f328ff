package leader

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
)

// clockEvery is how often the database is asked for the time.
const clockEvery = time.Minute

// Clock is the time of the database on this machine, so that all servers on one
// database agree on when a lease ends, whatever their own clocks say. Between two
// readings it goes on by the machine's steady clock: setting the wall clock does
// not move it. What remains between two servers is the time that a reading takes.
type Clock struct {
	source store.Clock
	last   atomic.Pointer[clockReading]

	running lifecycle.Group
}

type clockReading struct {
	there time.Time // on the database's machine
	here  time.Time // on ours, with the steady clock
}

// NewClock reads the time of the database.
func NewClock(ctx context.Context, source store.Clock) (*Clock, error) {
	c := &Clock{source: source}
	err := c.Read(ctx)
	return c, err
}

// Start begins to read the time of the database every minute.
func (c *Clock) Start(ctx context.Context, log *slog.Logger) {
	c.running.Start(ctx, func(ctx context.Context) {
		for lifecycle.Sleep(ctx, clockEvery) == nil {
			if err := c.Read(ctx); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "failed to read the clock of the database; continuing with the local clock", "error", err)
			}
		}
	})
}

// Stop ends what Start began.
func (c *Clock) Stop() { c.running.Stop() }

// Read reads the time of the database once more.
func (c *Clock) Read(ctx context.Context) error {
	before := time.Now()
	there, err := c.source.Time(ctx)
	if err != nil {
		return err
	}
	took := time.Since(before)
	c.last.Store(&clockReading{there: there, here: before.Add(took / 2)})
	return nil
}

// Now is the time on the database's machine.
func (c *Clock) Now() time.Time {
	last := c.last.Load()
	return last.there.Add(time.Since(last.here))
}
