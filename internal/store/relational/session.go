package relational

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/store"
)

// session runs statements, inside a transaction or outside of one.
type session struct {
	run interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
	dialect *Dialect
	notices *[]store.Notice // that go out with the transaction; nil outside of one
	counts  *counts
}

// notify sends a notice with the transaction.
func (q session) notify(topic store.Topic, subject string) {
	if q.notices != nil {
		*q.notices = append(*q.notices, store.Notice{Topic: topic, Subject: subject})
	}
}

// exec runs a statement and returns how many rows it touched.
func (q session) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	values, err := bind(args)
	if err != nil {
		return 0, err
	}
	q.counts.statements.Add(1)
	result, err := q.run.ExecContext(ctx, q.dialect.rebind(statement), values...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", opening(statement), err)
	}
	return result.RowsAffected()
}

// row is what can be scanned.
type row interface{ Scan(into ...any) error }

// list runs a query and returns what scan makes of each row.
func list[T any](ctx context.Context, q session, scan func(row) (T, error), query string, args ...any) ([]T, error) {
	return listWhile(ctx, q, scan, func(T) bool { return true }, query, args...)
}

// listWhile does the same until a row does not fit, which it leaves out.
func listWhile[T any](ctx context.Context, q session, scan func(row) (T, error), fits func(T) bool, query string, args ...any) ([]T, error) {
	values, err := bind(args)
	if err != nil {
		return nil, err
	}
	q.counts.statements.Add(1)
	rows, err := q.run.QueryContext(ctx, q.dialect.rebind(query), values...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", opening(query), err)
	}
	defer func() { _ = rows.Close() }() // rows.Err has what matters
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", opening(query), err)
		}
		if !fits(one) {
			break
		}
		all = append(all, one)
	}
	q.counts.rows.Add(int64(len(all)))
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", opening(query), err)
	}
	return all, nil
}

// first runs a query that finds one row or none.
func first[T any](ctx context.Context, q session, scan func(row) (T, error), query string, args ...any) (one T, found bool, err error) {
	all, err := list(ctx, q, scan, query, args...)
	if err != nil || len(all) == 0 {
		return one, false, err
	}
	return all[0], true, nil
}

func scanNumber(r row) (n int64, err error) {
	err = r.Scan(&n)
	return n, err
}

func scanText(r row) (text string, err error) {
	err = r.Scan(&text)
	return text, err
}

// opening is the first line of a statement, which names it well enough.
func opening(statement string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(statement), "\n")
	return line
}

// bind makes arguments what both drivers take, and refuses text that one of them
// would not keep.
func bind(args []any) ([]any, error) {
	values := make([]any, len(args))
	for i, arg := range args {
		switch arg.(type) {
		case []string, []int64: // of a table, whose texts were looked at
			values[i] = arg
			continue
		}
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		if text, ok := value.(string); ok {
			if err := checkText(text); err != nil {
				return nil, err
			}
		}
		values[i] = value
	}
	return values, nil
}

// arguments turns a list into the arguments of a statement.
func arguments[T any](all []T) []any {
	args := make([]any, len(all))
	for i, one := range all {
		args[i] = one
	}
	return args
}

// find returns the one row that a query is about, or the error that says that it
// is not there.
func find[T any](ctx context.Context, s *Store, missing error, scan func(row) (T, error), query string, args ...any) (one T, err error) {
	err = s.read(ctx, func(q session) error {
		var found bool
		one, found, err = first(ctx, q, scan, query, args...)
		if err == nil && !found {
			err = missing
		}
		return err
	})
	return orNothing(one, err)
}

// all returns every row of a query.
func all[T any](ctx context.Context, s *Store, scan func(row) (T, error), query string, args ...any) (rows []T, err error) {
	err = s.read(ctx, func(q session) error {
		rows, err = list(ctx, q, scan, query, args...)
		return err
	})
	return orNothing(rows, err)
}
