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

// begin sees to it that a generation that begins is above all that were handed out before the
// database was restored from a backup. A new task has an id that nobody had before.
func (m *move) begin(ctx context.Context, q session) error {
	if m.before.Generation == 0 || m.before.Generation == m.after.Generation {
		return nil
	}
	floor, err := floorOf(ctx, q)
	m.after.Generation = max(m.after.Generation, floor)
	return err
}

// record writes down what goes with moves whose tasks are stored: their events,
// the forge writes that they cause, and the end of the writes of runs that they
// ended. The number of statements does not depend on the number of moves. Last comes what is
// counted of them.
func record(ctx context.Context, q session, moves []move, effects store.Effects) error {
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
	if effects != nil {
		var actions []store.Action
		for _, m := range moves {
			actions = append(actions, effects(m.before, m.after.Task)...)
		}
		if _, err := putActions(ctx, q, actions); err != nil {
			return err
		}
	}
	for _, m := range moves {
		if err := endHalts(ctx, q, m); err != nil {
			return err
		}
		if m.before.Generation == 0 || m.before.Generation == m.after.Generation {
			continue
		}
		if err := refuseOlder(ctx, q, m.after.ID, m.after.Generation); err != nil {
			return err
		}
	}
	return countMoves(ctx, q, moves)
}

// stateEvent is one row of recordEvents. The server's entries are numbered by
// the store: whoever inserts holds the counter of the task's positions, so that
// the number is still free.
const stateEvent = `(?, ?, 'server',
	(SELECT COALESCE(MAX(sequence), 0) + 1 FROM events WHERE task = ? AND generation = ? AND source = 'server'),
	?, 'state', ?, ?)`

func recordEvents(ctx context.Context, q session, moves []move) error {
	more := make(map[string]int64, len(moves))
	for _, m := range moves {
		more[eventCounter(m.after.ID)] = 1
	}
	positions, err := count(ctx, q, more)
	if err != nil {
		return err
	}
	for _, some := range chunks(moves) {
		args := make([]any, 0, 7*len(some))
		for _, m := range some {
			data, err := json.Marshal(task.StateChange{
				Trigger: m.trigger, From: m.before.State, To: m.after.State, Reason: m.after.Reason,
			})
			if err != nil {
				return fmt.Errorf("state change of task %s: %w", m.after.ID, err)
			}
			args = append(args, m.after.ID, m.after.Generation, m.after.ID, m.after.Generation,
				positions[eventCounter(m.after.ID)], m.after.UpdatedAt.UnixMicro(), string(data))
		}
		_, err := q.exec(ctx, `INSERT INTO events (task, generation, source, sequence, position, kind, at, data)
			VALUES `+rowsOf(len(some), stateEvent), args...)
		if err != nil {
			return err
		}
	}
	return nil
}
