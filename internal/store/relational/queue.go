package relational

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// queueOrder is the order of task.Task.Interrupted, Lane, priority and age.
const queueOrder = `CASE WHEN reason = 'agent_restarted' THEN 0 ELSE 1 END, CASE WHEN type = 'review' THEN 0 WHEN cause IN ('changes_requested', 'base_conflict', 'checks_failed') THEN 1 ELSE 2 END,
	priority DESC, assigned_at, id`

// Queue implements store.Leases.
func (s *Store) Queue(ctx context.Context, now time.Time, perRepository int) (queue store.Queue, err error) {
	if err := checkLimit(perRepository); err != nil {
		return store.Queue{}, err
	}
	err = s.snapshot(ctx, func(q session) error {
		queue, err = readQueue(ctx, q, now, perRepository)
		return err
	})
	return orNothing(queue, err)
}

func readQueue(ctx context.Context, q session, now time.Time, perRepository int) (queue store.Queue, err error) {
	ready := `SELECT ` + taskColumns + ` FROM tasks WHERE state = 'queued' AND ready_at <= ? AND ` + nobodyPauses
	args := []any{now.UnixMicro()}
	if perRepository > 0 {
		ready = `SELECT ` + taskColumns + ` FROM (
			SELECT tasks.*, ROW_NUMBER() OVER (PARTITION BY forge, repository ORDER BY ` + queueOrder + `) AS place
			FROM tasks WHERE state = 'queued' AND ready_at <= ? AND ` + nobodyPauses + `) AS placed WHERE place <= ?`
		args = append(args, perRepository)
	}
	if queue.Ready, err = list(ctx, q, scanTask, ready+` ORDER BY `+queueOrder, args...); err != nil {
		return queue, err
	}
	if queue.Running, err = list(ctx, q, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE state = 'running' ORDER BY id`); err != nil {
		return queue, err
	}
	next, _, err := first(ctx, q, scanNumber, `SELECT COALESCE(MIN(ready_at), 0) FROM tasks WHERE state = 'queued' AND ready_at > ?`, now.UnixMicro())
	if next != 0 {
		queue.NextReady = time.UnixMicro(next).UTC()
	}
	return queue, err
}

// HandOut implements store.Leases.
func (s *Store) HandOut(ctx context.Context, now time.Time, perRepository int, choose func(store.Queue) []store.Claim, effects store.Effects) (held []task.Task, err error) {
	if err := checkLimit(perRepository); err != nil {
		return nil, err
	}
	err = s.write(ctx, func(q session) error {
		if q.dialect.LockAll != "" {
			if _, err := list(ctx, q, scanNumber, q.dialect.LockAll); err != nil {
				return err
			}
		}
		queue, err := readQueue(ctx, q, now, perRepository)
		if err != nil {
			return err
		}
		claims := choose(queue)
		if err := checkClaims(claims); err != nil || len(claims) == 0 {
			held = nil
			return err
		}
		held, err = claim(ctx, q, claims, effects)
		return err
	})
	return orNothing(held, err)
}
