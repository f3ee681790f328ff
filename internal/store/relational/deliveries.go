package relational

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// DeliverySeen implements store.Deliveries.
func (s *Store) DeliverySeen(ctx context.Context, forge task.Forge, id string) (bool, error) {
	found, err := all(ctx, s, scanNumber, `SELECT at FROM deliveries WHERE forge = ? AND id = ?`, string(forge), id)
	return len(found) > 0, err
}

// RecordDelivery implements store.Deliveries.
func (s *Store) RecordDelivery(ctx context.Context, forge task.Forge, id string, at time.Time) (first bool, err error) {
	if err := requireName("id of a delivery", id); err != nil {
		return false, err
	}
	err = s.write(ctx, func(q session) error {
		added, err := q.exec(ctx, `INSERT INTO deliveries (forge, id, at) VALUES (?, ?, ?)
			ON CONFLICT (forge, id) DO NOTHING`, string(forge), id, at.UnixMicro())
		first = added > 0
		return err
	})
	return first, err
}

// PruneDeliveries implements store.Deliveries.
func (s *Store) PruneDeliveries(ctx context.Context, before time.Time) (int, error) {
	var pruned int64
	err := s.write(ctx, func(q session) (err error) {
		pruned, err = q.exec(ctx, `DELETE FROM deliveries WHERE at < ?`, before.UnixMicro())
		return err
	})
	return int(pruned), err
}
