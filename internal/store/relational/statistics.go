package relational

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
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

// dayIn is the expression for the day of a column.
func dayIn(column string) string { return fmt.Sprintf(`%s / %d`, column, dayMicros) }

// counting is one time for which is counted.
type counting struct {
	store.StatisticsFilter
	from, to int64 // moments; from is the beginning of a day
}

// where is the condition for what happened in the time, by a column with its moment.
func (c counting) where(moment string) (where conditions) {
	where.add(moment+` >= ? AND `+moment+` < ?`, c.from, c.to)
	return c.named(where)
}

func (c counting) named(where conditions) conditions {
	where.addText(`forge`, string(c.Forge))
	where.addText(`repository`, c.Repository)
	return where
}

// Statistics implements store.StatisticsStore. Each query goes through a part of an index that has all
// that it asks for.
func (s *Store) Statistics(ctx context.Context, filter store.StatisticsFilter) (found store.Statistics, err error) {
	if err := checkLimit(filter.Repositories); err != nil {
		return store.Statistics{}, err
	}
	c := counting{filter, dayOf(filter.From) * dayMicros, filter.To.UnixMicro()}
	if c.from < 0 || c.from >= c.to {
		return store.Statistics{}, task.Errorf(task.Invalid, "the time to count ends before it begins, or begins before 1970")
	}
	err = s.snapshot(ctx, func(q session) (err error) {
		found = store.Statistics{}
		if err := c.runs(ctx, q, &found); err != nil {
			return err
		}
		if found.Pulls, err = c.spread(ctx, q, measure{"opened_pulls", "assigned_at", "opened_at"}); err != nil {
			return err
		}
		if found.Waits, err = c.spread(ctx, q, measure{"runs", "queued_at", "began_at"}); err != nil {
			return err
		}
		if found.Rounds, err = c.rounds(ctx, q); err != nil {
			return err
		}
		found.Costs, err = c.costs(ctx, q)
		return err
	})
	return orNothing(found, err)
}

// endedRuns are runs that began on the same day and ended on the same day, in the same way.
type endedRuns struct {
	began, ended int64 // days
	result       store.RunResult
	attempt      store.AttemptResult
	runs         int64
	all          int64 // for how long they went on together
	first, last  int64 // of that, on the day on which they began, and on the day on which they ended
}

// runs counts the runs that ended, what became of first attempts, and for how long agents were busy.
func (c counting) runs(ctx context.Context, q session, found *store.Statistics) error {
	where := c.where(`ended_at`)
	began, ended := dayIn(`began_at`), dayIn(`ended_at`)
	rows, err := list(ctx, q, func(r row) (e endedRuns, err error) {
		err = r.Scan(&e.began, &e.ended, &e.result, &e.attempt, &e.runs, &e.all, &e.first, &e.last)
		return e, err
	}, fmt.Sprintf(`SELECT %s, %s, result, attempt, COUNT(*), CAST(SUM(ended_at - began_at) AS BIGINT),
			CAST(SUM((%s + 1) * %d - began_at) AS BIGINT), CAST(SUM(ended_at - (%s) * %d) AS BIGINT)
		FROM runs`, began, ended, began, dayMicros, ended, dayMicros)+where.text()+` GROUP BY 1, 2, 3, 4`, where.args...)
	if err != nil {
		return err
	}
	busy := map[int64]int64{}
	results, attempts := map[dayResult[store.RunResult]]int64{}, map[dayResult[store.AttemptResult]]int64{}
	for _, e := range rows {
		results[dayResult[store.RunResult]{e.ended, e.result}] += e.runs
		if e.attempt != "" {
			attempts[dayResult[store.AttemptResult]{e.ended, e.attempt}] += e.runs
		}
		e.share(busy)
	}
	for _, one := range sortedDays(results) {
		found.Runs = append(found.Runs, store.RunCount{Day: dayAt(one.day), Result: one.result, Runs: results[one]})
	}
	for _, one := range sortedDays(attempts) {
		found.Attempts = append(found.Attempts, store.AttemptCount{Day: dayAt(one.day), Result: one.result, Tasks: attempts[one]})
	}
	if err := c.running(ctx, q, busy); err != nil {
		return err
	}
	for _, day := range slices.Sorted(maps.Keys(busy)) {
		if day >= c.from/dayMicros && busy[day] > 0 {
			found.Busy = append(found.Busy, store.BusyDay{Day: dayAt(day), Time: time.Duration(busy[day]) * time.Microsecond})
		}
	}
	return nil
}

// dayResult is what is counted by day and result.
type dayResult[R ~string] struct {
	day    int64
	result R
}

func sortedDays[R ~string](counts map[dayResult[R]]int64) []dayResult[R] {
	return slices.SortedFunc(maps.Keys(counts), func(a, b dayResult[R]) int {
		return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.result, b.result))
	})
}

// share adds the time of the runs to the days on which they went on.
func (e endedRuns) share(busy map[int64]int64) {
	if e.began == e.ended {
		busy[e.ended] += e.all
		return
	}
	busy[e.began] += e.first
	for day := e.began + 1; day < e.ended; day++ {
		busy[day] += e.runs * dayMicros
	}
	busy[e.ended] += e.last
}

// running adds the time of runs that go on. They are few. One that the task knows nothing of was ended
// by a server of an older version.
func (c counting) running(ctx context.Context, q session, busy map[int64]int64) error {
	var where conditions
	where.add(`runs.ended_at = ? AND runs.began_at < ?`, never, c.to)
	where.add(`tasks.state = 'running' AND tasks.generation = runs.generation`)
	where.addText(`runs.forge`, string(c.Forge))
	where.addText(`runs.repository`, c.Repository)
	begun, err := list(ctx, q, scanNumber, `SELECT runs.began_at FROM runs JOIN tasks ON tasks.id = runs.task`+where.text(), where.args...)
	for _, began := range begun {
		began = max(began, c.from)
		e := endedRuns{began: began / dayMicros, ended: c.to / dayMicros, runs: 1, all: c.to - began}
		e.first, e.last = (e.began+1)*dayMicros-began, c.to-e.ended*dayMicros
		e.share(busy)
	}
	return err
}

// measure is a time between two moments of a row; it belongs to the day of the second.
type measure struct{ table, from, to string }

// spread finds the median and the time that nine of ten do not exceed: those in the middle, and at nine
// tenths, when all of a day stand in order.
func (c counting) spread(ctx context.Context, q session, of measure) (spread store.Spread, err error) {
	spread.Days, err = c.spreadBy(ctx, q, of, dayIn(of.to))
	if err != nil {
		return spread, err
	}
	total, err := c.spreadBy(ctx, q, of, `0`)
	if len(total) > 0 {
		spread.Total = total[0]
		spread.Total.Day = time.Time{}
	}
	return spread, err
}

func (c counting) spreadBy(ctx context.Context, q session, of measure, day string) ([]store.DaySpread, error) {
	where := c.where(of.to)
	return list(ctx, q, func(r row) (d store.DaySpread, err error) {
		var day, median, most int64
		err = r.Scan(&day, &d.Count, &median, &most)
		d.Day, d.Median, d.P90 = dayAt(day), time.Duration(median)*time.Microsecond, time.Duration(most)*time.Microsecond
		return d, err
	}, fmt.Sprintf(`WITH measured AS (SELECT %s AS day, CASE WHEN %s > %s THEN %s - %s ELSE 0 END AS taken FROM %s`,
		day, of.to, of.from, of.to, of.from, of.table)+where.text()+`),
		placed AS (SELECT day, taken, ROW_NUMBER() OVER (PARTITION BY day ORDER BY taken) AS place, COUNT(*) OVER (PARTITION BY day) AS number FROM measured)
		SELECT day, number, MIN(taken), MAX(taken) FROM placed
		WHERE place = (number + 1) / 2 OR place = (number * 9 + 9) / 10 GROUP BY day, number ORDER BY day`, where.args...)
}

// rounds counts the review rounds of pull requests.
func (c counting) rounds(ctx context.Context, q session) ([]store.RoundCount, error) {
	where := c.where(`opened_at`)
	return list(ctx, q, func(r row) (n store.RoundCount, err error) {
		var day int64
		err = r.Scan(&day, &n.Rounds, &n.Pulls, &n.Sum)
		n.Day = dayAt(day)
		return n, err
	}, fmt.Sprintf(`SELECT %s, CASE WHEN rounds > %d THEN %d ELSE rounds END, COUNT(*), CAST(SUM(rounds) AS BIGINT) FROM opened_pulls`,
		dayIn(`opened_at`), store.MostRounds, store.MostRounds)+where.text()+` GROUP BY 1, 2 ORDER BY 1, 2`, where.args...)
}

// costs adds up what was spent, by day and repository. Repositories with little are added up together.
func (c counting) costs(ctx context.Context, q session) ([]store.Cost, error) {
	var where conditions
	where.add(`day >= ? AND day <= ?`, c.from/dayMicros, (c.to-1)/dayMicros)
	where = c.named(where)
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

// TaskRepositories implements store.StatisticsStore. It goes from one repository to the next in the index
// of the tasks: there may be many tasks of each.
func (s *Store) TaskRepositories(ctx context.Context, limit int) (names []store.RepositoryName, err error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	err = s.snapshot(ctx, func(q session) error {
		names = nil
		var last store.RepositoryName
		for limit == 0 || len(names) < limit {
			next, found, err := first(ctx, q, func(r row) (n store.RepositoryName, err error) {
				err = r.Scan(&n.Forge, &n.Name)
				return n, err
			}, `SELECT forge, repository FROM tasks WHERE (forge, repository) > (?, ?) ORDER BY forge, repository LIMIT 1`, last.Forge, last.Name)
			if err != nil || !found {
				return err
			}
			names, last = append(names, next), next
		}
		return nil
	})
	return orNothing(names, err)
}
