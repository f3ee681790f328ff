package relational

import (
	"context"
	"maps"
	"slices"
)

// eventCounter counts the positions in a task's journal.
func eventCounter[ID ~string](id ID) string { return "events " + string(id) }

// itemCounter counts the writes to an item.
func itemCounter(item string) string { return "actions " + item }

// boardCounter counts the items of a repository on the board.
func boardCounter(repository string) string { return "board " + repository }

type counted struct {
	name  string
	value int64
}

func scanCounted(r row) (c counted, err error) {
	err = r.Scan(&c.name, &c.value)
	return c, err
}

var addedCounts = newTable(`added`, `name TEXT, value BIGINT`)

// count adds to counters and returns their new values. Each stays locked until
// the transaction ends. The names are sorted, so that two transactions that want
// the same counters do not wait for each other in a circle.
func count(ctx context.Context, q session, more map[string]int64) (map[string]int64, error) {
	found, err := listRows(ctx, q, scanCounted, addedCounts, slices.Sorted(maps.Keys(more)),
		func(name string) []any { return []any{name, more[name]} },
		`WITH {rows} INSERT INTO counters (name, value) SELECT name, value FROM added WHERE 1 = 1
			ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value
			RETURNING name, value`)
	if err != nil {
		return nil, err
	}
	values := make(map[string]int64, len(found))
	for _, c := range found {
		values[c.name] = c.value
	}
	return values, nil
}

// countOne is count for a single counter.
func countOne(ctx context.Context, q session, name string, more int64) (int64, error) {
	values, err := count(ctx, q, map[string]int64{name: more})
	return values[name], err
}
