package relational

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Claim implements store.Leases.
func (s *Store) Claim(ctx context.Context, claims []store.Claim, effects store.Effects) (held []task.Task, err error) {
	if err := checkClaims(claims); err != nil || len(claims) == 0 {
		return nil, err
	}
	err = s.write(ctx, func(q session) error {
		held, err = claim(ctx, q, claims, effects)
		return err
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

func checkClaims(claims []store.Claim) error {
	for _, c := range claims {
		if c.Agent == "" || len(c.TokenHash) == 0 {
			return task.Errorf(task.Invalid, "a claim of task %s names no agent or no token", c.Task)
		}
	}
	return nil
}

func claim(ctx context.Context, q session, claims []store.Claim, effects store.Effects) ([]task.Task, error) {
	free, err := lockQueued(ctx, q, claims)
	if err != nil {
		return nil, err
	}
	at := now()
	var moves []move
	var rows []taskRow
	var held []task.Task
	for _, c := range claims {
		found, ok := free[c.Task]
		if !ok || found.Generation != c.Generation {
			continue
		}
		delete(free, c.Task) // a second claim of the same task gets nothing
		m := move{before: found.Task, after: found, trigger: task.Claimed, effects: effects}
		m.after.Lease = task.Lease{Agent: c.Agent, ExpiresAt: moment(c.ExpiresAt)}
		m.after.token, m.after.process = hex.EncodeToString(c.TokenHash), c.Process
		if err := m.make(task.ReasonClaimed, at); err != nil {
			return nil, err
		}
		moves = append(moves, m)
		rows = append(rows, m.after)
		held = append(held, m.after.Task)
	}
	if len(moves) == 0 {
		return nil, nil
	}
	if err := saveTasks(ctx, q, rows); err != nil {
		return nil, err
	}
	return held, record(ctx, q, moves)
}

// lockQueued locks the tasks that nobody else has locked, and returns those that are queued. The query
// does not ask for their state: PostgreSQL would look for them among all that are queued.
func lockQueued(ctx context.Context, q session, claims []store.Claim) (map[task.ID]taskRow, error) {
	free := make(map[task.ID]taskRow, len(claims))
	ids := make([]task.ID, len(claims))
	for i, c := range claims {
		ids[i] = c.Task
	}
	rows, err := listAny(ctx, q, scanTaskRow, ids, `SELECT `+taskColumns+` FROM tasks WHERE id {any} AND `+nobodyPauses+` `+q.dialect.SkipLocked)
	if err != nil {
		return nil, err
	}
	for _, t := range rows {
		if t.State == task.Queued {
			free[t.ID] = t
		}
	}
	return free, nil
}

// Renew implements store.Leases.
func (s *Store) Renew(ctx context.Context, id task.ID, generation int64, tokenHash []byte, until time.Time) error {
	return s.write(ctx, func(q session) error {
		renewed, err := q.exec(ctx, `UPDATE tasks
			SET lease_expires = CASE WHEN lease_expires < ? THEN ? ELSE lease_expires END
			WHERE id = ? AND generation = ? AND state = 'running' AND lease_token = ?`,
			until.UnixMicro(), until.UnixMicro(), id, generation, hex.EncodeToString(tokenHash))
		if err == nil && renewed == 0 {
			err = leaseLost(id, generation)
		}
		return err
	})
}

// PutHeld implements store.Leases.
func (s *Store) PutHeld(ctx context.Context, held store.Held) error {
	_, err := s.helds.do(ctx, held, func(ctx context.Context, all []store.Held, patient bool) (results []result[struct{}], err error) {
		err = s.write(ctx, func(q session) error {
			results, err = putHeld(ctx, q, all, patient)
			return err
		})
		return orNothing(results, err)
	})
	return err
}

func putHeld(ctx context.Context, q session, all []store.Held, patient bool) ([]result[struct{}], error) {
	locked, err := lockLeases(ctx, q, all, patient)
	if err != nil {
		return nil, err
	}
	results := make([]result[struct{}], len(all))
	var actions []store.Action
	current := make(map[task.ID]int64, len(all))
	for i, held := range all {
		found, exists := locked[held.Task]
		switch {
		case !exists && !patient:
			results[i].alone = true
		case !exists || !found.heldWith(held.Generation, held.TokenHash):
			results[i].err = leaseLost(held.Task, held.Generation)
		default:
			actions = append(actions, held.Actions...)
			current[held.Task] = found.Generation
		}
	}
	_, err = putActions(ctx, q, actions, current)
	return results, err
}

// lockLeases locks tasks and reads what says who holds them, and no more.
func lockLeases(ctx context.Context, q session, all []store.Held, patient bool) (map[task.ID]taskRow, error) {
	ids := make([]task.ID, len(all))
	for i, held := range all {
		ids[i] = held.Task
	}
	return lockRows(ctx, q, ids, patient, `id, state, generation, lease_token`, func(r row) (t taskRow, err error) {
		err = r.Scan(&t.ID, &t.State, &t.Generation, &t.token)
		return t, err
	})
}

// lockTasks locks tasks and reads all of them.
func lockTasks(ctx context.Context, q session, ids []task.ID, patient bool) (map[task.ID]taskRow, error) {
	return lockRows(ctx, q, ids, patient, taskColumns, scanTaskRow)
}

// lockRows locks tasks. Unless it is patient it leaves out those that are locked already.
func lockRows(ctx context.Context, q session, ids []task.ID, patient bool, columns string, scan func(row) (taskRow, error)) (map[task.ID]taskRow, error) {
	lock := q.dialect.SkipLocked
	if patient {
		lock = q.dialect.LockRows
	}
	locked := make(map[task.ID]taskRow, len(ids))
	rows, err := listAny(ctx, q, scan, ids, `SELECT `+columns+` FROM tasks WHERE id {any} `+lock)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		locked[row.ID] = row
	}
	return locked, nil
}

// Holds implements store.Leases.
func (s *Store) Holds(ctx context.Context, id task.ID, generation int64, tokenHash []byte) error {
	return s.read(ctx, func(q session) error {
		_, holds, err := first(ctx, q, scanNumber, `SELECT 1 FROM tasks
			WHERE id = ? AND generation = ? AND state = 'running' AND lease_token = ?`,
			id, generation, hex.EncodeToString(tokenHash))
		if err == nil && !holds {
			err = leaseLost(id, generation)
		}
		return err
	})
}

func leaseLost(id task.ID, generation int64) error {
	return task.Errorf(task.LeaseLost, "the lease on generation %d of task %s is lost", generation, id)
}

// Expired implements store.Leases.
func (s *Store) Expired(ctx context.Context, now time.Time, limit int) ([]task.Task, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	query, args := limited(`SELECT `+taskColumns+` FROM tasks WHERE state = 'running' AND lease_expires <= ?
		ORDER BY lease_expires, id`, []any{now.UnixMicro()}, limit)
	return all(ctx, s, scanTask, query, args...)
}
