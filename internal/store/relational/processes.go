package relational

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// ActAs implements store.Processes.
func (s *Store) ActAs(process string) { s.process.Store(&process) }

// holder is the name of this process, if it has one.
func (s *Store) holder() string {
	if name := s.process.Load(); name != nil {
		return *name
	}
	return ""
}

// FreeHeld implements store.Processes.
func (s *Store) FreeHeld(ctx context.Context, processes []string, actionsAt time.Time) (turns, actions int, err error) {
	processes, err = checkProcesses(processes)
	if err != nil || len(processes) == 0 {
		return 0, 0, err
	}
	err = s.write(ctx, func(q session) error {
		turns, actions = 0, 0
		for _, some := range chunks(processes) {
			freed, err := q.exec(ctx, `UPDATE messages SET state = ?, cause = 'interrupted', claim = '', held_until = 0, held_by = ''
				WHERE state = ? AND held_by IN (`+listOf(len(some))+`)`, append([]any{store.Unanswered, store.Answering}, arguments(some)...)...)
			if err != nil {
				return err
			}
			turns += int(freed)
			freed, err = q.exec(ctx, `UPDATE actions SET held_until = CASE WHEN held_until > ? THEN ? ELSE held_until END, held_by = ''
				WHERE status = 'pending' AND held_until <> ? AND held_by IN (`+listOf(len(some))+`)`,
				append([]any{actionsAt.UnixMicro(), actionsAt.UnixMicro(), never}, arguments(some)...)...)
			if err != nil {
				return err
			}
			actions += int(freed)
		}
		return nil
	})
	return turns, actions, err
}

// EndLeases implements store.Leases.
func (s *Store) EndLeases(ctx context.Context, processes []string) (held []task.Task, err error) {
	processes, err = checkProcesses(processes)
	if err != nil || len(processes) == 0 {
		return nil, err
	}
	err = s.write(ctx, func(q session) error {
		held = nil
		for _, some := range chunks(processes) {
			of := ` WHERE state = 'running' AND lease_process IN (` + listOf(len(some)) + `)`
			if _, err := q.exec(ctx, `UPDATE tasks SET lease_expires = 0, lease_token = 'ended'`+of, arguments(some)...); err != nil {
				return err
			}
			found, err := list(ctx, q, scanTask, `SELECT `+taskColumns+` FROM tasks`+of+` ORDER BY id`, arguments(some)...)
			if err != nil {
				return err
			}
			held = append(held, found...)
		}
		return nil
	})
	return orNothing(held, err)
}

// checkProcesses leaves out what names no process: many things are held by none.
func checkProcesses(processes []string) ([]string, error) {
	var named []string
	for _, process := range processes {
		if process == "" {
			continue
		}
		if err := checkName("process", process); err != nil {
			return nil, err
		}
		named = append(named, process)
	}
	return named, nil
}
