package relational

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// runResult is how a run has ended that the trigger ends.
var runResult = map[task.Trigger]store.RunResult{
	task.Finished: store.RunDone, task.GaveUp: store.RunFailed, task.Withdrawn: store.RunStopped,
	task.PauseSet: store.RunPaused, task.Returned: store.RunReturned, task.Lost: store.RunReturned,
}

// attemptResult is what becomes of a first attempt that ends so. Other runs were interrupted, and the
// attempt goes on.
var attemptResult = map[store.RunResult]store.AttemptResult{
	store.RunDone: store.AttemptRight, store.RunFailed: store.AttemptFailed,
}

// countMoves writes down what statistics are made of: which runs have begun and ended, and what was not
// right. It is called when the events of the moves are stored.
func countMoves(ctx context.Context, q session, moves []move) error {
	var begun []move
	for _, m := range moves {
		var err error
		switch {
		case m.trigger == task.Claimed:
			begun = append(begun, m)
		case m.before.State == task.Running && m.after.State != task.Running:
			err = countEnd(ctx, q, m)
		case m.trigger == task.Assigned:
			err = countFixUp(ctx, q, m)
		}
		if err != nil {
			return err
		}
	}
	return countBegun(ctx, q, begun)
}

// begunRun is one row of countBegun. The wait of a run begins when its generation was queued, when the
// time of the task had come, or when nothing blocked it any more, whichever was last.
const begunRun = `(?, ?, ?, ?, ?, COALESCE((SELECT MAX(at) FROM (
		SELECT MIN(at) AS at FROM events WHERE task = ? AND generation = ? AND source = 'server' AND kind = 'state'
		UNION ALL SELECT ready_at AS at FROM tasks WHERE id = ?
		UNION ALL SELECT free_since AS at FROM tasks WHERE id = ?) AS moments WHERE at <= ?), ?),
	?, ?, '', '')`

// countBegun notes that runs have begun, in one statement for many.
func countBegun(ctx context.Context, q session, begun []move) error {
	for _, some := range chunks(begun) {
		args := make([]any, 0, 13*len(some))
		for _, m := range some {
			t, at := m.after, m.after.UpdatedAt.UnixMicro()
			args = append(args, t.ID, t.Generation, t.Key.Forge, t.Key.Repository, t.Type,
				t.ID, t.Generation, t.ID, t.ID, at, at, at, never)
		}
		_, err := q.exec(ctx, `INSERT INTO runs (task, generation, forge, repository, type, queued_at, began_at, ended_at, result, attempt)
			VALUES `+rowsOf(len(some), begunRun)+` ON CONFLICT (task, generation) DO NOTHING`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// countEnd notes how a run has ended, and whether it was the first attempt on an issue.
func countEnd(ctx context.Context, q session, m move) error {
	result := runResult[m.trigger]
	attempt := attemptResult[result]
	if m.after.Type != task.Development || m.after.Key.Kind != task.Issue {
		attempt = ""
	}
	_, err := q.exec(ctx, `UPDATE runs SET ended_at = ?, result = ?,
			attempt = CASE WHEN EXISTS (SELECT 1 FROM runs earlier WHERE earlier.task = runs.task AND earlier.attempt <> '') THEN '' ELSE ? END
		WHERE task = ? AND generation = ? AND ended_at = ?`,
		m.after.UpdatedAt.UnixMicro(), result, attempt, m.before.ID, m.before.Generation, never)
	return err
}

// countFixUp notes that a pull request of ours was not right. Its task is another one than that of the
// issue; both have the same branch. That the base has changed is nobody's fault, and a task that people
// retry has been counted.
func countFixUp(ctx context.Context, q session, m move) error {
	if m.after.Reason != task.ReasonChangesRequested && m.after.Reason != task.ReasonChecksFailed || m.after.Branch == "" {
		return nil
	}
	branch := []any{m.after.Key.Forge, m.after.Key.Repository, m.after.Branch}
	if m.after.Reason == task.ReasonChangesRequested {
		if _, err := q.exec(ctx, `UPDATE opened_pulls SET rounds = rounds + 1 WHERE forge = ? AND repository = ? AND branch = ?`, branch...); err != nil {
			return err
		}
	}
	_, err := q.exec(ctx, `UPDATE runs SET attempt = ? WHERE attempt = ? AND task IN
		(SELECT task FROM opened_pulls WHERE forge = ? AND repository = ? AND branch = ?)`,
		append([]any{store.AttemptCorrected, store.AttemptRight}, branch...)...)
	return err
}

// countPull notes that the pull request of an issue is there. Only the first one of a task counts: those
// after it bring that one up to date, or take its place.
func countPull(ctx context.Context, q session, id string) error {
	_, err := q.exec(ctx, `INSERT INTO opened_pulls (task, forge, repository, branch, assigned_at, opened_at, rounds)
		SELECT id, forge, repository, branch, assigned_at, CAST(? AS BIGINT), 0 FROM tasks
		WHERE id = ? AND type = 'development' AND item_kind = 'issue'
		ON CONFLICT (task) DO NOTHING`, now().UnixMicro(), id)
	return err
}

// countSpent adds to what was spent on a day for the repository of a task, or for none.
func countSpent(ctx context.Context, q session, id task.ID, at time.Time, more store.Amount) error {
	source, args := `SELECT CAST(? AS BIGINT), '', '', CAST(? AS BIGINT), CAST(? AS BIGINT) WHERE 1 = 1`, []any{dayOf(at), more.Tokens, more.Money}
	if id != "" {
		source, args = `SELECT CAST(? AS BIGINT), forge, repository, CAST(? AS BIGINT), CAST(? AS BIGINT) FROM tasks WHERE id = ?`, append(args, id)
	}
	_, err := q.exec(ctx, `INSERT INTO spent_days (day, forge, repository, tokens, money) `+source+`
		ON CONFLICT (day, forge, repository) DO UPDATE
		SET tokens = spent_days.tokens + excluded.tokens, money = spent_days.money + excluded.money`, args...)
	return err
}
