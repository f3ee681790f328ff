package sandbox

import (
	"context"
	"fmt"
)

// Prune removes the least recently used snapshots until the rest fits into the
// size. It returns the keys that it removed.
func Prune(ctx context.Context, engine Engine, size int64) ([]string, error) {
	kept, err := engine.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	var total int64
	for _, snapshot := range kept {
		total += snapshot.Bytes
	}
	var removed []string
	for _, snapshot := range kept {
		if total <= size {
			break
		}
		if err := engine.RemoveSnapshot(ctx, snapshot.Key); err != nil {
			return removed, fmt.Errorf("remove the snapshot %s: %w", snapshot.Key, err)
		}
		total -= snapshot.Bytes
		removed = append(removed, snapshot.Key)
	}
	return removed, nil
}
