package store

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Deliveries remembers which webhooks were dealt with, so that a replay of one is
// known as such.
type Deliveries interface {
	// DeliverySeen reports whether the delivery was recorded.
	DeliverySeen(ctx context.Context, forge task.Forge, id string) (bool, error)
	// RecordDelivery records a delivery; first is false if it was recorded
	// before, and then nothing changes.
	RecordDelivery(ctx context.Context, forge task.Forge, id string, at time.Time) (first bool, err error)
	// PruneDeliveries forgets what was recorded before the given time and
	// returns how many that were.
	PruneDeliveries(ctx context.Context, before time.Time) (int, error)
}
