package relational

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// refsCounter counts what is kept of a task's refs. It goes on after they were
// pruned, so that a position never stands for two things.
func refsCounter(id task.ID) string { return "refs " + string(id) }

const refsColumns = `task, position, generation, head, base, refs`

// scanRefs scans refs, and their pack if that is asked for too.
func scanRefs(r row, more ...any) (kept store.KeptRefs, err error) {
	var refs string
	into := append([]any{&kept.Task, &kept.Position, &kept.Generation, &kept.Head, &kept.Base, &refs}, more...)
	if err := r.Scan(into...); err != nil {
		return kept, err
	}
	return kept, json.Unmarshal([]byte(refs), &kept.Refs)
}

// KeepRefs implements store.Refs.
func (s *Store) KeepRefs(ctx context.Context, kept store.KeptRefs, after int64) (position int64, err error) {
	refs, err := json.Marshal(kept.Refs)
	if err != nil {
		return 0, fmt.Errorf("refs of task %s: %w", kept.Task, err)
	}
	err = s.write(ctx, func(q session) error {
		t, err := lockTask(ctx, q, kept.Task)
		if err != nil {
			return err
		}
		if t.Generation != kept.Generation {
			return staleError(kept.Task, kept.Generation, t.Generation)
		}
		if err := mayKeep(ctx, q, kept, after); err != nil {
			return err
		}
		if position, err = countOne(ctx, q, refsCounter(kept.Task), 1); err != nil {
			return err
		}
		_, err = q.exec(ctx, `INSERT INTO kept_refs (`+refsColumns+`, size, pack) VALUES (`+listOf(8)+`)`,
			kept.Task, position, kept.Generation, kept.Head, kept.Base, string(refs), len(kept.Pack), blob(kept.Pack))
		return err
	})
	return orNothing(position, err)
}

// mayKeep refuses what does not follow what is there, or is too much with it.
func mayKeep(ctx context.Context, q session, kept store.KeptRefs, after int64) error {
	type sum struct{ newest, size int64 }
	all, _, err := first(ctx, q, func(r row) (s sum, err error) {
		err = r.Scan(&s.newest, &s.size)
		return s, err
	}, `SELECT COALESCE(MAX(position), 0), CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM kept_refs WHERE task = ?`, kept.Task)
	switch {
	case err != nil:
		return err
	case all.newest != after:
		return task.Errorf(task.Conflict, "other refs of task %s were kept in between", kept.Task)
	case all.size+int64(len(kept.Pack)) > store.MostKept:
		return task.Errorf(task.TooLarge, "what task %s has pushed is more than %d MB", kept.Task, store.MostKept>>20)
	}
	return nil
}

// NewestRefs implements store.Refs.
func (s *Store) NewestRefs(ctx context.Context, id task.ID) (store.KeptRefs, error) {
	missing := task.Errorf(task.NotFound, "nothing is kept of the refs of task %s", id)
	return find(ctx, s, missing, func(r row) (store.KeptRefs, error) { return scanRefs(r) },
		`SELECT `+refsColumns+` FROM kept_refs WHERE task = ? ORDER BY position DESC LIMIT 1`, id)
}

// RefsSince implements store.Refs.
func (s *Store) RefsSince(ctx context.Context, id task.ID, position int64) ([]store.KeptRefs, error) {
	return all(ctx, s, func(r row) (store.KeptRefs, error) {
		var pack []byte
		kept, err := scanRefs(r, &pack)
		kept.Pack = nonEmpty(pack)
		return kept, err
	}, `SELECT `+refsColumns+`, pack FROM kept_refs WHERE task = ? AND position > ? ORDER BY position`, id, position)
}
