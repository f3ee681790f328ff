package relational

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
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

// putActions stores actions, in order, in few statements, however many there are. Current has the
// generations of tasks that this transaction has locked; others are looked up.
func putActions(ctx context.Context, q session, actions []store.Action, current map[task.ID]int64) ([]placed, error) {
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
	if err := checkGenerations(ctx, q, all, fresh, current); err != nil {
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

var (
	putRows = newTable(`put`, `id TEXT, item TEXT, sequence BIGINT, task TEXT, generation BIGINT, lasting BIGINT, idempotency_key TEXT, coalesce_name TEXT,
		lane TEXT, kind TEXT, payload TEXT, due_at BIGINT, status TEXT, attempts BIGINT, last_error TEXT, reason TEXT, result TEXT, held_until BIGINT`)
	soonerActions   = newTable(`sooner`, `item TEXT, due BIGINT`)
	replacedActions = newTable(`replaced`, `id TEXT, sequence BIGINT`)
	begunTasks      = newTable(`begun`, `task TEXT, generation BIGINT`)
)

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
	return execRows(ctx, q, soonerActions, items, func(item string) []any { return []any{item, due[item].UnixMicro()} },
		`WITH {rows} UPDATE actions SET due_at = sooner.due FROM sooner
			WHERE actions.item = sooner.item AND status = 'pending' AND attempts = 0 AND coalesce_name <> '' AND due_at > sooner.due`)
}

// knownActions finds those that are there already. Fresh are the indexes of the
// others.
func knownActions(ctx context.Context, q session, actions []store.Action) (all []placed, fresh []int, err error) {
	known := map[string]store.Action{}
	keys := make([]string, len(actions))
	for i, a := range actions {
		keys[i] = a.IdempotencyKey
	}
	found, err := listEach(ctx, q, scanAction, keys, actionColumns, `FROM actions WHERE idempotency_key {any} ORDER BY idempotency_key`)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range found {
		known[a.IdempotencyKey] = a
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
func checkGenerations(ctx context.Context, q session, all []placed, fresh []int, locked map[task.ID]int64) error {
	current := make(map[task.ID]int64, len(locked))
	maps.Copy(current, locked)
	var ids []task.ID
	for _, i := range fresh {
		id := all[i].Task
		if _, seen := current[id]; id != "" && !seen {
			current[id] = 0
			ids = append(ids, id)
		}
	}
	found, err := listAny(ctx, q, func(r row) (t task.Task, err error) {
		err = r.Scan(&t.ID, &t.Generation)
		return t, err
	}, ids, `SELECT id, generation FROM tasks WHERE id {any}`)
	if err != nil {
		return err
	}
	for _, t := range found {
		current[t.ID] = t.Generation
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
	return execRows(ctx, q, replacedActions, replaced, func(p place) []any { return []any{p.id, p.sequence} },
		`WITH {rows} UPDATE actions SET status = 'replaced', sequence = replaced.sequence FROM replaced WHERE actions.id = replaced.id`)
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
	found, err := listEach(ctx, q, func(r row) (p place, err error) {
		err = r.Scan(&p.id, &p.item, &p.name, &p.sequence, micros{&p.due})
		return p, err
	}, items, `id, item, coalesce_name, sequence, due_at`, `FROM actions
		WHERE item {any} AND status = 'pending' AND attempts = 0 AND coalesce_name <> ''
		ORDER BY sequence `+q.dialect.LockRows)
	if err != nil {
		return nil, err
	}
	for _, p := range found {
		places[overwritten{p.item, p.name}] = p
	}
	return places, nil
}

func insertActions(ctx context.Context, q session, all []placed, fresh []int) error {
	err := execRows(ctx, q, putRows, fresh, func(i int) []any {
		a := all[i]
		return []any{
			a.ID, a.Item.String(), a.Sequence, a.Task, a.Generation, truth(a.Lasting), a.IdempotencyKey, a.Coalesce, a.Lane, a.Kind, string(a.Payload),
			a.DueAt.UnixMicro(), a.Status, a.Attempts, a.LastError, a.Reason, string(a.Result), never,
		}
	}, `WITH {rows} INSERT INTO actions (`+actionColumns+`, held_until)
		SELECT id, item, sequence, NULLIF(task, ''), generation, lasting, idempotency_key, coalesce_name, lane, kind, payload,
			due_at, status, attempts, last_error, reason, result, held_until FROM put`)
	if err != nil && q.dialect.Classify(err) == Duplicate {
		return &againError{err} // someone else has just put one with the same key
	}
	return err
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
	return execRows(ctx, q, begunTasks, begun, func(m move) []any { return []any{m.after.ID, m.after.Generation} },
		`WITH {rows} UPDATE actions SET status = 'refused', reason = ? FROM begun
			WHERE actions.task = begun.task AND actions.generation < begun.generation AND lasting = 0 AND status = 'pending' AND held_until = ?`,
		task.ReasonStaleGeneration, never)
}
