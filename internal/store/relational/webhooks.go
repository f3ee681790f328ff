package relational

import (
	"context"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// SetWebhookRepositories implements store.Webhooks. It is called often, mostly with
// what is there already.
func (s *Store) SetWebhookRepositories(ctx context.Context, forge task.Forge, repositories []string) error {
	known, err := all(ctx, s, scanText, `SELECT repository FROM webhook_repositories WHERE forge = ? ORDER BY repository`, string(forge))
	if err != nil {
		return err
	}
	wanted := slices.Compact(slices.Sorted(slices.Values(repositories)))
	added, removed := without(wanted, known), without(known, wanted)
	if len(added)+len(removed) == 0 {
		return nil
	}
	return s.write(ctx, func(q session) error {
		for _, repository := range removed {
			if _, err := q.exec(ctx, `DELETE FROM webhook_repositories WHERE forge = ? AND repository = ?`, string(forge), repository); err != nil {
				return err
			}
		}
		for _, repository := range added {
			if err := requireName("name of a repository", repository); err != nil {
				return err
			}
			if _, err := q.exec(ctx, `INSERT INTO webhook_repositories (forge, repository) VALUES (?, ?)
				ON CONFLICT (forge, repository) DO NOTHING`, string(forge), repository); err != nil {
				return err
			}
		}
		return nil
	})
}

// without returns what is in one sorted list and not in the other.
func without(all, others []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(one string) bool {
		_, found := slices.BinarySearch(others, one)
		return found
	})
}

// AddDelivered implements store.Webhooks. All servers add in the same order, so that
// none waits for another that waits for it.
func (s *Store) AddDelivered(ctx context.Context, all []store.DeliveredCount, lapsed time.Time) error {
	if len(all) == 0 {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b store.DeliveredCount) int {
		return slices.Compare([]string{string(a.Forge), a.Repository, a.Event}, []string{string(b.Forge), b.Repository, b.Event})
	})
	return s.write(ctx, func(q session) error {
		for _, d := range sorted {
			at := d.LastAt.UnixMicro()
			_, err := q.exec(ctx, `INSERT INTO webhook_events (forge, repository, event, delivered, trusted, last_at, missed_at, missed)
				SELECT forge, repository, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), ''
				FROM webhook_repositories WHERE forge = ? AND repository = ?
				ON CONFLICT (forge, repository, event) DO UPDATE SET
					delivered = webhook_events.delivered + excluded.delivered,
					trusted = CASE
						WHEN excluded.last_at <= webhook_events.missed_at THEN webhook_events.trusted
						WHEN webhook_events.last_at <= ? THEN excluded.trusted
						ELSE webhook_events.trusted + excluded.trusted END,
					last_at = CASE WHEN excluded.last_at > webhook_events.last_at THEN excluded.last_at ELSE webhook_events.last_at END`,
				d.Event, d.Count, d.Count, at, never, string(d.Forge), d.Repository, lapsed.UnixMicro())
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// SetMissed implements store.Webhooks.
func (s *Store) SetMissed(ctx context.Context, forge task.Forge, repository, event, item string, at time.Time) error {
	return s.write(ctx, func(q session) error {
		_, err := q.exec(ctx, `UPDATE webhook_events SET trusted = 0, missed_at = ?, missed = ?
			WHERE forge = ? AND repository = ? AND event = ?`, at.UnixMicro(), clip(item), string(forge), repository, event)
		return err
	})
}

// ListWebhookEvents implements store.Webhooks.
func (s *Store) ListWebhookEvents(ctx context.Context) ([]store.WebhookEvent, error) {
	return all(ctx, s, scanWebhookEvent, `SELECT r.forge, r.repository, COALESCE(e.event, ''), COALESCE(e.delivered, 0), COALESCE(e.trusted, 0),
			COALESCE(e.last_at, ?), COALESCE(e.missed_at, ?), COALESCE(e.missed, '')
		FROM webhook_repositories r LEFT JOIN webhook_events e ON e.forge = r.forge AND e.repository = r.repository
		ORDER BY r.forge, r.repository, e.event`, never, never)
}

func scanWebhookEvent(r row) (e store.WebhookEvent, err error) {
	err = r.Scan(&e.Forge, &e.Repository, &e.Event, &e.Delivered, &e.Trusted, micros{&e.LastAt}, micros{&e.MissedAt}, &e.Missed)
	return e, err
}
