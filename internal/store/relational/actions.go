package relational

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const actionColumns = `id, item, sequence, task, generation, lasting, idempotency_key, coalesce_name, lane, kind, payload,
	due_at, status, attempts, last_error, reason, result`

func scanAction(r row) (store.Action, error) {
	var a store.Action
	var item, payload, result string
	var owner sql.NullString
	err := r.Scan(&a.ID, &item, &a.Sequence, &owner, &a.Generation, &a.Lasting, &a.IdempotencyKey, &a.Coalesce, &a.Lane, &a.Kind, &payload,
		micros{&a.DueAt}, &a.Status, &a.Attempts, &a.LastError, &a.Reason, &result)
	if err != nil {
		return store.Action{}, err
	}
	a.Task = task.ID(owner.String)
	a.Payload, a.Result = rawJSON(payload), rawJSON(result)
	a.Item, err = task.ParseKey(item)
	return a, err
}

func checkAction(a store.Action) error {
	if err := a.Item.Validate(); err != nil {
		return err
	}
	if err := requireName("idempotency key", a.IdempotencyKey); err != nil {
		return err
	}
	if err := cmp.Or(checkName("repository", a.Item.Repository), checkName("name of what the action overwrites", a.Coalesce), checkName("lane", a.Lane)); err != nil {
		return err
	}
	if a.Task != "" && a.Generation < 1 {
		return task.Errorf(task.Invalid, "action %q belongs to a task but names no generation", a.IdempotencyKey)
	}
	return checkJSON("payload of an action", a.Payload)
}

// placed is an action on its way into the outbox.
type placed struct {
	store.Action
	put bool // false: it was there already
}

// place is where an action stands that a newer one may replace.
type place struct {
	id       string // of a stored action
	batch    int    // or the index of one that comes in with the newer one
	item     string
	name     string
	sequence int64
	due      time.Time
}

type overwritten struct{ item, name string }

// putActions stores actions, in order, in few statements, however many there are.
func putActions(ctx context.Context, q session, actions []store.Action) ([]placed, error) {
	if len(actions) == 0 {
		return nil, nil
	}
	for _, a := range actions {
		if err := checkAction(a); err != nil {
			return nil, err
		}
	}
	all, fresh, err := knownActions(ctx, q, actions)
	if err != nil || len(fresh) == 0 {
		return all, err
	}
	if err := checkGenerations(ctx, q, all, fresh); err != nil {
		return nil, err
	}
	if err := number(ctx, q, all, fresh); err != nil {
		return nil, err
	}
	if err := coalesce(ctx, q, all, fresh); err != nil {
		return nil, err
	}
	if err := sendNow(ctx, q, all, fresh); err != nil {
		return nil, err
	}
	return all, insertActions(ctx, q, all, fresh)
}

// sendNow makes pending actions due that wait for newer ones to replace them, such as a
// progress comment, where another action of the same item is put behind them: actions are
// sent in order. A progress comment that is due in 10 s, with a comment behind it that is
// due now, is due now too.
func sendNow(ctx context.Context, q session, all []placed, fresh []int) error {
	due := map[string]time.Time{}
	var items []string
	for _, i := range fresh {
		item := all[i].Item.String()
		if all[i].Coalesce != "" {
			continue
		}
		if at, known := due[item]; !known {
			items = append(items, item)
			due[item] = all[i].DueAt
		} else if all[i].DueAt.Before(at) {
			due[item] = all[i].DueAt
		}
	}
	for _, some := range chunks(items) {
		args := make([]any, 0, 2*len(some))
		for _, item := range some {
			args = append(args, item, due[item].UnixMicro())
		}
		_, err := q.exec(ctx, `WITH sooner (item, due) AS (VALUES `+rowsOf(len(some), `(CAST(? AS TEXT), CAST(? AS BIGINT))`)+`)
			UPDATE actions SET due_at = sooner.due FROM sooner
			WHERE actions.item = sooner.item AND status = 'pending' AND attempts = 0 AND coalesce_name <> '' AND due_at > sooner.due`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// knownActions finds those that are there already. Fresh are the indexes of the
// others.
func knownActions(ctx context.Context, q session, actions []store.Action) (all []placed, fresh []int, err error) {
	known := map[string]store.Action{}
	for _, some := range chunks(actions) {
		keys := make([]any, len(some))
		for i, a := range some {
			keys[i] = a.IdempotencyKey
		}
		found, err := list(ctx, q, scanAction, `SELECT `+actionColumns+` FROM actions
			WHERE idempotency_key IN (`+listOf(len(keys))+`)`, keys...)
		if err != nil {
			return nil, nil, err
		}
		for _, a := range found {
			known[a.IdempotencyKey] = a
		}
	}
	all = make([]placed, len(actions))
	for i, a := range actions {
		if stored, ok := known[a.IdempotencyKey]; ok {
			all[i] = placed{Action: stored}
			continue
		}
		a.ID, a.DueAt = newID(), moment(a.DueAt)
		a.Status, a.Attempts, a.LastError, a.Reason, a.Result = store.Pending, 0, "", "", nil
		all[i] = placed{Action: a, put: true}
		known[a.IdempotencyKey] = a
		fresh = append(fresh, i)
	}
	return all, fresh, nil
}

// checkGenerations refuses writes of runs that are over.
func checkGenerations(ctx context.Context, q session, all []placed, fresh []int) error {
	current := map[task.ID]int64{}
	var ids []task.ID
	for _, i := range fresh {
		id := all[i].Task
		if _, seen := current[id]; id != "" && !seen {
			current[id] = 0
			ids = append(ids, id)
		}
	}
	for _, some := range chunks(ids) {
		found, err := list(ctx, q, func(r row) (t task.Task, err error) {
			err = r.Scan(&t.ID, &t.Generation)
			return t, err
		}, `SELECT id, generation FROM tasks WHERE id IN (`+listOf(len(some))+`)`, arguments(some)...)
		if err != nil {
			return err
		}
		for _, t := range found {
			current[t.ID] = t.Generation
		}
	}
	for _, i := range fresh {
		a := all[i]
		switch {
		case a.Task == "":
		case current[a.Task] == 0:
			return noTask(a.Task)
		case a.Generation < current[a.Task]:
			return staleError(a.Task, a.Generation, current[a.Task])
		case a.Generation > current[a.Task]:
			return task.Errorf(task.Invalid, "action %q names generation %d of task %s, which is only in %d", a.IdempotencyKey, a.Generation, a.Task, current[a.Task])
		}
	}
	return nil
}

// number gives each action its place among those of its item.
func number(ctx context.Context, q session, all []placed, fresh []int) error {
	more := map[string]int64{}
	for _, i := range fresh {
		more[itemCounter(all[i].Item.String())]++
	}
	last, err := count(ctx, q, more)
	if err != nil {
		return err
	}
	for _, i := range fresh {
		counter := itemCounter(all[i].Item.String())
		more[counter]--
		all[i].Sequence = last[counter] - more[counter]
	}
	return nil
}

// coalesce lets actions take the place of earlier ones that they overwrite and
// that have not been tried. The earlier one moves to the newer one's number,
// where it is kept only so that its idempotency key stays known.
func coalesce(ctx context.Context, q session, all []placed, fresh []int) error {
	places, err := untried(ctx, q, all, fresh)
	if err != nil {
		return err
	}
	var replaced []place // stored ones, with the number that they move to
	for _, i := range fresh {
		a := &all[i].Action
		if a.Coalesce == "" {
			continue
		}
		spot := overwritten{a.Item.String(), a.Coalesce}
		if earlier, found := places[spot]; found {
			if earlier.id == "" {
				all[earlier.batch].Status, all[earlier.batch].Sequence = store.Replaced, a.Sequence
			} else {
				replaced = append(replaced, place{id: earlier.id, sequence: a.Sequence})
			}
			a.Sequence = earlier.sequence
			if earlier.due.Before(a.DueAt) {
				a.DueAt = earlier.due
			}
		}
		places[spot] = place{batch: i, sequence: a.Sequence, due: a.DueAt}
	}
	return replaceActions(ctx, q, replaced)
}

func replaceActions(ctx context.Context, q session, replaced []place) error {
	for _, some := range chunks(replaced) {
		args := make([]any, 0, 2*len(some))
		for _, p := range some {
			args = append(args, p.id, p.sequence)
		}
		_, err := q.exec(ctx, `WITH replaced (id, sequence) AS (VALUES `+rowsOf(len(some), `(CAST(? AS TEXT), CAST(? AS BIGINT))`)+`)
			UPDATE actions SET status = 'replaced', sequence = replaced.sequence FROM replaced WHERE actions.id = replaced.id`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// untried finds and locks the stored actions that may be replaced.
func untried(ctx context.Context, q session, all []placed, fresh []int) (map[overwritten]place, error) {
	places := map[overwritten]place{}
	var items []string
	asked := map[string]bool{}
	for _, i := range fresh {
		item := all[i].Item.String()
		if all[i].Coalesce != "" && !asked[item] {
			asked[item] = true
			items = append(items, item)
		}
	}
	for _, some := range chunks(items) {
		found, err := list(ctx, q, func(r row) (p place, err error) {
			err = r.Scan(&p.id, &p.item, &p.name, &p.sequence, micros{&p.due})
			return p, err
		}, `SELECT id, item, coalesce_name, sequence, due_at FROM actions
			WHERE item IN (`+listOf(len(some))+`) AND status = 'pending' AND attempts = 0 AND coalesce_name <> ''
			ORDER BY sequence `+q.dialect.LockRows, arguments(some)...)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			places[overwritten{p.item, p.name}] = p
		}
	}
	return places, nil
}

func insertActions(ctx context.Context, q session, all []placed, fresh []int) error {
	for _, some := range chunks(fresh) {
		args := make([]any, 0, 18*len(some))
		for _, i := range some {
			a := all[i]
			owner := sql.NullString{String: string(a.Task), Valid: a.Task != ""}
			args = append(args, a.ID, a.Item.String(), a.Sequence, owner, a.Generation, truth(a.Lasting), a.IdempotencyKey, a.Coalesce, a.Lane, a.Kind, string(a.Payload),
				a.DueAt.UnixMicro(), a.Status, a.Attempts, a.LastError, a.Reason, string(a.Result), never)
		}
		_, err := q.exec(ctx, `INSERT INTO actions (`+actionColumns+`, held_until)
			VALUES `+rowsOf(len(some), `(`+listOf(18)+`)`), args...)
		if q.dialect.Classify(err) == Duplicate {
			return &againError{err} // someone else has just put one with the same key
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refuseOlder ends the writes of runs that are over and that no sender has.
// What a sender has is its own affair: it ends when the sender says how it went,
// or is refused when it would be taken again.
func refuseOlder(ctx context.Context, q session, moves []move) error {
	var begun []move
	for _, m := range moves {
		if m.begins() {
			begun = append(begun, m)
		}
	}
	for _, some := range chunks(begun) {
		args := make([]any, 0, 2*len(some)+2)
		for _, m := range some {
			args = append(args, m.after.ID, m.after.Generation)
		}
		_, err := q.exec(ctx, `WITH begun (task, generation) AS (VALUES `+rowsOf(len(some), `(CAST(? AS TEXT), CAST(? AS BIGINT))`)+`)
			UPDATE actions SET status = 'refused', reason = ? FROM begun
			WHERE actions.task = begun.task AND actions.generation < begun.generation AND lasting = 0 AND status = 'pending' AND held_until = ?`,
			append(args, task.ReasonStaleGeneration, never)...)
		if err != nil {
			return err
		}
	}
	return nil
}
