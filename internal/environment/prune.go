package environment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// PruneUnused removes the snapshots that nothing was started from since the moment, and
// returns how many these were. One that cannot be removed does not keep the others.
func PruneUnused(ctx context.Context, engine sandbox.Engine, since time.Time) (int, error) {
	kept, err := engine.Snapshots(ctx)
	if err != nil {
		return 0, err
	}
	removed := 0
	var failed []error
	for _, snapshot := range kept { // least recently used first
		if !snapshot.Used.Before(since) {
			break
		}
		err := engine.RemoveSnapshot(ctx, snapshot.Key)
		if ctx.Err() != nil {
			return removed, ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("remove the snapshot %s: %w", snapshot.Key, err))
			continue
		}
		removed++
	}
	return removed, errors.Join(failed...)
}

// prune removes the least recently used snapshots until the rest fits into the
// size. In place of one that cannot be removed the next goes.
func prune(ctx context.Context, engine sandbox.Engine, size int64) error {
	kept, err := engine.Snapshots(ctx)
	if err != nil {
		return err
	}
	var total int64
	for _, snapshot := range kept {
		total += snapshot.Bytes
	}
	var failed []error
	for _, snapshot := range kept {
		if total <= size || ctx.Err() != nil {
			break
		}
		if err := engine.RemoveSnapshot(ctx, snapshot.Key); err != nil {
			failed = append(failed, fmt.Errorf("remove the snapshot %s: %w", snapshot.Key, err))
			continue
		}
		total -= snapshot.Bytes
	}
	return errors.Join(failed...)
}
