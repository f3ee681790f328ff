package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
)

const (
	// stepRows is about how many rows go in one transaction, and stepPause is how long others
	// have the database to themselves between two.
	stepRows  = 500
	stepPause = 20 * time.Millisecond
)

// Periods say for how long what is kept. What is not named, or has no time, stays.
type Periods map[store.Kept]time.Duration

// Database removes what the database has kept for long enough.
type Database struct {
	Store   store.Retention
	Periods Periods
	Now     func() time.Time
	Log     *slog.Logger
}

// Removed is how many rows went, by what they were.
type Removed map[store.Kept]int

// before is the time before which something goes, and false if it stays.
func (d Database) before(what store.Kept) (time.Time, bool) {
	switch what {
	case store.KeptSessions, store.KeptEnrolments: // they have expired
		return d.Now(), true
	}
	lasts := d.Periods[what]
	return d.Now().Add(-lasts), lasts > 0
}

// Prune removes all that is old enough, until the context ends. What fails of one kind does not
// keep the other kinds from being removed.
func (d Database) Prune(ctx context.Context) (Removed, error) {
	removed := Removed{}
	var failed []error
	for _, what := range store.AllKept {
		before, ends := d.before(what)
		if !ends {
			continue
		}
		n, err := d.prune(ctx, what, before)
		removed[what] = n
		if ctx.Err() != nil {
			return removed, ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("remove old %s: %w", what, err))
		}
		if n > 0 {
			d.Log.InfoContext(ctx, "removed what was kept for long enough", "what", string(what), "rows", n, "before", before)
		}
	}
	return removed, errors.Join(failed...)
}

// prune removes what is old enough of one kind, step by step.
func (d Database) prune(ctx context.Context, what store.Kept, before time.Time) (removed int, err error) {
	for more := true; more; {
		var n int
		if n, more, err = d.Store.Prune(ctx, what, before, stepRows); err != nil {
			return removed, err
		}
		removed += n
		if more {
			if err := lifecycle.Sleep(ctx, stepPause); err != nil {
				return removed, err
			}
		}
	}
	return removed, nil
}

// Prunable says how much Prune would remove. What fails of one kind does not keep the other kinds from being
// counted.
func (d Database) Prunable(ctx context.Context) (map[store.Kept]store.Extent, error) {
	all := map[store.Kept]store.Extent{}
	var failed []error
	for _, what := range store.AllKept {
		before, ends := d.before(what)
		if !ends {
			continue
		}
		extent, err := d.Store.Prunable(ctx, what, before)
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("count old %s: %w", what, err))
		}
		if extent.Rows > 0 {
			all[what] = extent
		}
	}
	return all, errors.Join(failed...)
}
