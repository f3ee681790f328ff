package environment

import (
	"context"
	"fmt"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// prune removes the least recently used snapshots until the rest fits into the
// size.
func prune(ctx context.Context, engine sandbox.Engine, size int64) error {
	kept, err := engine.Snapshots(ctx)
	if err != nil {
		return err
	}
	var total int64
	for _, snapshot := range kept {
		total += snapshot.Bytes
	}
	for _, snapshot := range kept {
		if total <= size {
			break
		}
		if err := engine.RemoveSnapshot(ctx, snapshot.Key); err != nil {
			return fmt.Errorf("remove the snapshot %s: %w", snapshot.Key, err)
		}
		total -= snapshot.Bytes
	}
	return nil
}
