package relational

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
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

// What is counted by day. Behind runCounted and attemptCounted stands how they ended.
const (
	runCounted     = "run "
	attemptCounted = "attempt "
	waitCounted    = "wait"       // by bucketOf
	pullCounted    = "pull"       // by bucketOf
	roundsCounted  = "rounds"     // pull requests by their rounds
	roundsSummed   = "rounds sum" // rounds
	busyCounted    = "busy"       // microseconds
)

// tally is what is added to the sums of days.
type tally map[summed]int64

// summed names one sum of a day.
type summed struct {
	forge      task.Forge // and repository; both are empty for the sum of all repositories
	repository string
	day        int64
	name       string
	bucket     int64
}

// add adds to the sum of a repository and to that of all.
func (t tally) add(of store.RepositoryName, day int64, name string, bucket, more int64) {
	t[summed{of.Forge, of.Name, day, name, bucket}] += more
	t[summed{"", "", day, name, bucket}] += more
}

var addedSums = newTable(`added`, `forge TEXT, repository TEXT, day BIGINT, name TEXT, bucket BIGINT, value BIGINT`)

// save stores what is added, in one statement for many. It is the last thing that a transaction locks,
// and in the same order always: many transactions add to the sums of all repositories, and must not
// wait for each other in a circle.
func (t tally) save(ctx context.Context, q session) error {
	maps.DeleteFunc(t, func(_ summed, more int64) bool { return more == 0 })
	keys := slices.SortedFunc(maps.Keys(t), func(a, b summed) int {
		return cmp.Or(strings.Compare(string(a.forge), string(b.forge)), strings.Compare(a.repository, b.repository),
			cmp.Compare(a.day, b.day), strings.Compare(a.name, b.name), cmp.Compare(a.bucket, b.bucket))
	})
	return execRows(ctx, q, addedSums, keys, func(key summed) []any {
		return []any{key.forge, key.repository, key.day, key.name, key.bucket, t[key]}
	}, `WITH {rows} INSERT INTO counted_days (forge, repository, day, name, bucket, value)
		SELECT forge, repository, day, name, bucket, value FROM added WHERE 1 = 1
		ON CONFLICT (forge, repository, day, name, bucket) DO UPDATE SET value = counted_days.value + excluded.value`)
}

// bucketOf is the tenths of seconds of a time, rounded down so that times that differ by less than a
// twentieth are counted together: of any number of times there are a few hundred counts. The migration
// that made the table does the same.
func bucketOf(taken time.Duration) int64 {
	tenths := max(int64(taken/(100*time.Millisecond)), 0)
	return tenths - tenths%bucketWidth(tenths)
}

// bucketWidth is how many tenths of seconds are counted together.
func bucketWidth(tenths int64) int64 {
	switch {
	case tenths < 100:
		return 1
	case tenths < 1000:
		return 5
	case tenths < 10_000:
		return 50
	case tenths < 100_000:
		return 500
	case tenths < 1_000_000:
		return 5000
	default:
		return 50_000
	}
}

// bucketTime is the time that stands for those which are counted together: the one in the middle.
func bucketTime(bucket int64) time.Duration {
	return time.Duration(2*bucket+bucketWidth(bucket)-1) * 50 * time.Millisecond
}

// countMoves writes down what statistics are made of: which runs have begun and ended, and what was not
// right. It is called when the events of the moves are stored.
func countMoves(ctx context.Context, q session, moves []move) error {
	var begun, ended []move
	sums := tally{}
	for _, m := range moves {
		switch {
		case m.trigger == task.Claimed:
			begun = append(begun, m)
		case m.before.State == task.Running && m.after.State != task.Running:
			ended = append(ended, m)
		case m.trigger == task.Assigned:
			if err := countFixUp(ctx, q, m, sums); err != nil {
				return err
			}
		}
	}
	if err := countBegun(ctx, q, begun, sums); err != nil {
		return err
	}
	if err := countEnded(ctx, q, ended, sums); err != nil {
		return err
	}
	return sums.save(ctx, q)
}

var (
	begunRuns = newTable(`begun`, `task TEXT, generation BIGINT, forge TEXT, repository TEXT, type TEXT, at BIGINT`)
	endedRuns = newTable(`ended`, `task TEXT, generation BIGINT, at BIGINT, result TEXT, attempt TEXT`)
)

// countedRun is what is stored of a run.
type countedRun struct {
	store.RepositoryName
	queued, began, ended time.Time
	result               store.RunResult
	attempt              store.AttemptResult
}

const countedColumns = `runs.forge, runs.repository, runs.queued_at, runs.began_at, runs.ended_at, runs.result, runs.attempt`

func scanCountedRun(r row) (c countedRun, err error) {
	err = r.Scan(&c.Forge, &c.Name, micros{&c.queued}, micros{&c.began}, micros{&c.ended}, &c.result, &c.attempt)
	return c, err
}

// countBegun notes that runs have begun, in one statement for many. The wait of a run begins when its
// generation was queued, when the time of the task had come, or when nothing blocked it any more,
// whichever was last.
func countBegun(ctx context.Context, q session, begun []move, sums tally) error {
	runs, err := listRows(ctx, q, scanCountedRun, begunRuns, begun, func(m move) []any {
		t := m.after
		return []any{t.ID, t.Generation, t.Key.Forge, t.Key.Repository, t.Type, t.UpdatedAt.UnixMicro()}
	}, `WITH {rows} INSERT INTO runs (task, generation, forge, repository, type, queued_at, began_at, ended_at, result, attempt)
		SELECT task, generation, forge, repository, type, COALESCE((SELECT MAX(moments.at) FROM (
				SELECT MIN(events.at) AS at FROM events
				WHERE events.task = begun.task AND events.generation = begun.generation AND source = 'server' AND kind = 'state'
				UNION ALL SELECT ready_at FROM tasks WHERE tasks.id = begun.task
				UNION ALL SELECT free_since FROM tasks WHERE tasks.id = begun.task) AS moments WHERE moments.at <= begun.at), at),
			at, CAST(? AS BIGINT), '', ''
		FROM begun WHERE 1 = 1
		ON CONFLICT (task, generation) DO NOTHING RETURNING `+countedColumns, never)
	for _, run := range runs {
		sums.add(run.RepositoryName, dayOf(run.began), waitCounted, bucketOf(run.began.Sub(run.queued)), 1)
	}
	return err
}

// countEnded notes how runs have ended, and whether they were first attempts on issues, in one
// statement for many.
func countEnded(ctx context.Context, q session, ended []move, sums tally) error {
	runs, err := listRows(ctx, q, scanCountedRun, endedRuns, ended, func(m move) []any {
		result := runResult[m.trigger]
		attempt := attemptResult[result]
		if m.after.Type != task.Development || m.after.Key.Kind != task.Issue {
			attempt = ""
		}
		return []any{m.before.ID, m.before.Generation, m.after.UpdatedAt.UnixMicro(), result, attempt}
	}, `WITH {rows} UPDATE runs SET ended_at = ended.at, result = ended.result,
			attempt = CASE WHEN EXISTS (SELECT 1 FROM runs earlier WHERE earlier.task = runs.task AND earlier.attempt <> '') THEN '' ELSE ended.attempt END
		FROM ended WHERE runs.task = ended.task AND runs.generation = ended.generation AND runs.ended_at = ?
		RETURNING `+countedColumns, never)
	for _, run := range runs { // those that a server of an older version has begun are not among them
		sums.addEnd(run)
	}
	return err
}

// addEnd adds what is counted of a run that has ended.
func (t tally) addEnd(run countedRun) {
	day := dayOf(run.ended)
	t.add(run.RepositoryName, day, runCounted+string(run.result), 0, 1)
	if run.attempt != "" {
		t.add(run.RepositoryName, day, attemptCounted+string(run.attempt), 0, 1)
	}
	for day, busy := range busyDays(run.began, run.ended) {
		t.add(run.RepositoryName, day, busyCounted, 0, busy)
	}
}

// busyDays is how many microseconds of the time between two moments are on which day.
func busyDays(from, to time.Time) map[int64]int64 {
	all := map[int64]int64{}
	for at, end := from.UnixMicro(), to.UnixMicro(); at < end; {
		day := at / dayMicros
		next := min((day+1)*dayMicros, end)
		all[day] += next - at
		at = next
	}
	return all
}

// countFixUp notes that a pull request of ours was not right. Its task is another one than that of the
// issue; both have the same branch. That the base has changed is nobody's fault, and a task that people
// retry has been counted.
func countFixUp(ctx context.Context, q session, m move, sums tally) error {
	if m.after.Reason != task.ReasonChangesRequested && m.after.Reason != task.ReasonChecksFailed || m.after.Branch == "" {
		return nil
	}
	branch := []any{m.after.Key.Forge, m.after.Key.Repository, m.after.Branch}
	of := store.RepositoryName{Forge: m.after.Key.Forge, Name: m.after.Key.Repository}
	if m.after.Reason == task.ReasonChangesRequested {
		pulls, err := list(ctx, q, func(r row) (n [2]int64, err error) {
			err = r.Scan(&n[0], &n[1])
			return n, err
		}, `UPDATE opened_pulls SET rounds = rounds + 1 WHERE forge = ? AND repository = ? AND branch = ? RETURNING opened_at, rounds`, branch...)
		if err != nil {
			return err
		}
		for _, pull := range pulls {
			day, rounds := pull[0]/dayMicros, pull[1]
			sums.add(of, day, roundsCounted, min(rounds-1, store.MostRounds), -1)
			sums.add(of, day, roundsCounted, min(rounds, store.MostRounds), 1)
			sums.add(of, day, roundsSummed, 0, 1)
		}
	}
	runs, err := list(ctx, q, scanCountedRun, `UPDATE runs SET attempt = ? WHERE attempt = ? AND task IN
		(SELECT task FROM opened_pulls WHERE forge = ? AND repository = ? AND branch = ?) RETURNING `+countedColumns,
		append([]any{store.AttemptCorrected, store.AttemptRight}, branch...)...)
	for _, run := range runs {
		sums.add(of, dayOf(run.ended), attemptCounted+string(store.AttemptRight), 0, -1)
		sums.add(of, dayOf(run.ended), attemptCounted+string(store.AttemptCorrected), 0, 1)
	}
	return err
}

// countPull notes that the pull request of an issue is there. Only the first one of a task counts: those
// after it bring that one up to date, or take its place.
func countPull(ctx context.Context, q session, id string) error {
	type opened struct {
		store.RepositoryName
		assigned, opened time.Time
	}
	pull, found, err := first(ctx, q, func(r row) (o opened, err error) {
		err = r.Scan(&o.Forge, &o.Name, micros{&o.assigned}, micros{&o.opened})
		return o, err
	}, `INSERT INTO opened_pulls (task, forge, repository, branch, assigned_at, opened_at, rounds)
		SELECT id, forge, repository, branch, assigned_at, CAST(? AS BIGINT), 0 FROM tasks
		WHERE id = ? AND type = 'development' AND item_kind = 'issue'
		ON CONFLICT (task) DO NOTHING RETURNING forge, repository, assigned_at, opened_at`, now().UnixMicro(), id)
	if err != nil || !found {
		return err
	}
	sums := tally{}
	sums.add(pull.RepositoryName, dayOf(pull.opened), pullCounted, bucketOf(pull.opened.Sub(pull.assigned)), 1)
	sums.add(pull.RepositoryName, dayOf(pull.opened), roundsCounted, 0, 1)
	return sums.save(ctx, q)
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
