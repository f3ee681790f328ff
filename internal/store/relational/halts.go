package relational

import (
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// nobodyPauses is a condition: nobody wants everything paused.
const nobodyPauses = `NOT EXISTS (SELECT 1 FROM general_pauses)`

// haltTrigger is what a halt leads to.
var haltTrigger = map[task.Signal]task.Trigger{task.SignalStop: task.Withdrawn, task.SignalPause: task.PauseSet}

// RequestHalt implements store.Halts.
func (s *Store) RequestHalt(ctx context.Context, halt store.Halt) (t task.Task, noted bool, err error) {
	trigger, known := haltTrigger[halt.Signal]
	if !known {
		return task.Task{}, false, task.Errorf(task.Invalid, "a task is halted by a stop or a pause, not by %q", string(halt.Signal))
	}
	err = s.write(ctx, func(q session) error {
		found, err := lockTask(ctx, q, halt.Task)
		if err != nil {
			return err
		}
		t = found.Task
		if t.State.Terminal() {
			return &task.IllegalMoveError{From: t.State, Trigger: trigger}
		}
		if t.State == task.Paused && halt.Signal == task.SignalPause && !waitsBehind(t.Reason, halt.Reason) {
			t, err = pausedByPerson(ctx, q, found, halt)
			return err
		}
		// A person's pause takes the place of one that would end by itself.
		added, err := q.exec(ctx, `INSERT INTO halts (task, signal, reason, at) VALUES (?, ?, ?, ?)
			ON CONFLICT (task, signal) DO UPDATE SET reason = excluded.reason
			WHERE halts.signal = ? AND excluded.reason = ? AND halts.reason <> excluded.reason`,
			halt.Task, halt.Signal, halt.Reason, made(halt.At).UnixMicro(), task.SignalPause, task.ReasonPauseRequested)
		if noted = added > 0; noted {
			q.notify(store.BellRung, string(halt.Task))
		}
		return err
	})
	if err != nil {
		return task.Task{}, false, err
	}
	return t, noted, nil
}

// liftedByItself are the reasons for pauses that end when something else does: a pause of
// everything, and the file of an agent. A pause for a question or a plan is none: what people
// say has to reach the run.
var liftedByItself = map[task.Reason]bool{task.ReasonAllPaused: true, task.ReasonAgentPaused: true}

// waitsBehind reports whether a pause stays pending while the task is paused for another
// reason. A task that waits for an answer has to know that it does, or the answer would not
// reach its run. When the answer is there the pause takes over; see overtaken.
func waitsBehind(is, asked task.Reason) bool {
	return is.AwaitsPeople() && asked == task.ReasonPauseRequested
}

// pausedByPerson answers a pause of a task that is paused. If a person asks for it, the task
// does not go on any more by itself. That is no move of the state machine, because the
// state stays, but it is in the journal like one.
func pausedByPerson(ctx context.Context, q session, found taskRow, halt store.Halt) (task.Task, error) {
	if halt.Reason != task.ReasonPauseRequested || !liftedByItself[found.Reason] {
		return found.Task, nil
	}
	return takeOver(ctx, q, found)
}

// takeOver makes the pause of a paused task that of a person.
func takeOver(ctx context.Context, q session, found taskRow) (task.Task, error) {
	m := move{before: found.Task, after: found, trigger: task.PauseSet}
	m.after.Reason, m.after.UpdatedAt = task.ReasonPauseRequested, now()
	m.after.Detail, m.after.Hint = "", ""
	if err := saveTasks(ctx, q, []taskRow{m.after}); err != nil {
		return task.Task{}, err
	}
	return m.after.Task, record(ctx, q, []move{m})
}

// CancelHalt implements store.Halts.
func (s *Store) CancelHalt(ctx context.Context, id task.ID, signal task.Signal, reason task.Reason) (bool, error) {
	var removed int64
	err := s.write(ctx, func(q session) (err error) {
		// Whoever lets it come about has looked at it with the task locked.
		if _, err := lockTask(ctx, q, id); err != nil {
			return err
		}
		if removed, err = q.exec(ctx, `DELETE FROM halts WHERE task = ? AND signal = ? AND (reason = ? OR ? = '')`, id, signal, reason, reason); removed > 0 {
			q.notify(store.BellRung, string(id))
		}
		return err
	})
	return removed > 0, err
}

// endHalts removes the halts that moves settle, in one statement for many.
func endHalts(ctx context.Context, q session, moves []move) error {
	var whole, pauses, others []task.ID // whose halts, pauses, and pauses that people have not asked for end
	for _, m := range moves {
		switch {
		case m.after.State.Terminal() || m.trigger == task.Assigned && m.before.Generation > 0:
			whole = append(whole, m.after.ID)
		case m.after.AwaitsPeople():
			others = append(others, m.after.ID) // see waitsBehind
		case m.after.State == task.Paused || m.trigger == task.Resumed:
			pauses = append(pauses, m.after.ID)
		}
	}
	if err := removeHalts(ctx, q, whole, ``); err != nil {
		return err
	}
	if err := removeHalts(ctx, q, pauses, ` AND signal = ?`, task.SignalPause); err != nil {
		return err
	}
	return removeHalts(ctx, q, others, ` AND signal = ? AND reason <> ?`, task.SignalPause, task.ReasonPauseRequested)
}

// removeHalts removes the halts of tasks that meet a condition.
func removeHalts(ctx context.Context, q session, of []task.ID, condition string, args ...any) error {
	return execAny(ctx, q, of, `DELETE FROM halts WHERE task {any}`+condition, args...)
}

const haltColumns = `task, signal, reason, at`

func scanHalt(r row) (h store.Halt, err error) {
	err = r.Scan(&h.Task, &h.Signal, &h.Reason, micros{&h.At})
	return h, err
}

// haltsOf puts a stop before a pause.
const haltsOf = `SELECT ` + haltColumns + ` FROM halts WHERE task = ? ORDER BY signal DESC`

// HaltsOf implements store.Halts.
func (s *Store) HaltsOf(ctx context.Context, id task.ID) ([]store.Halt, error) {
	return all(ctx, s, scanHalt, haltsOf, id)
}

// ListHalts implements store.Halts.
func (s *Store) ListHalts(ctx context.Context) ([]store.Halt, error) {
	return all(ctx, s, scanHalt, `SELECT `+haltColumns+` FROM halts ORDER BY at, task, signal DESC`)
}

// PauseAll implements store.Halts.
func (s *Store) PauseAll(ctx context.Context, pause store.GeneralPause) (first bool, err error) {
	if err := requireName("source of a pause", pause.Source); err != nil {
		return false, err
	}
	if err := checkName("person who pauses", pause.By); err != nil {
		return false, err
	}
	err = s.write(ctx, func(q session) error {
		added, err := q.exec(ctx, `INSERT INTO general_pauses (source, wanted_by, at) VALUES (?, ?, ?)
			ON CONFLICT (source) DO NOTHING`, pause.Source, pause.By, made(pause.At).UnixMicro())
		if first = added > 0; first {
			q.notify(store.WaitsChanged, "")
		}
		return err
	})
	return first, err
}

// ResumeAll implements store.Halts.
func (s *Store) ResumeAll(ctx context.Context, source string) (bool, error) {
	var removed int64
	err := s.write(ctx, func(q session) (err error) {
		removed, err = q.exec(ctx, `DELETE FROM general_pauses WHERE source = ?`, source)
		q.notify(store.TasksChanged, "") // what waits may be handed out
		return err
	})
	return removed > 0, err
}

// GeneralPauses implements store.Halts.
func (s *Store) GeneralPauses(ctx context.Context) ([]store.GeneralPause, error) {
	return all(ctx, s, func(r row) (p store.GeneralPause, err error) {
		err = r.Scan(&p.Source, &p.By, micros{&p.At})
		return p, err
	}, `SELECT source, wanted_by, at FROM general_pauses ORDER BY at, source`)
}
