package relational

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Backlog implements store.Backlogs. Tasks that have not ended are few beside those that have;
// each count is served by the index on the state.
func (s *Store) Backlog(ctx context.Context, at time.Time) (store.Backlog, error) {
	found := store.Backlog{Tasks: map[task.State]int64{}}
	err := s.snapshot(ctx, func(q session) error {
		for _, state := range []task.State{task.Queued, task.Running, task.Paused} {
			count, _, err := first(ctx, q, scanNumber, `SELECT COUNT(*) FROM tasks WHERE state = '`+string(state)+`'`)
			if err != nil {
				return err
			}
			if count > 0 {
				found.Tasks[state] = count
			}
		}
		since, _, err := first(ctx, q, scanNumber, `SELECT COALESCE(MIN(CASE WHEN ready_at > updated_at THEN ready_at ELSE updated_at END), 0)
			FROM tasks WHERE state = 'queued' AND ready_at <= ? AND blocked_by = '' AND `+nobodyPauses, at.UnixMicro())
		if err != nil {
			return err
		}
		if since != 0 {
			found.QueuedSince = time.UnixMicro(since).UTC()
		}
		for condition, count := range map[string]*int64{`last_error = ''`: &found.Writes, `last_error <> ''`: &found.Retried} {
			if *count, _, err = first(ctx, q, scanNumber, `SELECT COUNT(*) FROM actions WHERE status = 'pending' AND `+condition); err != nil {
				return err
			}
		}
		return nil
	})
	return orNothing(found, err)
}
