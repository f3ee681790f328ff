package relational

import (
	"context"
	"encoding/hex"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// wantedMove is a move that somebody asks for: by a change, or by the end of a run, which decides
// on the change.
type wantedMove struct {
	task   task.ID
	change store.Change
	end    *store.RunEnd // nil if there is a change
}

// makeMoves moves tasks, each of them once, in one transaction. What is wrong with one move is its own
// result. Unless it is patient, one whose task is locked has to be made alone, so that the others do not
// wait.
func (s *Store) makeMoves(ctx context.Context, wanted []wantedMove, patient bool) (results []result[task.Task], err error) {
	err = s.write(ctx, func(q session) error {
		results, err = makeMoves(ctx, q, wanted, patient)
		return err
	})
	return orNothing(results, err)
}

func makeMoves(ctx context.Context, q session, wanted []wantedMove, patient bool) ([]result[task.Task], error) {
	ids := make([]task.ID, len(wanted))
	for i, w := range wanted {
		ids[i] = w.task
	}
	locked, err := lockTasks(ctx, q, ids, patient)
	if err != nil {
		return nil, err
	}
	halts, err := haltsOfEnds(ctx, q, wanted)
	if err != nil {
		return nil, err
	}
	floor := floorWhenAsked(ctx, q)
	results := make([]result[task.Task], len(wanted))
	var moves []move
	var rows []taskRow
	var ended []wantedMove
	for i, w := range wanted {
		found, exists := locked[w.task]
		if !exists {
			results[i] = result[task.Task]{err: noTask(w.task), alone: !patient}
			continue
		}
		m, err := w.decide(found, halts[w.task], floor)
		if err != nil && !hasCode(err) {
			return nil, err
		}
		results[i] = result[task.Task]{out: m.after.Task, err: err}
		if err != nil {
			continue
		}
		moves, rows = append(moves, m), append(rows, m.after)
		if w.end != nil {
			ended = append(ended, w)
		}
	}
	if err := saveTasks(ctx, q, rows); err != nil {
		return nil, err
	}
	if err := record(ctx, q, moves); err != nil {
		return nil, err
	}
	return results, insertEnds(ctx, q, ended, rows)
}

// haltsOfEnds reads the halts that runs which end decide by.
func haltsOfEnds(ctx context.Context, q session, wanted []wantedMove) (map[task.ID][]store.Halt, error) {
	var ids []task.ID
	for _, w := range wanted {
		if w.end != nil {
			ids = append(ids, w.task)
		}
	}
	found, err := listAny(ctx, q, scanHalt, ids, `SELECT `+haltColumns+` FROM halts WHERE task {any} ORDER BY signal DESC`)
	if err != nil {
		return nil, err
	}
	halts := map[task.ID][]store.Halt{}
	for _, halt := range found {
		halts[halt.Task] = append(halts[halt.Task], halt)
	}
	return halts, nil
}

// decide makes the move of a task whose row is locked. Nothing is stored yet.
func (w wantedMove) decide(found taskRow, pending []store.Halt, floor func() (int64, error)) (move, error) {
	if w.end == nil {
		if err := checkChange(found, w.change); err != nil {
			return move{}, err
		}
		return newMove(found, w.change, floor)
	}
	if !found.heldWith(w.end.Generation, w.end.TokenHash) {
		return move{}, leaseLost(w.task, w.end.Generation)
	}
	change, entries, err := w.end.Decide(found.Task, pending)
	if err != nil {
		return move{}, err
	}
	for _, e := range entries {
		if err := checkEntry(e, w.task); err != nil {
			return move{}, err
		}
	}
	if decidedByHalts(change) {
		return move{}, task.Errorf(task.Invalid, "the end of a run has been given the halts, and names none")
	}
	m, err := newMove(found, change, floor)
	m.entries = entries
	return m, err
}

// checkEntry checks an entry of the server that goes with a move.
func checkEntry(e task.Event, id task.ID) error {
	if err := checkEvent(e, id); err != nil {
		return err
	}
	if e.Sequence != 0 {
		return task.Errorf(task.Invalid, "an entry that goes with a move is numbered by the store")
	}
	return checkText(string(e.Data))
}

var endsOfRuns = newTable(`ended`, `task TEXT, generation BIGINT, token TEXT, outcome TEXT, state TEXT`)

// insertEnds keeps how agents have ended their runs.
func insertEnds(ctx context.Context, q session, ended []wantedMove, rows []taskRow) error {
	state := make(map[task.ID]task.State, len(rows))
	for _, row := range rows {
		state[row.ID] = row.State
	}
	return execRows(ctx, q, endsOfRuns, ended, func(w wantedMove) []any {
		return []any{w.task, w.end.Generation, hex.EncodeToString(w.end.TokenHash), w.end.Outcome, state[w.task]}
	}, `WITH {rows} INSERT INTO ended_runs (task, generation, token, outcome, state) SELECT task, generation, token, outcome, state FROM ended`)
}
