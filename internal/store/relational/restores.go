package relational

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// generationFloor is the counter that has the least generation that may begin, once the database
// was restored from a backup.
const generationFloor = "generations"

// floorMargin is more generations than a task has between a backup and the restore.
const floorMargin = 1_000_000

// Fence implements store.Restores.
func (s *Store) Fence(ctx context.Context, effects store.Effects) (done store.Fenced, err error) {
	err = s.write(ctx, func(q session) error {
		done = store.Fenced{}
		if err := freeAll(ctx, q); err != nil {
			return err
		}
		if done.Generation, err = raiseFloor(ctx, q); err != nil {
			return err
		}
		return fenceTasks(ctx, q, &done, effects)
	})
	if err != nil {
		return store.Fenced{}, err
	}
	return done, nil
}

// freeAll takes from the processes of before what they hold.
func freeAll(ctx context.Context, q session) error {
	statements := []struct {
		text string
		args []any
	}{
		// One that was never tried may have been since: the next attempt is to be a second one.
		// What overwrites something is looked for in any case.
		{`UPDATE actions SET held_until = ?, held_by = '',
			attempts = CASE WHEN attempts = 0 AND coalesce_name = '' THEN 1 ELSE attempts END WHERE status = 'pending'`, []any{never}},
		{`UPDATE messages SET state = ?, cause = 'interrupted', claim = '', held_until = 0, held_by = '' WHERE state = ?`,
			[]any{store.Unanswered, store.Answering}},
		{`DELETE FROM sessions`, nil},
		{`DELETE FROM enrolments`, nil},
		{`DELETE FROM offices`, nil},
		{`DELETE FROM forge_answers`, nil},
		{`DELETE FROM general_pauses WHERE source LIKE 'file %'`, nil},
		{`DELETE FROM halts WHERE signal = ? AND reason IN (?, ?)`, []any{task.SignalPause, task.ReasonAllPaused, task.ReasonAgentPaused}},
	}
	for _, one := range statements {
		if _, err := q.exec(ctx, one.text, one.args...); err != nil {
			return err
		}
	}
	return nil
}

// raiseFloor raises the least generation that may begin. The seconds since 1970 are above what
// came after an earlier restore of the same backup: a task does not begin a generation each
// second for long.
func raiseFloor(ctx context.Context, q session) (int64, error) {
	greatest, _, err := first(ctx, q, scanNumber, `SELECT COALESCE(MAX(generation), 0) FROM tasks`)
	if err != nil {
		return 0, err
	}
	before, err := floorOf(ctx, q)
	if err != nil {
		return 0, err
	}
	micros, _, err := first(ctx, q, scanNumber, `SELECT `+q.dialect.Now)
	if err != nil {
		return 0, err
	}
	floor := max(greatest+floorMargin, before+floorMargin, time.UnixMicro(micros).Unix())
	_, err = q.exec(ctx, `INSERT INTO counters (name, value) VALUES (?, ?)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`, generationFloor, floor)
	return floor, err
}

// floorOf is the least generation that may begin; 0 if the database was never restored.
func floorOf(ctx context.Context, q session) (int64, error) {
	floor, _, err := first(ctx, q, scanNumber, `SELECT value FROM counters WHERE name = ?`, generationFloor)
	return floor, err
}

// floorWhenAsked reads the least generation that may begin when it is asked for first.
func floorWhenAsked(ctx context.Context, q session) func() (int64, error) {
	return sync.OnceValues(func() (int64, error) { return floorOf(ctx, q) })
}

// fenceTasks puts the tasks that have not ended out of the reach of who worked on them.
func fenceTasks(ctx context.Context, q session, done *store.Fenced, effects store.Effects) error {
	active, err := list(ctx, q, scanTaskRow, `SELECT `+taskColumns+` FROM tasks
		WHERE state IN (?, ?, ?) ORDER BY id `+q.dialect.LockRows, task.Queued, task.Running, task.Paused)
	if err != nil {
		return err
	}
	done.Active = len(active)
	f := fencing{generation: done.Generation, at: now(), effects: effects}
	for _, t := range active {
		if err := f.add(ctx, q, t); err != nil {
			return err
		}
	}
	done.Requeued = len(f.ended)
	if err := saveTasks(ctx, q, f.changed); err != nil {
		return err
	}
	for _, entry := range f.staying {
		if err := appendEvents(ctx, q, entry.Task, []task.Event{entry}); err != nil {
			return err
		}
		q.notify(store.TasksChanged, string(entry.Task))
	}
	return record(ctx, q, f.ended)
}

// fencing is what becomes of the tasks that have not ended.
type fencing struct {
	generation int64
	at         time.Time
	effects    store.Effects
	ended      []move       // of those that were running
	changed    []taskRow    // that are to be stored
	staying    []task.Event // for the journals of those that stay in their state
}

func (f *fencing) add(ctx context.Context, q session, t taskRow) error {
	m := move{before: t.Task, after: t, trigger: task.Returned, effects: f.effects}
	switch t.State { //nolint:exhaustive // a paused one stays as it is, and the others have ended
	case task.Running:
		if err := m.make(task.ReasonRestored, f.at); err != nil {
			return err
		}
		m.after.Generation = f.generation
		f.ended, f.changed = append(f.ended, m), append(f.changed, m.after)
		return nil
	case task.Queued:
		m.after.Generation, m.after.UpdatedAt = f.generation, f.at
		if err := bringAlong(ctx, q, m); err != nil {
			return err
		}
		f.changed = append(f.changed, m.after)
	}
	entry, err := restoredEntry(m.after.Task, f.at)
	f.staying = append(f.staying, entry)
	return err
}

// bringAlong keeps the actions of a task that waits in the queue from being those of a run that
// is over.
func bringAlong(ctx context.Context, q session, m move) error {
	_, err := q.exec(ctx, `UPDATE actions SET generation = ? WHERE task = ? AND generation = ? AND status = 'pending'`,
		m.after.Generation, m.after.ID, m.before.Generation)
	return err
}

// restoredEntry says in the journal of a task that stays in its state that the database was
// restored. Its reason for the state stays too: what the task waits for depends on it.
func restoredEntry(t task.Task, at time.Time) (task.Event, error) {
	data, err := json.Marshal(task.StateChange{Trigger: task.Returned, From: t.State, To: t.State, Reason: task.ReasonRestored})
	return task.Event{Task: t.ID, Generation: t.Generation, Source: task.FromServer, Kind: task.StateChanged, At: at, Data: data}, err
}
