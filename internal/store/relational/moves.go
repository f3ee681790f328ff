package relational

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// move is one task's change of state.
type move struct {
	before  task.Task
	after   taskRow
	trigger task.Trigger
	effects store.Effects // the forge writes that it causes; nil for none
	entries []task.Event  // what goes into the journal before it; the store numbers them
}

// make applies the trigger to what comes after.
func (m *move) make(reason task.Reason, at time.Time) error {
	if _, err := m.after.Apply(m.trigger, reason); err != nil {
		return err
	}
	m.after.Detail, m.after.Hint = "", "" // they were about the state before
	if m.after.Lease == (task.Lease{}) {
		m.after.token, m.after.process = "", ""
	}
	m.after.UpdatedAt = at
	return nil
}

// begin sees to it that a generation that begins is at least the floor, which is above all that were
// handed out before the database was restored from a backup. A new task has an id that nobody had before.
func (m *move) begin(floor func() (int64, error)) error {
	if !m.begins() {
		return nil
	}
	least, err := floor()
	m.after.Generation = max(m.after.Generation, least)
	return err
}

// begins tests whether a generation begins that is not the first one.
func (m *move) begins() bool {
	return m.before.Generation != 0 && m.before.Generation != m.after.Generation
}

// record writes down what goes with moves whose tasks are stored: their events,
// the forge writes that they cause, and the end of the writes of runs that they
// ended. There are few statements, whatever the number of moves. Last comes what is
// counted of them.
func record(ctx context.Context, q session, moves []move) error {
	for _, m := range moves {
		topic := store.TasksChanged
		if m.trigger == task.Claimed {
			topic = store.WaitsChanged
		}
		q.notify(topic, string(m.after.ID))
	}
	if err := recordEvents(ctx, q, moves); err != nil {
		return err
	}
	var actions []store.Action
	current := make(map[task.ID]int64, len(moves))
	for _, m := range moves {
		current[m.after.ID] = m.after.Generation
		if m.effects != nil {
			actions = append(actions, m.effects(m.before, m.after.Task)...)
		}
	}
	if _, err := putActions(ctx, q, actions, current); err != nil {
		return err
	}
	if err := endHalts(ctx, q, moves); err != nil {
		return err
	}
	if err := refuseOlder(ctx, q, moves); err != nil {
		return err
	}
	return countMoves(ctx, q, moves)
}

// moreEvents are rows of recordEvents. The entries are numbered by the store: whoever inserts
// holds the counter of the task's positions, so that the numbers are still free.
var moreEvents = newTable(`more`, `task TEXT, generation BIGINT, source TEXT, behind BIGINT, position BIGINT, kind TEXT, at BIGINT, data TEXT`)

// journalPart is what is numbered on its own, in all journals.
type journalPart struct {
	task task.ID
	numbering
}

// recordEvents writes the changes of state into the journals, and before each what goes with it.
func recordEvents(ctx context.Context, q session, moves []move) error {
	more := make(map[string]int64, len(moves))
	var all []task.Event
	for _, m := range moves {
		data, err := json.Marshal(task.StateChange{
			Trigger: m.trigger, From: m.before.State, To: m.after.State, Reason: m.after.Reason,
		})
		if err != nil {
			return fmt.Errorf("state change of task %s: %w", m.after.ID, err)
		}
		more[eventCounter(m.after.ID)] += int64(len(m.entries)) + 1
		all = append(append(all, m.entries...), task.Event{
			Task: m.after.ID, Generation: m.after.Generation, Source: task.FromServer, Kind: task.StateChanged, At: m.after.UpdatedAt, Data: data,
		})
	}
	last, err := count(ctx, q, more)
	if err != nil {
		return err
	}
	for _, some := range pieces(q.dialect, all) {
		behind := map[journalPart]int64{} // how many come behind the last one that is stored
		err := execRows(ctx, q, moreEvents, some, func(e task.Event) []any {
			counter, part := eventCounter(e.Task), journalPart{e.Task, numbering{e.Generation, e.Source}}
			more[counter]--
			behind[part]++
			return []any{e.Task, e.Generation, e.Source, behind[part], last[counter] - more[counter], e.Kind, made(e.At).UnixMicro(), string(e.Data)}
		}, `WITH {rows} INSERT INTO events (`+eventColumns+`)
			SELECT task, generation, source, behind + (SELECT COALESCE(MAX(sequence), 0) FROM events
				WHERE events.task = more.task AND events.generation = more.generation AND events.source = more.source), position, kind, at, data
			FROM more`)
		if err != nil {
			return err
		}
	}
	return nil
}
