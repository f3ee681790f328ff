package relational

import (
	"context"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
)

// ListNotifications implements store.Notifications.
func (s *Store) ListNotifications(ctx context.Context, target string) ([]store.Notification, error) {
	return all(ctx, s, scanNotification, `SELECT target, name, noted_at, attempts, due_at, sent_at, over_at, problem FROM notifications
		WHERE target = ? ORDER BY name`, target)
}

func scanNotification(r row) (n store.Notification, err error) {
	err = r.Scan(&n.Target, &n.Key, micros{&n.NotedAt}, &n.Attempts, micros{&n.DueAt}, micros{&n.SentAt}, micros{&n.OverAt}, &n.Problem)
	return n, err
}

// NoteNotifications implements store.Notifications.
func (s *Store) NoteNotifications(ctx context.Context, target string, change store.NotificationChange) error {
	if err := requireName("name of a target", target); err != nil {
		return err
	}
	at := change.At.UnixMicro()
	return s.write(ctx, func(q session) error {
		for _, key := range sorted(change.New) {
			if err := requireName("key of a notification", key); err != nil {
				return err
			}
			if _, err := q.exec(ctx, `INSERT INTO notifications (target, name, noted_at, attempts, due_at, sent_at, over_at, problem)
				VALUES (?, ?, ?, 0, ?, ?, ?, '') ON CONFLICT (target, name) DO NOTHING`, target, key, at, at, never, never); err != nil {
				return err
			}
		}
		for _, key := range sorted(change.Over) {
			if _, err := q.exec(ctx, `UPDATE notifications SET over_at = ? WHERE target = ? AND name = ? AND over_at = ?`, at, target, key, never); err != nil {
				return err
			}
		}
		for _, key := range sorted(change.Back) {
			if _, err := q.exec(ctx, `UPDATE notifications SET over_at = ?, noted_at = ?,
				due_at = CASE WHEN sent_at = ? AND due_at < ? THEN ? ELSE due_at END
				WHERE target = ? AND name = ? AND over_at <> ?`, never, at, never, at, at, target, key, never); err != nil {
				return err
			}
		}
		return sendAgain(ctx, q, target, change.Again)
	})
}

// sendAgain makes what was sent, and came back after that, unsent.
func sendAgain(ctx context.Context, q session, target string, keys []string) error {
	for _, key := range sorted(keys) {
		if _, err := q.exec(ctx, `UPDATE notifications SET sent_at = ?, attempts = 0, problem = ''
			WHERE target = ? AND name = ? AND sent_at <> ? AND over_at = ? AND noted_at > sent_at`, never, target, key, never, never); err != nil {
			return err
		}
	}
	return nil
}

// sorted is the order in which all servers change rows, so that none waits for another that
// waits for it.
func sorted(keys []string) []string { return slices.Compact(slices.Sorted(slices.Values(keys))) }

// TakeNotifications implements store.Notifications.
func (s *Store) TakeNotifications(ctx context.Context, target string, keys []string, at, until time.Time) (taken []string, err error) {
	err = s.write(ctx, func(q session) error {
		taken = nil // it may be tried again
		for _, key := range sorted(keys) {
			changed, err := q.exec(ctx, `UPDATE notifications SET attempts = attempts + 1, due_at = ?
				WHERE target = ? AND name = ? AND sent_at = ? AND over_at = ? AND due_at <= ?`,
				until.UnixMicro(), target, key, never, never, at.UnixMicro())
			if err != nil {
				return err
			}
			if changed == 1 {
				taken = append(taken, key)
			}
		}
		return nil
	})
	return orNothing(taken, err)
}

// EndNotifications implements store.Notifications.
func (s *Store) EndNotifications(ctx context.Context, target string, keys []string, end store.NotificationEnd) error {
	return s.write(ctx, func(q session) error {
		for _, key := range sorted(keys) {
			if _, err := q.exec(ctx, `UPDATE notifications SET sent_at = ?, due_at = ?, problem = ? WHERE target = ? AND name = ?`,
				end.SentAt.UnixMicro(), end.DueAt.UnixMicro(), clip(end.Problem), target, key); err != nil {
				return err
			}
		}
		return nil
	})
}

// ForgetNotifications implements store.Notifications.
func (s *Store) ForgetNotifications(ctx context.Context, before time.Time, targets []string) error {
	return s.write(ctx, func(q session) error {
		if _, err := q.exec(ctx, `DELETE FROM notifications WHERE over_at > ? AND over_at < ?`, never, before.UnixMicro()); err != nil {
			return err
		}
		if len(targets) == 0 {
			_, err := q.exec(ctx, `DELETE FROM notifications`)
			return err
		}
		_, err := q.exec(ctx, `DELETE FROM notifications WHERE target NOT IN (`+listOf(len(targets))+`)`, arguments(targets)...)
		return err
	})
}
