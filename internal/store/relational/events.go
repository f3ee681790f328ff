package relational

import (
	"context"
	"slices"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// numbering is what counts sequences on its own: a source in a generation.
type numbering struct {
	generation int64
	source     task.EventSource
}

// Append implements store.Events.
func (s *Store) Append(ctx context.Context, events []task.Event) (added int, err error) {
	if len(events) == 0 {
		return 0, nil
	}
	for _, e := range events {
		if err := checkEvent(e, events[0].Task); err != nil {
			return 0, err
		}
	}
	err = s.write(ctx, func(q session) error {
		last, err := countOne(ctx, q, eventCounter(events[0].Task), int64(len(events)))
		if err != nil {
			return err
		}
		if err := checkNotOver(ctx, q, events); err != nil {
			return err
		}
		added, err = addEvents(ctx, q, last, events)
		return err
	})
	if err != nil {
		return 0, err
	}
	return added, nil
}

// checkNotOver refuses entries of a run before the last one: whoever writes may be late, such as
// a server that was stopped for a while and goes on as if nothing had happened. It is called when
// this transaction has counted the entries: from then on no next run can begin before it has
// ended, because the first entry of that run needs the same counter. A lock of the task would
// make it look claimed.
func checkNotOver(ctx context.Context, q session, events []task.Event) error {
	id := events[0].Task
	current, exists, err := first(ctx, q, scanNumber, `SELECT generation FROM tasks WHERE id = ?`, id)
	if err != nil {
		return err
	}
	if !exists {
		return noTask(id)
	}
	for _, e := range events {
		if e.Generation < current {
			return staleError(id, e.Generation, current)
		}
	}
	return nil
}

func checkEvent(e task.Event, id task.ID) error {
	if e.Task != id {
		return task.Errorf(task.Invalid, "events of the tasks %s and %s cannot be appended together", id, e.Task)
	}
	if e.Source != task.FromServer && e.Source != task.FromAgent {
		return task.Errorf(task.Invalid, "unknown source %q of an event; it is server or agent", string(e.Source))
	}
	if e.Generation < 1 || e.Sequence < 0 || e.Kind == "" {
		return task.Errorf(task.Invalid, "an event needs a generation, a sequence and a kind; it has %d, %d and %q", e.Generation, e.Sequence, string(e.Kind))
	}
	return checkJSON("data of an event", e.Data)
}

// appendEvents adds to the journal of a task.
func appendEvents(ctx context.Context, q session, id task.ID, events []task.Event) error {
	last, err := countOne(ctx, q, eventCounter(id), int64(len(events)))
	if err == nil {
		_, err = addEvents(ctx, q, last, events)
	}
	return err
}

// addEvents adds entries that have been counted; last is the position of the last one. The journal
// is this transaction's alone.
func addEvents(ctx context.Context, q session, last int64, events []task.Event) (int, error) {
	id := events[0].Task
	fresh, err := freshEvents(ctx, q, id, events)
	if err != nil {
		return 0, err
	}
	if known := len(events) - len(fresh); known > 0 {
		if _, err := countOne(ctx, q, eventCounter(id), -int64(known)); err != nil {
			return 0, err
		}
	}
	return len(fresh), insertEvents(ctx, q, last-int64(len(events)), fresh)
}

// freshEvents leaves out what is there already and numbers what has no sequence.
func freshEvents(ctx context.Context, q session, id task.ID, events []task.Event) ([]task.Event, error) {
	groups := map[numbering][]int64{}
	unnumbered := map[numbering]bool{}
	for _, e := range events {
		group := numbering{e.Generation, e.Source}
		if e.Sequence == 0 {
			unnumbered[group] = true
		} else {
			groups[group] = append(groups[group], e.Sequence)
		}
	}
	known := map[numbering]map[int64]bool{}
	greatest := map[numbering]int64{}
	for group, sequences := range groups {
		var err error
		if known[group], err = knownSequences(ctx, q, id, group, sequences); err != nil {
			return nil, err
		}
	}
	for group := range unnumbered {
		last, err := lastSequence(ctx, q, id, group)
		if err != nil {
			return nil, err
		}
		for _, sequence := range groups[group] {
			last = max(last, sequence)
		}
		greatest[group] = last
	}
	var fresh []task.Event
	for _, e := range events {
		group := numbering{e.Generation, e.Source}
		switch {
		case e.Sequence == 0:
			greatest[group]++
			e.Sequence = greatest[group]
		case known[group][e.Sequence]:
			continue
		default:
			known[group][e.Sequence] = true
		}
		fresh = append(fresh, e)
	}
	return fresh, nil
}

func knownSequences(ctx context.Context, q session, id task.ID, group numbering, sequences []int64) (map[int64]bool, error) {
	known := map[int64]bool{}
	for _, some := range chunks(sequences) {
		args := append([]any{id, group.generation, group.source}, arguments(some)...)
		found, err := list(ctx, q, scanNumber, `SELECT sequence FROM events
			WHERE task = ? AND generation = ? AND source = ? AND sequence IN (`+listOf(len(some))+`)`, args...)
		if err != nil {
			return nil, err
		}
		for _, sequence := range found {
			known[sequence] = true
		}
	}
	return known, nil
}

var addedEvents = newTable(`added`, `task TEXT, generation BIGINT, source TEXT, sequence BIGINT, position BIGINT, kind TEXT, at BIGINT, data TEXT`)

func insertEvents(ctx context.Context, q session, last int64, events []task.Event) error {
	return execRows(ctx, q, addedEvents, events, func(e task.Event) []any {
		last++
		return []any{e.Task, e.Generation, e.Source, e.Sequence, last, e.Kind, made(e.At).UnixMicro(), string(e.Data)}
	}, `WITH {rows} INSERT INTO events (`+eventColumns+`) SELECT `+eventColumns+` FROM added`)
}

// EventsAfter implements store.Events.
func (s *Store) EventsAfter(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	return s.pageOfEvents(ctx, limit, `SELECT `+eventColumns+` FROM events WHERE task = ? AND position > ? ORDER BY position`, id, position)
}

// EventsOfAfter implements store.Events.
func (s *Store) EventsOfAfter(ctx context.Context, id task.ID, position int64, limit int, kinds ...task.EventKind) ([]task.Event, error) {
	if err := checkLimit(limit); err != nil || len(kinds) == 0 {
		return nil, err
	}
	return s.pageOfEvents(ctx, limit, `SELECT `+eventColumns+` FROM events
		WHERE task = ? AND position > ? AND kind IN (`+listOf(len(kinds))+`) ORDER BY position`, append([]any{id, position}, arguments(kinds)...)...)
}

// pageOfEvents returns so many of the events that a query finds, and no more than [store.MaxEventBytes] of
// them; all for 0.
func (s *Store) pageOfEvents(ctx context.Context, limit int, query string, args ...any) ([]task.Event, error) {
	query, args = limited(query, args, limit)
	if limit == 0 {
		return all(ctx, s, scanEvent, query, args...)
	}
	var page []task.Event
	err := s.read(ctx, func(q session) (err error) {
		page, err = listWhile(ctx, q, scanEvent, fitsInto(store.MaxEventBytes), query, args...)
		return err
	})
	return orNothing(page, err)
}

// fitsInto says of one event after the other whether it fits into so many bytes with those before it.
// The first always does.
func fitsInto(most int) func(task.Event) bool {
	size, first := 0, true
	return func(e task.Event) bool {
		size += len(e.Data)
		fits := first || size <= most
		first = false
		return fits
	}
}

// EventsBefore implements store.Events.
func (s *Store) EventsBefore(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	page, err := s.pageOfEvents(ctx, limit, `SELECT `+eventColumns+` FROM events
		WHERE task = ? AND position < ? ORDER BY position DESC`, id, position)
	slices.Reverse(page)
	return page, err
}

// LastFrom implements store.Events.
func (s *Store) LastFrom(ctx context.Context, id task.ID, source task.EventSource) (task.Event, error) {
	missing := task.Errorf(task.NotFound, "the journal of task %s has no entry of the %s", id, source)
	return find(ctx, s, missing, scanEvent, `SELECT `+eventColumns+` FROM events
		WHERE task = ? AND source = ? ORDER BY position DESC LIMIT 1`, id, source)
}

func scanEvent(r row) (e task.Event, err error) {
	var data string
	err = r.Scan(&e.Task, &e.Generation, &e.Source, &e.Sequence, &e.Position, &e.Kind, micros{&e.At}, &data)
	e.Data = rawJSON(data)
	return e, err
}

// EventsOf implements store.Events.
func (s *Store) EventsOf(ctx context.Context, id task.ID, kinds ...task.EventKind) ([]task.Event, error) {
	if len(kinds) == 0 {
		return nil, nil
	}
	return all(ctx, s, scanEvent, `SELECT task, generation, source, sequence, position, kind, at, data FROM events
		WHERE task = ? AND kind IN (`+listOf(len(kinds))+`) ORDER BY position`, append([]any{id}, arguments(kinds)...)...)
}

// LastPosition implements store.Events.
func (s *Store) LastPosition(ctx context.Context, id task.ID) (last int64, err error) {
	err = s.read(ctx, func(q session) error {
		last, _, err = first(ctx, q, scanNumber, `SELECT COALESCE(MAX(position), 0) FROM events WHERE task = ?`, id)
		return err
	})
	return last, err
}

// LastSequence implements store.Events.
func (s *Store) LastSequence(ctx context.Context, id task.ID, generation int64, source task.EventSource) (last int64, err error) {
	err = s.read(ctx, func(q session) error {
		last, err = lastSequence(ctx, q, id, numbering{generation, source})
		return err
	})
	return last, err
}

func lastSequence(ctx context.Context, q session, id task.ID, group numbering) (int64, error) {
	last, _, err := first(ctx, q, scanNumber, `SELECT COALESCE(MAX(sequence), 0) FROM events
		WHERE task = ? AND generation = ? AND source = ?`, id, group.generation, group.source)
	return last, err
}
