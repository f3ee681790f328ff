package retention

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// mirrorsEvery is how often a server goes through its mirrors.
	mirrorsEvery = time.Hour
	// compactEvery is how often it looks which of them have many small packs.
	compactEvery = time.Minute
)

// Tasks is where tasks are looked up.
type Tasks interface {
	Task(ctx context.Context, id task.ID) (task.Task, error)
}

// Mirrors removes from the mirrors of one server what ended tasks have there, packs the
// mirrors, and removes those that nobody uses.
type Mirrors struct {
	Mirrors *mirror.Mirrors
	Tasks   Tasks
	Git     time.Duration // how long what a task has pushed stays after its end; 0 for ever
	Unused  time.Duration // how long a mirror stays that is not fetched; 0 for ever
	Now     func() time.Time
	Log     *slog.Logger

	running lifecycle.Group
}

// Start begins to go through the mirrors now and then.
func (m *Mirrors) Start(ctx context.Context) {
	m.running.Start(ctx, func(ctx context.Context) {
		lifecycle.Every(ctx, mirrorsEvery, func(ctx context.Context) {
			if _, err := m.Prune(ctx); err != nil && ctx.Err() == nil {
				m.Log.WarnContext(ctx, "failed to list the mirrors; retrying later", "error", err)
			}
		})
	}, func(ctx context.Context) {
		lifecycle.Every(ctx, compactEvery, func(ctx context.Context) {
			if err := m.compact(ctx); err != nil && ctx.Err() == nil {
				m.Log.WarnContext(ctx, "failed to compact mirrors; retrying later", "error", err)
			}
		})
	})
}

// compact compacts the mirrors for which it is worth it.
func (m *Mirrors) compact(ctx context.Context) (failed error) {
	repositories, err := m.Mirrors.Repositories()
	if err != nil {
		return err
	}
	for _, r := range repositories {
		_, err := m.Mirrors.Compact(ctx, r)
		failed = errors.Join(failed, err)
	}
	return failed
}

// Stop ends what Start began.
func (m *Mirrors) Stop() { m.running.Stop() }

// Dropped is what was removed from the mirrors, or would be.
type Dropped struct {
	Tasks   int // whose refs were dropped
	Packed  int // mirrors
	Mirrors int // that were removed
}

// Prune goes through all mirrors once. A mirror that fails is logged and passed over.
func (m *Mirrors) Prune(ctx context.Context) (all Dropped, err error) {
	repositories, err := m.Mirrors.Repositories()
	if err != nil {
		return all, err
	}
	for _, r := range repositories {
		one, err := m.prune(ctx, r)
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
		if err != nil {
			m.Log.WarnContext(ctx, "failed to maintain a mirror; retrying later", "repository", r.String(), "error", err)
		}
		all.Tasks += one.Tasks
		all.Packed += one.Packed
		all.Mirrors += one.Mirrors
	}
	return all, nil
}

func (m *Mirrors) prune(ctx context.Context, r task.Repository) (one Dropped, err error) {
	ids, _, err := m.ended(ctx, r)
	if err != nil {
		return one, err
	}
	for _, id := range ids {
		dropped, err := m.Mirrors.Drop(ctx, r, id, func(ctx context.Context) (bool, error) { return m.over(ctx, id) })
		if err != nil {
			return one, err
		}
		if dropped {
			one.Tasks++
		}
	}
	if one.Tasks > 0 {
		m.Log.InfoContext(ctx, "removed the work of ended tasks from a mirror", "repository", r.String(), "tasks", one.Tasks)
	}
	if m.Unused > 0 {
		gone, err := m.Mirrors.Forget(ctx, r, m.Now().Add(-m.Unused))
		if err != nil {
			return one, err
		}
		if gone {
			one.Mirrors++
			m.Log.InfoContext(ctx, "removed a mirror that nobody uses", "repository", r.String())
			return one, nil
		}
	}
	packed, err := m.Mirrors.Maintain(ctx, r)
	if packed {
		one.Packed++
	}
	return one, err
}

// Prunable is what Prune would remove.
func (m *Mirrors) Prunable(ctx context.Context) (all Dropped, err error) {
	repositories, err := m.Mirrors.Repositories()
	if err != nil {
		return all, err
	}
	var failed []error
	for _, r := range repositories {
		one, err := m.prunable(ctx, r)
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
		failed = append(failed, err)
		all.Tasks += one.Tasks
		all.Mirrors += one.Mirrors
	}
	return all, errors.Join(failed...)
}

func (m *Mirrors) prunable(ctx context.Context, r task.Repository) (one Dropped, err error) {
	ids, others, err := m.ended(ctx, r)
	one.Tasks = len(ids)
	if err != nil || m.Unused == 0 || others {
		return one, err
	}
	unused, err := m.Mirrors.Unused(r, m.Now().Add(-m.Unused))
	if unused {
		one.Mirrors++
	}
	return one, err
}

// ended lists the tasks in a mirror that have ended long enough ago, and reports whether there are others.
func (m *Mirrors) ended(ctx context.Context, r task.Repository) (ended []task.ID, others bool, err error) {
	ids, err := m.Mirrors.Tasks(ctx, r)
	if err != nil {
		return nil, false, err
	}
	for _, id := range ids {
		over, err := m.over(ctx, id)
		if err != nil {
			return nil, false, err
		}
		if over {
			ended = append(ended, id)
		}
	}
	return ended, len(ended) < len(ids), nil
}

// over reports whether a task has ended long enough ago, and its work was not promised for longer. One that
// nobody knows has not.
func (m *Mirrors) over(ctx context.Context, id task.ID) (bool, error) {
	if m.Git == 0 {
		return false, nil
	}
	t, err := m.Tasks.Task(ctx, id)
	if task.CodeOf(err) == task.NotFound {
		return false, nil
	}
	now := m.Now()
	return err == nil && t.State.Terminal() && t.UpdatedAt.Before(now.Add(-m.Git)) && t.KeptUntil.Before(now), err
}
