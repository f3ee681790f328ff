package relational

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Put implements store.Outbox.
func (s *Store) Put(ctx context.Context, action store.Action) (stored store.Action, put bool, err error) {
	err = s.write(ctx, func(q session) error {
		all, err := putActions(ctx, q, []store.Action{action}, nil)
		if err == nil {
			stored, put = all[0].Action, all[0].put
		}
		return err
	})
	if err != nil {
		return store.Action{}, false, err
	}
	return stored, put, nil
}

// Take implements store.Outbox.
func (s *Store) Take(ctx context.Context, now, until time.Time, limit int) (taken []store.Action, err error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	err = s.write(ctx, func(q session) error {
		taken, err = take(ctx, q, holder{s.holder(), until}, now, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

// take looks for actions until it has enough or finds no more: refusing a stale
// one lets the next on its item come first.
func take(ctx context.Context, q session, by holder, now time.Time, limit int) ([]store.Action, error) {
	var taken []store.Action
	for {
		room := 0
		if limit > 0 {
			room = limit - len(taken)
		}
		due, err := dueActions(ctx, q, now, room)
		if err != nil {
			return nil, err
		}
		var good, stale []string
		for _, a := range due {
			if a.stale {
				stale = append(stale, a.ID)
				continue
			}
			good = append(good, a.ID)
			a.Attempts++
			taken = append(taken, a.Action)
		}
		if err := hold(ctx, q, good, by); err != nil {
			return nil, err
		}
		if err := refuseStale(ctx, q, stale); err != nil {
			return nil, err
		}
		if len(stale) == 0 {
			return taken, nil
		}
	}
}

type dueAction struct {
	store.Action
	stale bool
}

// dueActions locks the first pending action of each item, as far as it is due
// and nobody has it. What overwrites something and is not due yet lets others pass:
// it waits for a newer one. So does a lane in which one has failed.
func dueActions(ctx context.Context, q session, now time.Time, limit int) ([]dueAction, error) {
	query, args := limited(`SELECT `+actionColumns+`,
			COALESCE((SELECT tasks.generation FROM tasks WHERE tasks.id = actions.task), actions.generation),
			COALESCE((SELECT value FROM counters WHERE name = '`+generationFloor+`'), 0),
			CASE WHEN held_by <> '' AND held_until <> ? THEN 1 ELSE 0 END
		FROM actions
		WHERE status = 'pending' AND due_at <= ? AND held_until <= ?
			AND NOT EXISTS (SELECT 1 FROM actions earlier
				WHERE earlier.item = actions.item AND earlier.status = 'pending' AND earlier.sequence < actions.sequence
					AND (earlier.lane = actions.lane OR NOT EXISTS (SELECT 1 FROM actions failed
						WHERE failed.item = earlier.item AND failed.status = 'pending' AND failed.sequence <= earlier.sequence
							AND failed.lane = earlier.lane AND failed.last_error <> ''))
					AND NOT (earlier.coalesce_name <> '' AND earlier.attempts = 0 AND earlier.due_at > ?))
		ORDER BY due_at, id`, []any{never, now.UnixMicro(), now.UnixMicro(), now.UnixMicro()}, limit)
	return list(ctx, q, func(r row) (a dueAction, err error) {
		var current, floor, held int64
		a.Action, err = scanAction(with{with{with{r, &held}, &floor}, &current})
		a.TakenOver = held != 0
		a.stale = a.Generation < current && !a.Lasting
		// What belongs to no task, such as a review, may have been written since the backup too.
		a.Restored = floor > 0 && (a.Task == "" || current >= floor)
		return a, err
	}, query+` `+q.dialect.SkipLocked, args...)
}

// with is a row that has one more column than whoever scans it expects.
type with struct {
	row
	last any
}

// Scan implements row.
func (w with) Scan(into ...any) error { return w.row.Scan(append(into, w.last)...) }

// holder is a process that takes actions, and until when.
type holder struct {
	process string
	until   time.Time
}

func hold(ctx context.Context, q session, ids []string, by holder) error {
	for _, some := range chunks(ids) {
		args := append([]any{by.until.UnixMicro(), by.process}, arguments(some)...)
		_, err := q.exec(ctx, `UPDATE actions SET held_until = ?, held_by = ?, attempts = attempts + 1
			WHERE id IN (`+listOf(len(some))+`)`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

func refuseStale(ctx context.Context, q session, ids []string) error {
	for _, some := range chunks(ids) {
		args := append([]any{task.ReasonStaleGeneration}, arguments(some)...)
		_, err := q.exec(ctx, `UPDATE actions SET status = 'refused', reason = ? WHERE id IN (`+listOf(len(some))+`)`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// HeldUntil implements store.Outbox.
func (s *Store) HeldUntil(ctx context.Context, now time.Time) (time.Time, error) {
	until, err := all(ctx, s, scanNumber, `SELECT MIN(held_until) FROM actions
		WHERE status = 'pending' AND held_until > ? HAVING COUNT(*) > 0`, now.UnixMicro())
	if err != nil || len(until) == 0 {
		return time.Time{}, err
	}
	return time.UnixMicro(until[0]).UTC(), nil
}

// KeepTaken implements store.Outbox.
func (s *Store) KeepTaken(ctx context.Context, id string, attempt int, until time.Time) error {
	return s.write(ctx, func(q session) error {
		changed, err := q.exec(ctx, `UPDATE actions SET held_until = ? WHERE id = ? AND status = 'pending' AND attempts = ?`,
			until.UnixMicro(), id, attempt)
		if err == nil && changed == 0 {
			err = task.Errorf(task.Conflict, "action %s is no longer taken by attempt %d", id, attempt)
		}
		return err
	})
}

// Deliver implements store.Outbox.
func (s *Store) Deliver(ctx context.Context, id string, result json.RawMessage) error {
	if err := checkJSON("result of an action", result); err != nil {
		return err
	}
	return s.settle(ctx, id, func(q session, is settling) error {
		if is.status == store.Delivered {
			return nil
		}
		_, err := q.exec(ctx, `UPDATE actions SET status = 'delivered', result = ?, reason = '' WHERE id = ?`, string(result), id)
		if err == nil && is.kind == store.OpenPullKind {
			err = countPull(ctx, q, is.task.String)
		}
		return err
	})
}

// Retry implements store.Outbox.
func (s *Store) Retry(ctx context.Context, id string, attempt int, at time.Time, cause string) error {
	return s.settle(ctx, id, func(q session, is settling) error {
		if is.status != store.Pending {
			return task.Errorf(task.Conflict, "action %s is %s and cannot be tried again", id, is.status)
		}
		changed, err := q.exec(ctx, `UPDATE actions SET due_at = ?, held_until = ?, last_error = ? WHERE id = ? AND attempts = ?`,
			at.UnixMicro(), never, cmp.Or(cleanText(cause), "failed"), id, attempt)
		if err == nil && changed == 0 {
			err = task.Errorf(task.Conflict, "action %s is no longer taken by attempt %d", id, attempt)
		}
		return err
	})
}

// Refuse implements store.Outbox.
func (s *Store) Refuse(ctx context.Context, id string, reason task.Reason, cause string) error {
	return s.settle(ctx, id, func(q session, is settling) error {
		if is.status == store.Refused {
			return nil
		}
		if is.status != store.Pending {
			return task.Errorf(task.Conflict, "action %s is %s and cannot be refused", id, is.status)
		}
		_, err := q.exec(ctx, `UPDATE actions SET status = 'refused', reason = ?, last_error = ? WHERE id = ?`,
			reason, cleanText(cause), id)
		return err
	})
}

// settling is what an action is, and what became of it so far.
type settling struct {
	status store.ActionStatus
	task   sql.NullString
	kind   string
}

// settle changes an action according to what became of it so far.
func (s *Store) settle(ctx context.Context, id string, change func(session, settling) error) error {
	return s.write(ctx, func(q session) error {
		is, found, err := first(ctx, q, func(r row) (is settling, err error) {
			err = r.Scan(&is.status, &is.task, &is.kind)
			return is, err
		}, `SELECT status, task, kind FROM actions WHERE id = ? `+q.dialect.LockRows, id)
		if err != nil {
			return err
		}
		if !found {
			return task.Errorf(task.NotFound, "there is no action %q", id)
		}
		if is.task.Valid {
			q.notify(store.BellRung, is.task.String)
		}
		return change(q, is)
	})
}

// Action implements store.Outbox.
func (s *Store) Action(ctx context.Context, idempotencyKey string) (store.Action, error) {
	return find(ctx, s, task.Errorf(task.NotFound, "there is no action with the key %q", idempotencyKey), scanAction, `SELECT `+actionColumns+` FROM actions WHERE idempotency_key = ?`, idempotencyKey)
}

// PendingActions implements store.Outbox.
func (s *Store) PendingActions(ctx context.Context, item task.Key) ([]store.Action, error) {
	return all(ctx, s, scanAction, `SELECT `+actionColumns+` FROM actions
		WHERE item = ? AND status = 'pending' ORDER BY sequence`, item.String())
}
