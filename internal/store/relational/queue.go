package relational

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// queueOrder is the order of task.Task.Interrupted, Lane, priority and age. The index tasks_queued has it
// word for word, which TestOrderOfTheIndex sees to.
const queueOrder = `CASE WHEN reason = 'agent_restarted' THEN 0 ELSE 1 END, CASE WHEN type = 'review' THEN 0 WHEN cause IN ('changes_requested', 'base_conflict', 'checks_failed') THEN 1 ELSE 2 END,
	priority DESC, assigned_at, id`

// readyTasks is a condition: the task may be handed out at a moment.
const readyTasks = `state = 'queued' AND ready_at <= ? AND ` + nobodyPauses

// freeTasks is a condition: the task may be handed out at a moment, and no open item blocks it.
const freeTasks = readyTasks + ` AND blocked_by = ''`

// firstFree finds so many tasks of each repository that may be handed out. Those that are blocked are left
// out, however many come first: they would hide the ones that they wait for. It goes from one repository
// to the next in the index tasks_queued, whose whole order it names, as does lookAt; that costs two searches
// there for each. It passes over those that wait for their time without reading more of them than their
// entries in the index.
const firstFree = `WITH RECURSIVE places (forge, repository) AS (
		(SELECT forge, repository FROM tasks WHERE state = 'queued' ORDER BY forge, repository, ` + queueOrder + ` LIMIT 1)
		UNION ALL
		SELECT following.forge, following.repository FROM places CROSS JOIN LATERAL (
			SELECT forge, repository FROM tasks
			WHERE state = 'queued' AND (tasks.forge, tasks.repository) > (places.forge, places.repository)
			ORDER BY forge, repository, ` + queueOrder + ` LIMIT 1) AS following)
	SELECT ` + taskColumns + ` FROM (SELECT placed.* FROM places CROSS JOIN LATERAL (
		SELECT * FROM tasks WHERE tasks.forge = places.forge AND tasks.repository = places.repository AND ` + freeTasks + `
		ORDER BY ` + queueOrder + ` LIMIT ?) AS placed) AS placed`

// firstFreeByWindow is firstFree for engines that know no LATERAL. It reads all tasks that are queued.
const firstFreeByWindow = `SELECT ` + taskColumns + ` FROM (
		SELECT tasks.*, ROW_NUMBER() OVER (PARTITION BY forge, repository ORDER BY ` + queueOrder + `) AS place
		FROM tasks WHERE ` + freeTasks + `) AS placed WHERE place <= ?`

// Queue implements store.Leases.
func (s *Store) Queue(ctx context.Context, now time.Time, perRepository int) (queue store.Queue, err error) {
	if err := checkLimit(perRepository); err != nil {
		return store.Queue{}, err
	}
	err = s.snapshot(ctx, func(q session) error {
		if queue.Ready, err = readReady(ctx, q, now, perRepository); err != nil {
			return err
		}
		if queue.Running, err = readRunning(ctx, q); err != nil {
			return err
		}
		found, err := lookAt(ctx, q, now)
		queue.NextReady = found.next
		return err
	})
	return orNothing(queue, err)
}

func readReady(ctx context.Context, q session, now time.Time, perRepository int) ([]task.Task, error) {
	ready, args := `SELECT `+taskColumns+` FROM tasks WHERE `+readyTasks, []any{now.UnixMicro()}
	if perRepository > 0 {
		ready, args = firstFreeByWindow, append(args, perRepository)
		if q.dialect.Lateral {
			ready = firstFree
		}
	}
	return list(ctx, q, scanTask, ready+` ORDER BY `+queueOrder, args...)
}

func readRunning(ctx context.Context, q session) ([]task.Task, error) {
	return list(ctx, q, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE state = 'running' ORDER BY id`)
}

// waiting is what there is to look at in the queue.
type waiting struct {
	ready int64     // 0 if no task may be handed out, or each of them is blocked
	next  time.Time // when the next one may be; zero if none waits for its time
}

// lookAt reads that without locking anything. The index tasks_ready has what waits for its time, which is
// above 0, and no other task: it is no way to find the first ones. A ready task is asked for in the order
// of the index tasks_queued: without an order PostgreSQL may read the whole table, where most tasks have
// ended, if it expects that many are queued.
func lookAt(ctx context.Context, q session, now time.Time) (waiting, error) {
	found, _, err := first(ctx, q, func(r row) (w waiting, err error) {
		var next int64
		if err = r.Scan(&w.ready, &next); next != 0 {
			w.next = time.UnixMicro(next).UTC()
		}
		return w, err
	}, `SELECT COALESCE((SELECT 1 FROM tasks WHERE `+freeTasks+` ORDER BY forge, repository, `+queueOrder+` LIMIT 1), 0),
			COALESCE((SELECT MIN(ready_at) FROM tasks WHERE state = 'queued' AND ready_at > 0 AND ready_at > ?), 0)`, now.UnixMicro(), now.UnixMicro())
	return found, err
}

// HandOut implements store.Leases. It looks first whether there is anything to hand out: most looks of most
// servers find nothing, and these wait for nobody and hold up nobody. What comes after that look is told
// of by a notice.
func (s *Store) HandOut(ctx context.Context, now time.Time, perRepository int, choose func(store.Queue) []store.Claim, effects store.Effects) (held []task.Task, err error) {
	if err := checkLimit(perRepository); err != nil {
		return nil, err
	}
	var found waiting
	if err := s.read(ctx, func(q session) (err error) {
		found, err = lookAt(ctx, q, now)
		return err
	}); err != nil {
		return nil, err
	}
	if found.ready == 0 {
		_ = choose(store.Queue{NextReady: found.next}) // there is nothing to claim
		return nil, nil
	}
	err = s.write(ctx, func(q session) error {
		if q.dialect.LockAll != "" {
			if _, err := list(ctx, q, scanNumber, q.dialect.LockAll); err != nil {
				return err
			}
		}
		queue := store.Queue{NextReady: found.next}
		var err error
		if queue.Ready, err = readReady(ctx, q, now, perRepository); err != nil {
			return err
		}
		if len(queue.Ready) == 0 { // another server has handed it out, for example
			held = nil
			_ = choose(queue)
			return nil
		}
		if queue.Running, err = readRunning(ctx, q); err != nil {
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
