package relational

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// table is what rows look like that are given to a statement. The statement begins with WITH {rows}, and
// finds them under the name of the table.
type table struct {
	name    string
	columns string // as they are named in the statement
	kinds   []string
	row     string // of placeholders
}

// newTable makes a table of columns such as "id TEXT, generation BIGINT". There are no other types.
func newTable(name, columns string) table {
	t := table{name: name}
	var names []string
	for column := range strings.SplitSeq(columns, ",") {
		words := strings.Fields(column)
		names, t.kinds = append(names, words[0]), append(t.kinds, words[1])
	}
	t.columns = strings.Join(names, ", ")
	t.row = `(CAST(? AS ` + strings.Join(t.kinds, `), CAST(? AS `) + `))`
	return t
}

// with is the beginning of a statement that is given rows, as queries that together have all of them.
func (t table) with(query string) string { return t.name + ` (` + t.columns + `) AS (` + query + `)` }

// source is a query with its arguments.
type source struct {
	query string
	args  []any
}

// sources are queries that together have all rows. Where the engine takes lists it is one, whose text
// is always the same: a connection has it parsed and planned already.
func (t table) sources(d *Dialect, rows [][]any) ([]source, error) {
	var all []source
	for _, some := range pieces(d, rows) {
		if d.Lists {
			one, err := t.lists(some)
			return []source{one}, err
		}
		all = append(all, source{t.with(`VALUES ` + rowsOf(len(some), t.row)), slices.Concat(some...)})
	}
	return all, nil
}

// lists gives each column as one argument.
func (t table) lists(rows [][]any) (source, error) {
	args, casts := make([]any, len(t.kinds)), make([]string, len(t.kinds))
	for i, kind := range t.kinds {
		list, err := listOfKind(kind, rows, i)
		if err != nil {
			return source{}, fmt.Errorf("column %d of %s: %w", i+1, t.name, err)
		}
		args[i], casts[i] = list, `CAST(? AS `+kind+`[])`
	}
	return source{t.with(`SELECT * FROM unnest(` + strings.Join(casts, `, `) + `)`), args}, nil
}

// listOfKind is one column of rows.
func listOfKind(kind string, rows [][]any, column int) (any, error) {
	if kind == "BIGINT" {
		return gather[int64](rows, column)
	}
	texts, err := gather[string](rows, column)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		if err := checkText(text); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// gather is a column of rows as values of one type.
func gather[T any](rows [][]any, column int) ([]T, error) {
	all := make([]T, len(rows))
	for i, row := range rows {
		value, err := driver.DefaultParameterConverter.ConvertValue(row[column])
		if err != nil {
			return nil, err
		}
		one, is := value.(T)
		if !is {
			return nil, fmt.Errorf("it is %T", value)
		}
		all[i] = one
	}
	return all, nil
}

// execRows runs a statement that is given rows.
func execRows[R any](ctx context.Context, q session, t table, all []R, row func(R) []any, statement string, args ...any) error {
	sources, err := t.sources(q.dialect, rowsFrom(all, row))
	if err != nil {
		return err
	}
	for _, some := range sources {
		if _, err := q.exec(ctx, strings.Replace(statement, `{rows}`, some.query, 1), append(some.args, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// listRows runs a query that is given rows.
func listRows[R, T any](ctx context.Context, q session, scan func(row) (T, error), t table, all []R, row func(R) []any, query string, args ...any) ([]T, error) {
	sources, err := t.sources(q.dialect, rowsFrom(all, row))
	if err != nil {
		return nil, err
	}
	var found []T
	for _, some := range sources {
		more, err := list(ctx, q, scan, strings.Replace(query, `{rows}`, some.query, 1), append(some.args, args...)...)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func rowsFrom[R any](all []R, row func(R) []any) [][]any {
	rows := make([][]any, len(all))
	for i, one := range all {
		rows[i] = row(one)
	}
	return rows
}

// anyOf are conditions that together ask for all the texts, each with its arguments. It stands behind
// what is to be one of them.
func anyOf[V ~string](d *Dialect, texts []V) ([]source, error) {
	var all []source
	for _, some := range pieces(d, texts) {
		if d.Lists {
			list, err := listOfKind("TEXT", rowsFrom(some, func(text V) []any { return []any{text} }), 0)
			return []source{{` = ANY(CAST(? AS TEXT[]))`, []any{list}}}, err
		}
		all = append(all, source{` IN (` + listOf(len(some)) + `)`, arguments(some)})
	}
	return all, nil
}

// listAny runs a query for all of the texts: {any} in it stands behind what is to be one of them.
func listAny[V ~string, T any](ctx context.Context, q session, scan func(row) (T, error), texts []V, query string, args ...any) ([]T, error) {
	conditions, err := anyOf(q.dialect, texts)
	if err != nil {
		return nil, err
	}
	var found []T
	for _, some := range conditions {
		more, err := list(ctx, q, scan, strings.Replace(query, ` {any}`, some.query, 1), append(some.args, args...)...)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// askedTexts are what [listEach] asks for.
var askedTexts = newTable(`asked`, `text TEXT`)

// listEach is listAny for what an index finds for each of the texts: from follows SELECT, and has an
// order. Where a query can be run for each row of another, it is: PostgreSQL would rather read a whole
// table if that was small when the statement was planned.
func listEach[T any](ctx context.Context, q session, scan func(row) (T, error), texts []string, columns, from string) ([]T, error) {
	if !q.dialect.Lateral {
		return listAny(ctx, q, scan, texts, `SELECT `+columns+` `+from)
	}
	return listRows(ctx, q, scan, askedTexts, texts, func(text string) []any { return []any{text} },
		`WITH {rows} SELECT `+columns+` FROM asked CROSS JOIN LATERAL (SELECT * `+strings.Replace(from, ` {any}`, ` = asked.text`, 1)+`) AS found`)
}

// execAny runs a statement for all of the texts.
func execAny[V ~string](ctx context.Context, q session, texts []V, statement string, args ...any) error {
	conditions, err := anyOf(q.dialect, texts)
	if err != nil {
		return err
	}
	for _, some := range conditions {
		if _, err := q.exec(ctx, strings.Replace(statement, ` {any}`, some.query, 1), append(some.args, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// listOf writes n placeholders for an IN list.
func listOf(n int) string { return strings.Repeat(", ?", n)[2:] }

// rowsOf writes the same row of placeholders n times, for VALUES.
func rowsOf(n int, one string) string { return strings.Repeat(", "+one, n)[2:] }

// batch bounds how many rows one statement names whose values are each an argument of its own: engines
// bound how many of these it may have.
const batch = 256

// pieces cuts a list into those that one statement takes as a table.
func pieces[T any](d *Dialect, all []T) [][]T {
	if d.Lists && len(all) > 0 {
		return [][]T{all}
	}
	return chunks(all)
}

// chunks cuts a list into pieces that one statement can take. The length of each is a power of
// two: a connection keeps statements prepared by their texts, of which there are few then.
func chunks[T any](all []T) [][]T {
	var pieces [][]T
	for len(all) > 0 {
		n := min(batch, 1<<(bits.Len(uint(len(all)))-1))
		pieces = append(pieces, all[:n])
		all = all[n:]
	}
	return pieces
}
