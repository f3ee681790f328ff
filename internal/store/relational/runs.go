package relational

import (
	"context"
	"encoding/hex"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Report implements store.Runs.
func (s *Store) Report(ctx context.Context, report store.RunReport) (acknowledged int64, err error) {
	for i, e := range report.Events {
		if err := checkReported(e, report, i); err != nil {
			return 0, err
		}
	}
	if report.Phase != "" && !report.Phase.Valid() {
		return 0, task.Errorf(task.Invalid, "unknown phase %q", string(report.Phase))
	}
	err = s.write(ctx, func(q session) error {
		acknowledged, err = reportIn(ctx, q, report)
		return err
	})
	if err != nil {
		return 0, err
	}
	return acknowledged, nil
}

func checkReported(e task.Event, report store.RunReport, i int) error {
	if err := checkEvent(e, report.Task); err != nil {
		return err
	}
	if e.Source != task.FromAgent || e.Generation != report.Generation {
		return task.Errorf(task.Invalid, "a report has entries of its own run only")
	}
	if want := report.Events[0].Sequence + int64(i); e.Sequence != want || e.Sequence < 1 {
		return task.Errorf(task.Invalid, "the entries are not in order: %d stands where %d is awaited", e.Sequence, max(want, 1))
	}
	return nil
}

func reportIn(ctx context.Context, q session, report store.RunReport) (int64, error) {
	found, err := lockTask(ctx, q, report.Task)
	if err != nil {
		return 0, err
	}
	if found.Generation != report.Generation {
		return 0, staleError(report.Task, report.Generation, found.Generation)
	}
	if found.State != task.Running {
		return 0, task.Errorf(task.StaleGeneration, "the run of task %s is over: the task is %s", report.Task, found.State)
	}
	last, err := lastSequence(ctx, q, report.Task, numbering{report.Generation, task.FromAgent})
	if err != nil || len(report.Events) == 0 {
		return last, err
	}
	first, end := report.Events[0].Sequence, report.Events[len(report.Events)-1].Sequence
	if first > last+1 {
		return 0, task.Errorf(task.Conflict, "entry %d came, but entry %d is missing", first, last+1)
	}
	if end <= last {
		return last, nil
	}
	if err := appendEvents(ctx, q, report.Task, report.Events[last+1-first:]); err != nil {
		return 0, err
	}
	q.notify(store.JournalGrew, string(report.Task))
	if report.Phase == "" || report.Phase == found.Phase {
		return end, nil
	}
	q.notify(store.WaitsChanged, string(report.Task))
	_, err = q.exec(ctx, `UPDATE tasks SET phase = ?, updated_at = ? WHERE id = ?`, report.Phase, now().UnixMicro(), report.Task)
	return end, err
}

// EndRun implements store.Runs.
func (s *Store) EndRun(ctx context.Context, end store.RunEnd) (task.Task, error) {
	return s.moves.do(ctx, wantedMove{task: end.Task, end: &end}, s.makeMoves)
}

// EndedRun implements store.Runs.
func (s *Store) EndedRun(ctx context.Context, id task.ID, generation int64, tokenHash []byte) (store.EndedRun, error) {
	missing := task.Errorf(task.NotFound, "no agent has ended generation %d of task %s with this token", generation, id)
	return find(ctx, s, missing, func(r row) (e store.EndedRun, err error) {
		err = r.Scan(&e.Outcome, &e.State)
		return e, err
	}, `SELECT outcome, state FROM ended_runs WHERE task = ? AND generation = ? AND token = ?`, id, generation, hex.EncodeToString(tokenHash))
}

const eventColumns = `task, generation, source, sequence, position, kind, at, data`

// LastEvent implements store.Runs.
func (s *Store) LastEvent(ctx context.Context, id task.ID, kind task.EventKind) (task.Event, error) {
	missing := task.Errorf(task.NotFound, "the journal of task %s has no entry of the kind %s", id, kind)
	return find(ctx, s, missing, scanEvent, `SELECT `+eventColumns+` FROM events
		WHERE task = ? AND kind = ? ORDER BY position DESC LIMIT 1`, id, kind)
}

// RunActions implements store.Runs.
func (s *Store) RunActions(ctx context.Context, id task.ID, first, last int64, kind string) ([]store.Action, error) {
	return all(ctx, s, scanAction, `SELECT `+actionColumns+` FROM actions
		WHERE task = ? AND generation >= ? AND generation <= ? AND kind = ? ORDER BY id`, id, first, last, kind)
}
