package relational

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Assign implements store.Tasks.
func (s *Store) Assign(ctx context.Context, want store.NewTask, effects store.Effects) (t task.Task, queued bool, err error) {
	if err := checkNewTask(want); err != nil {
		return task.Task{}, false, err
	}
	err = s.write(ctx, func(q session) error {
		t, queued, err = assign(ctx, q, want, effects)
		return err
	})
	if err != nil {
		return task.Task{}, false, err
	}
	return t, queued, nil
}

func checkNewTask(want store.NewTask) error {
	if err := want.Key.Validate(); err != nil {
		return err
	}
	if !want.Type.Valid() {
		return task.Errorf(task.Invalid, "unknown task type %q; it is development or review", string(want.Type))
	}
	for what, name := range map[string]string{
		"repository": want.Key.Repository, "branch": want.Branch, "occasion": want.Occasion, "author": want.Author,
	} {
		if err := checkName(what, name); err != nil {
			return err
		}
	}
	return nil
}

func assign(ctx context.Context, q session, want store.NewTask, effects store.Effects) (task.Task, bool, error) {
	found, exists, err := first(ctx, q, scanTaskRow, `SELECT `+taskColumns+` FROM tasks
		WHERE forge = ? AND repository = ? AND item_kind = ? AND number = ? AND type = ? `+q.dialect.LockRows,
		want.Key.Forge, want.Key.Repository, want.Key.Kind, want.Key.Number, want.Type)
	if err != nil {
		return task.Task{}, false, err
	}
	if exists && (found.State.Active() || want.Occasion != "" && want.Occasion == found.Occasion) {
		return found.Task, false, nil
	}
	at := now()
	if !exists {
		found.Task = task.Task{ID: task.ID(newID()), Key: want.Key, Type: want.Type, CreatedAt: at}
	}
	m := move{before: found.Task, after: found, trigger: task.Assigned, effects: effects}
	m.after.Role, m.after.Title, m.after.URL = want.Role, want.Title, want.URL
	m.after.Priority, m.after.ReadyAt = want.Priority, moment(want.ReadyAt)
	m.after.Cause, m.after.Author = want.Reason, want.Author
	m.after.Occasion = cmp.Or(want.Occasion, found.Occasion)
	m.after.AssignedAt, m.after.Released, m.after.BlockedBy = at, false, want.BlockedBy
	m.after.AssignedOn = want.AssignedOn
	if m.after.Branch == "" {
		m.after.Branch = want.Branch
	}
	if err := m.make(want.Reason, at); err != nil {
		return task.Task{}, false, err
	}
	if err := m.begin(floorWhenAsked(ctx, q)); err != nil {
		return task.Task{}, false, err
	}
	m.after.FirstGeneration = m.after.Generation
	if !exists {
		if err := insertTask(ctx, q, m.after); err != nil {
			if q.dialect.Classify(err) == Duplicate {
				return task.Task{}, false, &againError{err}
			}
			return task.Task{}, false, err
		}
	} else if err := saveTasks(ctx, q, []taskRow{m.after}); err != nil {
		return task.Task{}, false, err
	}
	return m.after.Task, true, record(ctx, q, []move{m})
}

// Move implements store.Tasks.
func (s *Store) Move(ctx context.Context, change store.Change) (task.Task, error) {
	if change.Trigger == task.Claimed {
		return task.Task{}, task.Errorf(task.Invalid, "a task is claimed with a lease, not moved")
	}
	if decidedByHalts(change) {
		return s.moveAlone(ctx, change)
	}
	return s.moves.do(ctx, wantedMove{task: change.Task, change: change}, s.makeMoves)
}

// moveAlone makes a move that the halts of its task decide on.
func (s *Store) moveAlone(ctx context.Context, change store.Change) (t task.Task, err error) {
	err = s.write(ctx, func(q session) error {
		found, err := lockTask(ctx, q, change.Task)
		if err != nil {
			return err
		}
		if err := checkChange(found, change); err != nil {
			return err
		}
		after, done, err := overtaken(ctx, q, found, change)
		if err != nil || done {
			t = after
			return err
		}
		m, err := newMove(found, change, floorWhenAsked(ctx, q))
		if err != nil {
			return err
		}
		t = m.after.Task
		if err := saveTasks(ctx, q, []taskRow{m.after}); err != nil {
			return err
		}
		return record(ctx, q, []move{m})
	})
	return orNothing(t, err)
}

// checkChange tests whether a change is still meant for a task as it is.
func checkChange(found taskRow, change store.Change) error {
	if change.Generation != 0 && change.Generation != found.Generation {
		return staleError(found.ID, change.Generation, found.Generation)
	}
	if !change.LeaseOver.IsZero() && found.Lease.Held(change.LeaseOver) {
		return task.Errorf(task.Conflict, "the lease on task %s was renewed", found.ID)
	}
	if change.Was != "" && found.Reason != change.Was {
		return task.Errorf(task.Conflict, "task %s is %s for another reason by now", found.ID, found.State)
	}
	return nil
}

// newMove is what a change makes of a task whose row is locked. Nothing is stored yet.
func newMove(found taskRow, change store.Change, floor func() (int64, error)) (move, error) {
	m := move{before: found.Task, after: found, trigger: change.Trigger, effects: change.Effects}
	if err := m.make(change.Reason, now()); err != nil {
		return move{}, err
	}
	if err := m.begin(floor); err != nil {
		return move{}, err
	}
	m.after.Detail, m.after.Hint = kept(change.Detail), kept(change.Hint)
	if change.Trigger == task.Assigned { // for the cause that it had
		m.after.AssignedAt, m.after.FirstGeneration, m.after.Released = m.after.UpdatedAt, m.after.Generation, false
		m.after.AssignedOn = ""
	}
	if m.after.State == task.Queued && !change.ReadyAt.IsZero() {
		m.after.ReadyAt = moment(change.ReadyAt)
	}
	if until := moment(change.KeptUntil); m.after.State.Terminal() && until.After(m.after.KeptUntil) {
		m.after.KeptUntil = until
	}
	return m, nil
}

// kept is what is kept of a text of others: nothing that a database refuses.
func kept(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
	return textfmt.Clip(text, task.LongestDetail)
}

// decidedByHalts tests whether [overtaken] has a say in a change.
func decidedByHalts(change store.Change) bool { return change.Halt != "" || resumesByAnswer(change) }

func resumesByAnswer(change store.Change) bool {
	return change.Trigger == task.Resumed && change.Was.AwaitsPeople()
}

// overtaken looks at the halts that are pending. The change of one that is not is refused. A
// task that would go on with an answer stays paused if a person has asked for that, and
// does not go on if it is to stop.
func overtaken(ctx context.Context, q session, found taskRow, change store.Change) (after task.Task, done bool, err error) {
	answered := resumesByAnswer(change)
	pending, err := list(ctx, q, scanHalt, haltsOf, found.ID)
	if err != nil {
		return task.Task{}, false, err
	}
	stops := slices.ContainsFunc(pending, func(h store.Halt) bool { return h.Signal == task.SignalStop })
	pausesFor := func(reason task.Reason) bool {
		return slices.ContainsFunc(pending, func(h store.Halt) bool { return h.Signal == task.SignalPause && h.Reason == reason })
	}
	switch {
	case change.Halt == task.SignalStop && !stops, change.Halt == task.SignalPause && !pausesFor(change.Reason):
		return task.Task{}, false, task.Errorf(task.Conflict, "the %s of task %s was taken back, or another took its place", change.Halt, found.ID)
	case answered && stops:
		return task.Task{}, false, task.Errorf(task.Conflict, "task %s is about to stop", found.ID)
	case answered && pausesFor(task.ReasonPauseRequested):
		after, err = takeOver(ctx, q, found)
		return after, true, err
	}
	return task.Task{}, false, nil
}

func lockTask(ctx context.Context, q session, id task.ID) (taskRow, error) {
	found, exists, err := first(ctx, q, scanTaskRow, `SELECT `+taskColumns+` FROM tasks WHERE id = ? `+q.dialect.LockRows, id)
	if err == nil && !exists {
		err = noTask(id)
	}
	return found, err
}

func noTask(id task.ID) error { return task.Errorf(task.NotFound, "there is no task %q", string(id)) }

func staleError(id task.ID, named, current int64) error {
	return task.Errorf(task.StaleGeneration, "generation %d of task %s is over; it is in generation %d", named, id, current)
}

// SetPhase implements store.Tasks.
func (s *Store) SetPhase(ctx context.Context, id task.ID, generation int64, phase task.Phase) error {
	if !phase.Valid() {
		return task.Errorf(task.Invalid, "unknown phase %q", string(phase))
	}
	return s.write(ctx, func(q session) error {
		found, err := lockTask(ctx, q, id)
		if err != nil {
			return err
		}
		if found.Generation != generation {
			return staleError(id, generation, found.Generation)
		}
		if found.State != task.Running {
			return task.Errorf(task.StaleGeneration, "the run of task %s is over: the task is %s", id, found.State)
		}
		_, err = q.exec(ctx, `UPDATE tasks SET phase = ?, updated_at = ? WHERE id = ?`, phase, now().UnixMicro(), id)
		return err
	})
}

// Describe implements store.Tasks.
func (s *Store) Describe(ctx context.Context, id task.ID, as store.Description) error {
	return s.write(ctx, func(q session) error {
		found, err := lockTask(ctx, q, id)
		if err != nil || !found.State.Active() {
			return err
		}
		at := now().UnixMicro()
		_, err = q.exec(ctx, `UPDATE tasks SET role = ?, title = ?, url = ?, priority = ?, blocked_by = ?, updated_at = ?,
			free_since = CASE WHEN blocked_by <> '' AND ? = '' THEN ? ELSE free_since END WHERE id = ?`,
			as.Role, as.Title, as.URL, as.Priority, as.BlockedBy, at, as.BlockedBy, at, id)
		topic := store.WaitsChanged
		if found.State == task.Queued {
			topic = store.TasksChanged
		}
		q.notify(topic, string(id))
		return err
	})
}

// Release implements store.Tasks.
func (s *Store) Release(ctx context.Context, id task.ID) error {
	return s.write(ctx, func(q session) error {
		released, err := q.exec(ctx, `UPDATE tasks SET released = 1 WHERE id = ?`, id)
		if err == nil && released == 0 {
			err = noTask(id)
		}
		return err
	})
}

// SetOccasion implements store.Tasks.
func (s *Store) SetOccasion(ctx context.Context, id task.ID, generation int64, occasion string) error {
	if err := checkName("occasion", occasion); err != nil {
		return err
	}
	return s.write(ctx, func(q session) error {
		changed, err := q.exec(ctx, `UPDATE tasks SET occasion = ? WHERE id = ? AND generation = ?`, occasion, id, generation)
		if err == nil && changed == 0 {
			err = task.Errorf(task.StaleGeneration, "task %s is not in generation %d", id, generation)
		}
		return err
	})
}

// SeenOn implements store.Tasks.
func (s *Store) SeenOn(ctx context.Context, id task.ID, items task.Keys) error {
	return s.write(ctx, func(q session) error {
		noted, err := q.exec(ctx, `UPDATE tasks SET assigned_on = ? WHERE id = ?`, items, id)
		if err == nil && noted == 0 {
			err = noTask(id)
		}
		return err
	})
}

// TaskOfBranch implements store.Tasks.
func (s *Store) TaskOfBranch(ctx context.Context, forge task.Forge, repository, branch string) (task.Task, error) {
	missing := task.Errorf(task.NotFound, "no task works on the branch %q of %s:%s", branch, forge, repository)
	if branch == "" {
		return task.Task{}, missing
	}
	return find(ctx, s, missing, scanTask, `SELECT `+taskColumns+` FROM tasks
		WHERE forge = ? AND repository = ? AND branch = ? AND branch <> '' AND type = 'development' ORDER BY id LIMIT 1`,
		forge, repository, branch)
}

// Task implements store.Tasks.
func (s *Store) Task(ctx context.Context, id task.ID) (task.Task, error) {
	return find(ctx, s, noTask(id), scanTask, `SELECT `+taskColumns+` FROM tasks WHERE id = ?`, id)
}

// TaskOf implements store.Tasks.
func (s *Store) TaskOf(ctx context.Context, key task.Key, kind task.Type) (task.Task, error) {
	return find(ctx, s, task.Errorf(task.NotFound, "there is no %s task for %s", kind, key), scanTask, `SELECT `+taskColumns+` FROM tasks
		WHERE forge = ? AND repository = ? AND item_kind = ? AND number = ? AND type = ?`,
		key.Forge, key.Repository, key.Kind, key.Number, kind)
}

// likeEscaper makes text stand for itself in a pattern whose escape character is "!".
var likeEscaper = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

// ListTasks implements store.Tasks.
func (s *Store) ListTasks(ctx context.Context, filter store.TaskFilter) ([]task.Task, error) {
	if err := checkLimit(filter.Limit); err != nil {
		return nil, err
	}
	where := taskConditions(filter)
	order := ` ORDER BY id`
	switch {
	case filter.LastChanged:
		order = ` ORDER BY updated_at DESC, id DESC`
	case filter.Newest:
		order += ` DESC`
	}
	query, args := limited(`SELECT `+taskColumns+` FROM tasks`+where.text()+order, where.args, filter.Limit)
	return all(ctx, s, scanTask, query, args...)
}

// CountTasks implements store.Tasks.
func (s *Store) CountTasks(ctx context.Context, filter store.TaskFilter) (map[task.State]int, error) {
	type counted struct {
		state task.State
		tasks int
	}
	where := taskConditions(filter)
	found, err := all(ctx, s, func(r row) (one counted, err error) {
		err = r.Scan(&one.state, &one.tasks)
		return one, err
	}, `SELECT state, COUNT(*) FROM tasks`+where.text()+` GROUP BY state`, where.args...)
	if err != nil {
		return nil, err
	}
	counts := make(map[task.State]int, len(found))
	for _, one := range found {
		counts[one.state] = one.tasks
	}
	return counts, nil
}

// taskConditions asks for the tasks that pass a filter.
func taskConditions(filter store.TaskFilter) (where conditions) {
	if len(filter.States) > 0 {
		where.add(`state IN (`+listOf(len(filter.States))+`)`, arguments(filter.States)...)
	}
	if len(filter.Reasons) > 0 {
		where.add(`reason IN (`+listOf(len(filter.Reasons))+`)`, arguments(filter.Reasons)...)
	}
	where.addText(`forge`, string(filter.Forge))
	where.addText(`repository`, filter.Repository)
	where.addText(`type`, string(filter.Type))
	if filter.SeenOn {
		where.add(`assigned_on <> ''`)
	}
	if filter.Unreleased {
		where.add(`released = 0`)
	}
	if filter.OccasionEnd != "" {
		where.add(`occasion LIKE ? ESCAPE '!'`, "%"+likeEscaper.Replace(filter.OccasionEnd))
	}
	if filter.After != "" {
		where.add(`id > ?`, string(filter.After))
	}
	if filter.Before != "" {
		where.add(`id < ?`, string(filter.Before))
	}
	if !filter.UpdatedSince.IsZero() {
		where.add(`updated_at >= ?`, filter.UpdatedSince.UnixMicro())
	}
	where.addNames(filter)
	return where
}

// addNames asks for tasks by how people name them.
func (c *conditions) addNames(filter store.TaskFilter) {
	if filter.IDStart != "" {
		c.add(`id LIKE ? ESCAPE '!'`, likeEscaper.Replace(filter.IDStart)+"%")
	}
	if len(filter.Repositories) > 0 {
		names := make([]string, len(filter.Repositories))
		for i, name := range filter.Repositories {
			names[i] = strings.ToLower(name)
		}
		c.add(`lower(repository) IN (`+listOf(len(names))+`)`, arguments(names)...)
	}
	if filter.Number != 0 {
		c.add(`number = ?`, filter.Number)
	}
}
