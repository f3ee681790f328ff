package relational

import (
	"context"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// DeliverySeen implements store.Deliveries.
func (s *Store) DeliverySeen(ctx context.Context, forge task.Forge, id string) (bool, error) {
	found, err := all(ctx, s, scanNumber, `SELECT at FROM deliveries WHERE forge = ? AND id = ?`, string(forge), id)
	return len(found) > 0, err
}

// RecordDelivery implements store.Deliveries.
func (s *Store) RecordDelivery(ctx context.Context, d store.Delivery) (first bool, err error) {
	if err := requireName("id of a delivery", d.ID); err != nil {
		return false, err
	}
	err = s.write(ctx, func(q session) error {
		added, err := q.exec(ctx, `INSERT INTO deliveries (forge, id, at, subject, event) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (forge, id) DO NOTHING`, string(d.Forge), d.ID, d.At.UnixMicro(), clip(d.Subject), clip(d.Event))
		first = added > 0
		return err
	})
	return first, err
}

// DeliveredAbout implements store.Deliveries.
func (s *Store) DeliveredAbout(ctx context.Context, subject string, since time.Time) ([]string, error) {
	return all(ctx, s, scanText, `SELECT DISTINCT event FROM deliveries WHERE subject = ? AND at >= ? ORDER BY event`,
		clip(subject), since.UnixMicro())
}

// AddReceived implements store.Deliveries.
func (s *Store) AddReceived(ctx context.Context, r store.Received, keep int) error {
	refused := 0
	if r.Problem != "" {
		refused = 1
	}
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `INSERT INTO received (id, forge, at, event, repository, status, problem, refused) VALUES (`+listOf(8)+`)`,
			newID(), string(r.Forge), r.At.UnixMicro(), clip(r.Event), clip(r.Repository), r.Status, clip(r.Problem), refused)
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, `DELETE FROM received WHERE forge = ? AND refused = ? AND id NOT IN
			(SELECT id FROM received WHERE forge = ? AND refused = ? ORDER BY id DESC LIMIT ?)`,
			string(r.Forge), refused, string(r.Forge), refused, keep)
		return err
	})
}

// clip cuts what strangers send to a length that fits a table.
func clip(text string) string {
	const longest = 200
	return strings.ToValidUTF8(textfmt.Clip(text, longest), "")
}

// ListReceived implements store.Deliveries.
func (s *Store) ListReceived(ctx context.Context, forge task.Forge) ([]store.Received, error) {
	return all(ctx, s, scanReceived, `SELECT forge, at, event, repository, status, problem FROM received WHERE forge = ? ORDER BY id DESC`, string(forge))
}

func scanReceived(r row) (x store.Received, err error) {
	err = r.Scan(&x.Forge, micros{&x.At}, &x.Event, &x.Repository, &x.Status, &x.Problem)
	return x, err
}
