package relational

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// dayMicros is how long a day is, as moments are kept. Days are those of UTC, which has no others.
const dayMicros = int64(24 * time.Hour / time.Microsecond)

// dayOf is the number of a day, which counts from 1970.
func dayOf(at time.Time) int64 { return at.UnixMicro() / dayMicros }

// dayAt is the beginning of a day.
func dayAt(day int64) time.Time { return time.UnixMicro(day * dayMicros).UTC() }

// counting is one time for which is counted.
type counting struct {
	store.StatisticsFilter
	from, to int64 // moments; from is the beginning of a day
}

// where is the condition for the days of the time.
func (c counting) where() (where conditions) {
	where.add(`day >= ? AND day <= ?`, c.from/dayMicros, (c.to-1)/dayMicros)
	return where
}

// Statistics implements store.StatisticsStore. It reads sums of days: how many does not depend on how
// much happened.
func (s *Store) Statistics(ctx context.Context, filter store.StatisticsFilter) (found store.Statistics, err error) {
	if err := checkLimit(filter.Repositories); err != nil {
		return store.Statistics{}, err
	}
	c := counting{filter, dayOf(filter.From) * dayMicros, filter.To.UnixMicro()}
	if c.from < 0 || c.from >= c.to {
		return store.Statistics{}, task.Errorf(task.Invalid, "the time to count ends before it begins, or begins before 1970")
	}
	err = s.snapshot(ctx, func(q session) (err error) {
		sums, err := c.sums(ctx, q)
		if err != nil {
			return err
		}
		if err := c.running(ctx, q, sums); err != nil {
			return err
		}
		found = sums.statistics()
		found.Costs, err = c.costs(ctx, q)
		return err
	})
	return orNothing(found, err)
}

// sum is one of a day.
type sum struct {
	day, bucket int64
	name        string
}

// daySums are the sums of days.
type daySums map[sum]int64

// sums reads the sums of the days. A repository without a forge is that of any.
func (c counting) sums(ctx context.Context, q session) (daySums, error) {
	where := c.where()
	switch {
	case c.Repository == "" && c.Forge == "":
		where.add(`forge = '' AND repository = ''`)
	case c.Forge == "":
		where.add(`forge IN (`+listOf(len(task.Forges))+`) AND repository = ?`, append(arguments(task.Forges), c.Repository)...)
	default:
		where.add(`forge = ?`, c.Forge)
		where.addText(`repository`, c.Repository)
	}
	sums := daySums{}
	_, err := list(ctx, q, func(r row) (_ struct{}, err error) {
		var of sum
		var value int64
		err = r.Scan(&of.day, &of.name, &of.bucket, &value)
		sums[of] += value
		return struct{}{}, err
	}, `SELECT day, name, bucket, value FROM counted_days`+where.text(), where.args...)
	return sums, err
}

// running adds the time of runs that go on, which are few. One that the task knows nothing of was ended
// by a server of an older version.
func (c counting) running(ctx context.Context, q session, sums daySums) error {
	var where conditions
	where.add(`runs.ended_at = ? AND runs.began_at < ?`, never, c.to)
	where.add(`tasks.state = 'running' AND tasks.generation = runs.generation`)
	where.addText(`runs.forge`, string(c.Forge))
	where.addText(`runs.repository`, c.Repository)
	begun, err := list(ctx, q, scanNumber, `SELECT runs.began_at FROM runs JOIN tasks ON tasks.id = runs.task`+where.text(), where.args...)
	for _, began := range begun {
		for day, busy := range busyDays(time.UnixMicro(max(began, c.from)), time.UnixMicro(c.to)) {
			sums[sum{day: day, name: busyCounted}] += busy
		}
	}
	return err
}

// statistics are the sums in the order of their days.
func (d daySums) statistics() (found store.Statistics) {
	pulls, waits := times{}, times{}
	for _, of := range slices.SortedFunc(maps.Keys(d), func(a, b sum) int {
		return cmp.Or(cmp.Compare(a.day, b.day), strings.Compare(a.name, b.name), cmp.Compare(a.bucket, b.bucket))
	}) {
		day, value := dayAt(of.day), d[of]
		result, isRun := strings.CutPrefix(of.name, runCounted)
		attempt, isAttempt := strings.CutPrefix(of.name, attemptCounted)
		switch {
		case value <= 0:
		case isRun:
			found.Runs = append(found.Runs, store.RunCount{Day: day, Result: store.RunResult(result), Runs: value})
		case isAttempt:
			found.Attempts = append(found.Attempts, store.AttemptCount{Day: day, Result: store.AttemptResult(attempt), Tasks: value})
		case of.name == pullCounted:
			pulls.add(of, value)
		case of.name == waitCounted:
			waits.add(of, value)
		case of.name == roundsCounted:
			found.Rounds = append(found.Rounds, store.RoundCount{Day: day, Rounds: int(of.bucket), Pulls: value})
		case of.name == roundsSummed:
			found.RoundSums = append(found.RoundSums, store.RoundSum{Day: day, Rounds: value})
		case of.name == busyCounted:
			found.Busy = append(found.Busy, store.BusyDay{Day: day, Time: time.Duration(value) * time.Microsecond})
		}
	}
	found.Pulls, found.Waits = pulls.spread(), waits.spread()
	return found
}

// times counts times by their buckets, on each day; the sum of all days is that of day -1.
type times map[int64]map[int64]int64

const allDays = -1

func (t times) add(of sum, more int64) {
	for _, day := range []int64{of.day, allDays} {
		if t[day] == nil {
			t[day] = map[int64]int64{}
		}
		t[day][of.bucket] += more
	}
}

func (t times) spread() (spread store.Spread) {
	for _, day := range slices.Sorted(maps.Keys(t)) {
		one := spreadOf(t[day])
		if day == allDays {
			spread.Total = one
			continue
		}
		one.Day = dayAt(day)
		spread.Days = append(spread.Days, one)
	}
	return spread
}

// spreadOf finds the median and the time that nine of ten do not exceed: those in the middle, and at nine
// tenths, when all stand in order.
func spreadOf(counts map[int64]int64) (spread store.DaySpread) {
	for _, n := range counts {
		spread.Count += n
	}
	before := int64(0)
	for _, bucket := range slices.Sorted(maps.Keys(counts)) {
		passes := func(place int64) bool { return before < place && place <= before+counts[bucket] }
		if passes((spread.Count + 1) / 2) {
			spread.Median = bucketTime(bucket)
		}
		if passes((spread.Count*9 + 9) / 10) {
			spread.P90 = bucketTime(bucket)
		}
		before += counts[bucket]
	}
	return spread
}

// costs adds up what was spent, by day and repository. Repositories with little are added up together.
func (c counting) costs(ctx context.Context, q session) ([]store.Cost, error) {
	where := c.where()
	where.addText(`forge`, string(c.Forge))
	where.addText(`repository`, c.Repository)
	most := cmp.Or(c.Repositories, math.MaxInt32)
	args := slices.Concat(where.args, []any{most, most, most}, where.args)
	return list(ctx, q, func(r row) (cost store.Cost, err error) {
		var day int64
		err = r.Scan(&day, &cost.Others, &cost.Forge, &cost.Repository, &cost.Tokens, &cost.Money)
		cost.Day = dayAt(day)
		return cost, err
	}, `WITH most AS (SELECT forge AS of_forge, repository AS of_name,
			ROW_NUMBER() OVER (ORDER BY SUM(money) DESC, SUM(tokens) DESC, forge, repository) AS place
			FROM spent_days`+where.text()+` GROUP BY forge, repository)
		SELECT day, CASE WHEN place > ? THEN 1 ELSE 0 END, CASE WHEN place > ? THEN '' ELSE forge END, CASE WHEN place > ? THEN '' ELSE repository END,
			CAST(SUM(tokens) AS BIGINT), CAST(SUM(money) AS BIGINT)
		FROM spent_days JOIN most ON of_forge = forge AND of_name = repository`+where.text()+`
		GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`, args...)
}

// TaskRepositories implements store.StatisticsStore. One query goes from one repository to the next in
// the index of the tasks: there may be many tasks of each.
func (s *Store) TaskRepositories(ctx context.Context, limit int) ([]store.RepositoryName, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	const next = ` FROM tasks WHERE (tasks.forge, tasks.repository) > (named.forge, named.repository) ORDER BY tasks.forge, tasks.repository LIMIT 1`
	return all(ctx, s, func(r row) (n store.RepositoryName, err error) {
		err = r.Scan(&n.Forge, &n.Name)
		return n, err
	}, `WITH RECURSIVE named (place, forge, repository) AS (
			SELECT 1, forge, repository FROM (SELECT forge, repository FROM tasks ORDER BY forge, repository LIMIT 1) AS initial
			UNION ALL
			SELECT place + 1, (SELECT tasks.forge`+next+`), (SELECT tasks.repository`+next+`) FROM named WHERE forge IS NOT NULL AND place < ?)
		SELECT forge, repository FROM named WHERE forge IS NOT NULL ORDER BY place`, cmp.Or(limit, math.MaxInt32))
}
