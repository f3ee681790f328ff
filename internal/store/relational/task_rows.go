package relational

import (
	"context"
	"encoding/hex"

	"github.com/toryo-dev/toryo/internal/task"
)

// taskRow is a task with the hash of its lease's token, which only the database
// and whoever holds the token know.
type taskRow struct {
	task.Task
	token string // hexadecimal; empty without a lease
	// process is the one that the lease is of; empty without a lease, and if it is not known.
	process string
}

// heldWith tests whether the token holds the lease of the task in the generation.
func (t taskRow) heldWith(generation int64, tokenHash []byte) bool {
	return t.Generation == generation && t.State == task.Running && t.token == hex.EncodeToString(tokenHash)
}

const taskColumns = `id, forge, repository, item_kind, number, type, role, title, url,
	state, generation, phase, reason, priority, attempts, ready_at, created_at, updated_at,
	lease_agent, lease_token, lease_process, lease_expires,
	cause, occasion, assigned_at, began, branch, last_agent, author, blocked_by, released, assigned_on, kept_until, detail, hint`

func scanTaskRow(r row) (t taskRow, err error) {
	err = r.Scan(&t.ID, &t.Key.Forge, &t.Key.Repository, &t.Key.Kind, &t.Key.Number, &t.Type, &t.Role, &t.Title, &t.URL,
		&t.State, &t.Generation, &t.Phase, &t.Reason, &t.Priority, &t.Attempts,
		micros{&t.ReadyAt}, micros{&t.CreatedAt}, micros{&t.UpdatedAt},
		&t.Lease.Agent, &t.token, &t.process, micros{&t.Lease.ExpiresAt},
		&t.Cause, &t.Occasion, micros{&t.AssignedAt}, &t.FirstGeneration, &t.Branch, &t.LastAgent, &t.Author, &t.BlockedBy, &t.Released, &t.AssignedOn, micros{&t.KeptUntil}, &t.Detail, &t.Hint)
	return t, err
}

func scanTask(r row) (task.Task, error) {
	t, err := scanTaskRow(r)
	return t.Task, err
}

func insertTask(ctx context.Context, q session, t taskRow) error {
	_, err := q.exec(ctx, `INSERT INTO tasks (`+taskColumns+`) VALUES (`+listOf(35)+`)`,
		t.ID, t.Key.Forge, t.Key.Repository, t.Key.Kind, t.Key.Number, t.Type, t.Role, t.Title, t.URL,
		t.State, t.Generation, t.Phase, t.Reason, t.Priority, t.Attempts,
		t.ReadyAt.UnixMicro(), t.CreatedAt.UnixMicro(), t.UpdatedAt.UnixMicro(),
		t.Lease.Agent, t.token, t.process, t.Lease.ExpiresAt.UnixMicro(),
		t.Cause, t.Occasion, t.AssignedAt.UnixMicro(), t.FirstGeneration, t.Branch, t.LastAgent, t.Author, t.BlockedBy, truth(t.Released), t.AssignedOn, t.KeptUntil.UnixMicro(), t.Detail, t.Hint)
	return err
}

// changedTasks has everything about tasks that can change.
var changedTasks = newTable(`changed`, `id TEXT, role TEXT, title TEXT, url TEXT, state TEXT,
	generation BIGINT, phase TEXT, reason TEXT, priority BIGINT, attempts BIGINT,
	ready_at BIGINT, updated_at BIGINT, lease_agent TEXT, lease_token TEXT, lease_process TEXT, lease_expires BIGINT,
	cause TEXT, occasion TEXT, assigned_at BIGINT, began BIGINT, branch TEXT,
	last_agent TEXT, author TEXT, blocked_by TEXT, released BIGINT, assigned_on TEXT, kept_until BIGINT, detail TEXT, hint TEXT`)

// saveTasks stores everything about tasks that can change, in one statement for
// many. Their rows are locked.
func saveTasks(ctx context.Context, q session, all []taskRow) error {
	return execRows(ctx, q, changedTasks, all, func(t taskRow) []any {
		return []any{
			t.ID, t.Role, t.Title, t.URL, t.State,
			t.Generation, t.Phase, t.Reason, t.Priority, t.Attempts,
			t.ReadyAt.UnixMicro(), t.UpdatedAt.UnixMicro(), t.Lease.Agent, t.token, t.process, t.Lease.ExpiresAt.UnixMicro(),
			t.Cause, t.Occasion, t.AssignedAt.UnixMicro(), t.FirstGeneration, t.Branch,
			t.LastAgent, t.Author, t.BlockedBy, truth(t.Released), t.AssignedOn, t.KeptUntil.UnixMicro(), t.Detail, t.Hint,
		}
	}, `WITH {rows} UPDATE tasks SET role = changed.role, title = changed.title, url = changed.url, state = changed.state,
			generation = changed.generation, phase = changed.phase, reason = changed.reason,
			priority = changed.priority, attempts = changed.attempts,
			ready_at = changed.ready_at, updated_at = changed.updated_at,
			lease_agent = changed.lease_agent, lease_token = changed.lease_token,
			lease_process = changed.lease_process, lease_expires = changed.lease_expires,
			cause = changed.cause, occasion = changed.occasion, assigned_at = changed.assigned_at, began = changed.began,
			branch = changed.branch, last_agent = changed.last_agent, author = changed.author,
			blocked_by = changed.blocked_by, released = changed.released, assigned_on = changed.assigned_on,
			kept_until = changed.kept_until, detail = changed.detail, hint = changed.hint
		FROM changed WHERE tasks.id = changed.id`)
}
