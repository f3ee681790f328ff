package relational

import (
	"context"
	"database/sql"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// purse names the counters of what a task or a day has spent.
type purse string

func taskPurse(id task.ID) purse { return purse("spent by " + string(id)) }

// spentOn begins the names of the counters of days.
const spentOn = "spent on "

func dayPurse(at time.Time) purse { return purse(spentOn + at.UTC().Format(time.DateOnly)) }

func (p purse) tokens() string { return string(p) + " tokens" }
func (p purse) money() string  { return string(p) + " money" }

func (p purse) amount(values map[string]int64) store.Amount {
	return store.Amount{Tokens: values[p.tokens()], Money: values[p.money()]}
}

// charge adds to what a task and a day have spent and returns both sums. The
// counters stay locked until the transaction ends, so that nobody else decides
// by them in the meantime.
func charge(ctx context.Context, q session, id task.ID, at time.Time, more store.Amount) (ofTask, ofDay store.Amount, err error) {
	purses := []purse{dayPurse(at)}
	if id != "" {
		purses = append(purses, taskPurse(id))
	}
	added := make(map[string]int64)
	for _, p := range purses {
		added[p.tokens()], added[p.money()] = more.Tokens, more.Money
	}
	values, err := count(ctx, q, added)
	if err == nil {
		err = countSpent(ctx, q, id, at, more)
	}
	return taskPurse(id).amount(values), dayPurse(at).amount(values), err
}

// ReserveSpend implements store.Spending.
func (s *Store) ReserveSpend(ctx context.Context, call store.Call, admit store.Admit) (id string, err error) {
	if err := checkAmount(call.Most); err != nil {
		return "", err
	}
	id, call.At = newID(), made(call.At)
	var refused error
	err = s.write(ctx, func(q session) error {
		ofTask, ofDay, err := charge(ctx, q, call.Task, call.At, call.Most)
		if err != nil {
			return err
		}
		if call.Task != "" {
			ofTask = less(ofTask, call.Most)
		}
		refused = admit(ofTask, less(ofDay, call.Most))
		if refused != nil {
			return refused // and take back what was charged
		}
		_, err = q.exec(ctx, `INSERT INTO calls (id, task, generation, at, tokens, money) VALUES (`+listOf(6)+`)`,
			id, sql.NullString{String: string(call.Task), Valid: call.Task != ""}, call.Generation, call.At.UnixMicro(),
			call.Most.Tokens, call.Most.Money)
		if q.dialect.Classify(err) == MissingReference {
			return task.Errorf(task.NotFound, "there is no task %s", call.Task)
		}
		return err
	})
	if refused != nil {
		return "", refused
	}
	return orNothing(id, err)
}

func less(a, b store.Amount) store.Amount {
	return store.Amount{Tokens: a.Tokens - b.Tokens, Money: a.Money - b.Money}
}

func checkAmount(amount store.Amount) error {
	if amount.Tokens < 0 || amount.Money < 0 {
		return task.Errorf(task.Invalid, "a call cannot use less than nothing")
	}
	return nil
}

func scanCall(r row) (c store.Call, err error) {
	var id sql.NullString
	err = r.Scan(&id, &c.Generation, micros{&c.At}, &c.Most.Tokens, &c.Most.Money)
	c.Task = task.ID(id.String)
	return c, err
}

// SettleSpend implements store.Spending.
func (s *Store) SettleSpend(ctx context.Context, id string, used store.Amount) error {
	if err := checkAmount(used); err != nil {
		return err
	}
	return s.write(ctx, func(q session) error {
		call, found, err := first(ctx, q, scanCall, `SELECT task, generation, at, tokens, money FROM calls WHERE id = ? `+q.dialect.LockRows, id)
		if err != nil {
			return err
		}
		if !found {
			return task.Errorf(task.NotFound, "there is no reserved call %s", id)
		}
		if _, _, err := charge(ctx, q, call.Task, call.At, less(used, call.Most)); err != nil {
			return err
		}
		_, err = q.exec(ctx, `UPDATE calls SET tokens = ?, money = ? WHERE id = ?`, used.Tokens, used.Money, id)
		return err
	})
}

// Spent implements store.Spending.
func (s *Store) Spent(ctx context.Context, id task.ID, at time.Time) (ofTask, ofDay store.Amount, err error) {
	by, on := taskPurse(id), dayPurse(made(at))
	names := arguments([]string{by.tokens(), by.money(), on.tokens(), on.money()})
	found, err := all(ctx, s, scanCounted, `SELECT name, value FROM counters WHERE name IN (`+listOf(len(names))+`)`, names...)
	values := make(map[string]int64, len(found))
	for _, c := range found {
		values[c.name] = c.value
	}
	return by.amount(values), on.amount(values), err
}

// SpentFor implements store.Spending.
func (s *Store) SpentFor(ctx context.Context, id string) (task.ID, error) {
	return find(ctx, s, task.Errorf(task.NotFound, "there is no reservation %s", id), func(r row) (owner task.ID, err error) {
		err = r.Scan(&owner)
		return owner, err
	}, `SELECT COALESCE(task, '') FROM calls WHERE id = ?`, id)
}
