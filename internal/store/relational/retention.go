package relational

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// byAge says which rows of a table go by their age alone.
type byAge struct {
	table string
	key   string // its primary key
	order string // in which they go, for the index on their age; empty for that of the key
	old   string // the condition; its one argument is the time
	size  string // bytes of a row
	// refer are columns of other tables that refer to the row and go with it.
	refer []reference
}

type reference struct{ table, column string }

// agedRows are the tables of what goes by its age.
var agedRows = map[store.Kept][]byAge{
	store.KeptCalls: {{table: "calls", key: "id", old: `at < ?`, size: `100`}},
	store.KeptStatistics: {
		{table: "runs", key: "task, generation", order: "ended_at", old: fmt.Sprintf(`ended_at > %d AND ended_at < ?`, never), size: `150`},
		{table: "opened_pulls", key: "task", order: "opened_at", old: `opened_at < ?`, size: `150`},
		{table: "counted_days", key: "forge, repository, day, name, bucket", order: "day", old: fmt.Sprintf(`day < ? / %d`, dayMicros), size: `80`},
		{table: "spent_days", key: "day, forge, repository", old: fmt.Sprintf(`day < ? / %d`, dayMicros), size: `80`},
	},
	store.KeptAudit:      {{table: "audit", key: "id", old: `at < ?`, size: `LENGTH(id) + LENGTH(actor) + LENGTH(action) + LENGTH(subject) + LENGTH(outcome) + 8`}},
	store.KeptDeliveries: {{table: "deliveries", key: "forge, id", old: `at < ?`, size: `LENGTH(forge) + LENGTH(id) + LENGTH(subject) + LENGTH(event) + 8`}},
	store.KeptAnswers:    {{table: "forge_answers", key: "name", old: `stored_at < ?`, size: `LENGTH(name) + LENGTH(header) + LENGTH(body)`}},
	store.KeptSessions:   {{table: "sessions", key: "hash", old: `expires_at < ?`, size: `LENGTH(hash) + LENGTH(folded) + 16`}},
	store.KeptEnrolments: {{table: "enrolments", key: "hash", old: `expires_at < ?`, size: `LENGTH(hash) + 24`}},
	store.KeptSent: {{
		table: "sent", key: "answer", size: `LENGTH(request)`,
		old: `EXISTS (SELECT 1 FROM messages WHERE messages.id = sent.answer AND messages.created_at < ?)`,
	}},
	store.KeptTokens: {{
		table: "tokens", key: "id", size: `LENGTH(id) + LENGTH(name) + LENGTH(hash) + 24`,
		old:   fmt.Sprintf(`revoked_at <> %d AND revoked_at < ?`, never),
		refer: []reference{{"sightings", "token"}, {"agent_names", "token"}},
	}},
}

// Prune implements store.Retention.
func (s *Store) Prune(ctx context.Context, what store.Kept, before time.Time, limit int) (removed int, more bool, err error) {
	if limit < 1 {
		return 0, false, task.Errorf(task.Invalid, "a step removes at least one row, not %d", limit)
	}
	err = s.write(ctx, func(q session) (err error) {
		switch what {
		case store.KeptJournals:
			removed, more, err = trimStep(ctx, q, before, limit)
		case store.KeptGit:
			removed, more, err = pruneRefs(ctx, q, before)
		default:
			removed, more, err = pruneAged(ctx, q, what, before, limit)
		}
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return removed, more, nil
}

func pruneAged(ctx context.Context, q session, what store.Kept, before time.Time, limit int) (removed int, more bool, err error) {
	tables, known := agedRows[what]
	if !known {
		return 0, false, task.Errorf(task.Invalid, "nothing is kept as %q", string(what))
	}
	for _, rows := range tables {
		n, err := pruneTable(ctx, q, rows, before, limit-removed)
		removed += n
		if err != nil || removed >= limit {
			return removed, true, err
		}
	}
	if what == store.KeptCalls {
		err = pruneDays(ctx, q, before)
	}
	return removed, false, err
}

// pruneTable removes no more rows than the limit.
func pruneTable(ctx context.Context, q session, rows byAge, before time.Time, limit int) (int, error) {
	some := `SELECT ` + rows.key + ` FROM ` + rows.table + ` WHERE ` + rows.old + ` ORDER BY ` + cmp.Or(rows.order, rows.key) + ` LIMIT ?`
	for _, of := range rows.refer {
		if _, err := q.exec(ctx, `DELETE FROM `+of.table+` WHERE `+of.column+` IN (`+some+`)`, before.UnixMicro(), limit); err != nil {
			return 0, err
		}
	}
	n, err := q.exec(ctx, `DELETE FROM `+rows.table+` WHERE (`+rows.key+`) IN (`+some+`)`, before.UnixMicro(), limit)
	return int(n), err
}

// pruneDays removes the sums of the days before a time. A day's sum is asked for on that day.
func pruneDays(ctx context.Context, q session, before time.Time) error {
	day := before.UTC().Format(time.DateOnly)
	// The range is for the index; the order of a database need not be that of the bytes.
	_, err := q.exec(ctx, `DELETE FROM counters WHERE name >= ? AND name < ? AND SUBSTR(name, 1, ?) = ? AND SUBSTR(name, ?, 10) < ?`,
		spentOn, spentOn+day, len(spentOn), spentOn, len(spentOn)+1, day)
	return err
}

// endedBefore is the condition for tasks that ended before a time.
const endedBefore = `state IN ('done', 'failed', 'stopped') AND updated_at < ?`

// unpromised is the condition for tasks of which nobody was told that their work can still be fetched.
func unpromised(dialect *Dialect) string { return ` AND kept_until < ` + dialect.Now }

// pruneRefs removes what one task has in git, whole: a pack stands on those before it. The
// task is locked, so that one that begins again at this moment loses nothing. What was promised
// for longer stays.
func pruneRefs(ctx context.Context, q session, before time.Time) (removed int, more bool, err error) {
	t, found, err := first(ctx, q, scanTaskRow, `SELECT `+taskColumns+` FROM tasks WHERE `+endedBefore+unpromised(q.dialect)+`
		AND id IN (SELECT task FROM kept_refs) ORDER BY id LIMIT 1 `+q.dialect.LockRows, before.UnixMicro())
	if err != nil || !found {
		return 0, false, err
	}
	n, err := q.exec(ctx, `DELETE FROM kept_refs WHERE task = ?`, t.ID)
	return int(n), true, err
}

// trimStep trims one task that ended before the time, or a part of it, and when there is none
// the texts of old writes that belong to no task. The task is locked, so that it does not
// begin again meanwhile.
func trimStep(ctx context.Context, q session, before time.Time, limit int) (removed int, more bool, err error) {
	t, found, err := first(ctx, q, scanTaskRow, `SELECT `+taskColumns+` FROM tasks WHERE `+endedBefore+`
		AND trimmed < generation ORDER BY updated_at LIMIT 1 `+q.dialect.LockRows, before.UnixMicro())
	if err != nil {
		return 0, false, err
	}
	if !found {
		n, err := emptyWrites(ctx, q, before, limit)
		return n, n == limit, err
	}
	removed, err = trimTask(ctx, q, t, limit)
	return removed, true, err
}

// trimTask removes about so many rows of what runs of a task wrote and were told. When
// nothing is left, the task counts as trimmed. What is done is in an order that can be cut off
// and begun again.
func trimTask(ctx context.Context, q session, t taskRow, limit int) (removed int, err error) {
	n, err := trimEvents(ctx, q, t, limit)
	if err != nil || n == limit {
		return n, err
	}
	removed = n
	for _, trim := range []func(context.Context, session, task.ID, int) (int, error){trimComments, trimWrites} {
		room := limit - removed
		if room < 1 {
			return removed, nil
		}
		n, err := trim(ctx, q, t.ID, room)
		removed += n
		if err != nil || n >= room {
			return removed, err
		}
	}
	ended, err := q.exec(ctx, `DELETE FROM ended_runs WHERE task = ?`, t.ID)
	if err != nil {
		return 0, err
	}
	_, err = q.exec(ctx, `UPDATE tasks SET trimmed = generation, detail = '', hint = '' WHERE id = ?`, t.ID)
	return removed + int(ended), err
}

// trimEvents removes the oldest entries of a task, except for its moves. First it notes what
// they say of comments.
func trimEvents(ctx context.Context, q session, t taskRow, limit int) (int, error) {
	type entry struct {
		position int64
		signal   string
	}
	old, err := list(ctx, q, func(r row) (e entry, err error) {
		err = r.Scan(&e.position, &e.signal)
		return e, err
	}, `SELECT position, CASE WHEN kind = ? AND source = ? AND generation >= ? THEN data ELSE '' END FROM events
		WHERE task = ? AND kind <> ? ORDER BY position LIMIT ?`,
		task.SignalTaken, task.FromAgent, t.FirstGeneration, t.ID, task.StateChanged, limit)
	if err != nil || len(old) == 0 {
		return 0, err
	}
	var signals []string
	for _, e := range old {
		if e.signal != "" {
			signals = append(signals, e.signal)
		}
	}
	if err := keepTakenUp(ctx, q, t.ID, signals); err != nil {
		return 0, err
	}
	n, err := q.exec(ctx, `DELETE FROM events WHERE task = ? AND kind <> ? AND position <= ?`, t.ID, task.StateChanged, old[len(old)-1].position)
	return int(n), err
}

// keepTakenUp notes up to where the runs of a task have taken up comments, before the entries
// go that say so: a comment that was dealt with must not be taken for a new one.
func keepTakenUp(ctx context.Context, q session, id task.ID, signals []string) error {
	var taken int64
	for _, data := range signals {
		var entry struct {
			Signal struct {
				Position int64 `json:"position"`
			} `json:"signal"`
		}
		if json.Unmarshal([]byte(data), &entry) == nil { // an agent may write what it likes
			taken = max(taken, entry.Signal.Position)
		}
	}
	if taken == 0 {
		return nil
	}
	_, err := q.exec(ctx, `INSERT INTO comment_starts (task, start) VALUES (?, ?)
		ON CONFLICT (task) DO UPDATE SET start = CASE WHEN excluded.start > comment_starts.start THEN excluded.start ELSE comment_starts.start END`, id, taken)
	return err
}

// trimComments leaves of each comment its last version, as a hash by which it is known again.
func trimComments(ctx context.Context, q session, id task.ID, limit int) (int, error) {
	superseded, err := q.exec(ctx, `DELETE FROM comment_log WHERE task = ? AND position IN
		(SELECT position FROM comment_log WHERE task = ? AND position NOT IN
		(SELECT MAX(position) FROM comment_log WHERE task = ? GROUP BY kind, comment) ORDER BY position LIMIT ?)`, id, id, id, limit)
	if err != nil || int(superseded) >= limit {
		return int(superseded), err
	}
	type version struct {
		position int64
		body     string
	}
	versions, err := list(ctx, q, func(r row) (v version, err error) {
		err = r.Scan(&v.position, &v.body)
		return v, err
	}, `SELECT position, body FROM comment_log WHERE task = ? AND NOT (`+isMark+`) ORDER BY position LIMIT ?`, id, limit-int(superseded))
	if err != nil {
		return 0, err
	}
	for _, v := range versions {
		_, err := q.exec(ctx, `UPDATE comment_log SET body = ?, about = '', previous = '' WHERE task = ? AND position = ?`,
			task.MarkOf(v.body), id, v.position)
		if err != nil {
			return 0, err
		}
	}
	return int(superseded) + len(versions), nil
}

// isMark is the condition for what [task.MarkOf] returns. Anybody can begin a comment with
// [task.TextMark].
var isMark = fmt.Sprintf(`LENGTH(body) = %d AND SUBSTR(body, 1, %d) = '%s' AND TRIM(SUBSTR(body, %d), '0123456789abcdef') = ''`,
	len(task.MarkOf("")), len(task.TextMark), task.TextMark, len(task.TextMark)+1)

// trimWrites empties the writes that are texts, and then removes those that were replaced
// while runs worked: SQLite merges pages that have become empty only when rows are deleted.
// The others stay: their keys and results say what was done.
func trimWrites(ctx context.Context, q session, id task.ID, limit int) (int, error) {
	texts := append([]any{id}, arguments(store.TextKinds)...)
	emptied, err := q.exec(ctx, `UPDATE actions SET payload = '' WHERE id IN (SELECT id FROM actions WHERE task = ? AND status <> 'pending'
		AND payload <> '' AND kind IN (`+listOf(len(store.TextKinds))+`) ORDER BY id LIMIT ?)`, append(texts, limit)...)
	if err != nil {
		return 0, err
	}
	passing := append([]any{id, store.Replaced}, arguments(store.PassingKinds)...)
	gone, err := q.exec(ctx, `DELETE FROM actions WHERE id IN (SELECT id FROM actions WHERE task = ? AND status <> 'pending'
		AND (status = ? OR kind IN (`+listOf(len(store.PassingKinds))+`)) ORDER BY id LIMIT ?)`, append(passing, limit)...)
	return int(gone + emptied), err
}

// emptyWrites empties writes that belong to no task and were put before the time.
func emptyWrites(ctx context.Context, q session, before time.Time, limit int) (int, error) {
	args := append([]any{idAt(before)}, arguments(store.TextKinds)...)
	n, err := q.exec(ctx, `UPDATE actions SET payload = '' WHERE id IN (SELECT id FROM actions WHERE `+oldTexts+` ORDER BY id LIMIT ?)`, append(args, limit)...)
	return int(n), err
}

var oldTexts = `task IS NULL AND payload <> '' AND status <> 'pending' AND id < ? AND kind IN (` + listOf(len(store.TextKinds)) + `)`

// idAt is what ids that were made before the time are less than: they begin with the
// milliseconds since 1970.
func idAt(at time.Time) string {
	digits := fmt.Sprintf("%012x", max(at.UnixMilli(), 0))
	return digits[:8] + "-" + digits[8:]
}

// Prunable implements store.Retention.
func (s *Store) Prunable(ctx context.Context, what store.Kept, before time.Time) (extent store.Extent, err error) {
	type query struct {
		text string
		args []any
	}
	var queries []query
	at := before.UnixMicro()
	count := func(size, from string, args ...any) {
		queries = append(queries, query{`SELECT COUNT(*), CAST(COALESCE(SUM(` + size + `), 0) AS BIGINT) FROM ` + from, args})
	}
	tables, aged := agedRows[what]
	switch {
	case what == store.KeptJournals:
		const ended = `task IN (SELECT id FROM tasks WHERE ` + endedBefore + ` AND trimmed < generation)`
		count(`LENGTH(data)`, `events WHERE kind <> ? AND `+ended, task.StateChanged, at)
		count(`LENGTH(body) + LENGTH(previous)`, `comment_log WHERE `+ended, at)
		texts := arguments(slices.Concat(store.TextKinds, store.PassingKinds))
		count(`LENGTH(payload)`, `actions WHERE `+ended+` AND payload <> '' AND kind IN (`+listOf(len(texts))+`)`, append([]any{at}, texts...)...)
		count(`LENGTH(payload)`, `actions WHERE `+oldTexts, append([]any{idAt(before)}, arguments(store.TextKinds)...)...)
	case what == store.KeptGit:
		count(`size`, `kept_refs WHERE task IN (SELECT id FROM tasks WHERE `+endedBefore+unpromised(s.dialect)+`)`, at)
	case aged:
		for _, rows := range tables {
			count(rows.size, rows.table+` WHERE `+rows.old, at)
		}
	default:
		return store.Extent{}, task.Errorf(task.Invalid, "nothing is kept as %q", string(what))
	}
	err = s.snapshot(ctx, func(q session) error {
		extent = store.Extent{}
		for _, one := range queries {
			found, _, err := first(ctx, q, scanExtent, one.text, one.args...)
			if err != nil {
				return err
			}
			extent.Rows += found.Rows
			extent.Bytes += found.Bytes
		}
		return nil
	})
	return orNothing(extent, err)
}

func scanExtent(r row) (e store.Extent, err error) {
	err = r.Scan(&e.Rows, &e.Bytes)
	return e, err
}

// TableSizes implements store.Retention.
func (s *Store) TableSizes(ctx context.Context) (sizes []store.TableSize, err error) {
	sizes, err = all(ctx, s, func(r row) (t store.TableSize, err error) {
		err = r.Scan(&t.Name, &t.Bytes)
		return t, err
	}, s.dialect.TableBytes)
	if err != nil {
		return nil, err
	}
	own, err := ownTables()
	if err != nil {
		return nil, err
	}
	sizes = slices.DeleteFunc(sizes, func(t store.TableSize) bool { return !own[t.Name] }) // we may not be allowed to read them
	for i := range sizes {
		rows, err := all(ctx, s, scanNumber, `SELECT COUNT(*) FROM "`+sizes[i].Name+`"`)
		if err != nil {
			return nil, err
		}
		sizes[i].Rows = rows[0]
	}
	slices.SortFunc(sizes, func(a, b store.TableSize) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return sizes, nil
}
