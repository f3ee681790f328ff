package statistics

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Periods are the numbers of days that can be asked for.
var Periods = []int{7, 30, 90}

// Default is the period of who has not chosen one.
const Default = 30

const (
	// mostRepositories is how many repositories have costs of their own.
	mostRepositories = 100
	oneDay           = 24 * time.Hour
	maxRepository    = 2000 // bytes of a name
)

// Wish is what somebody wants to see.
type Wish struct {
	Days int // up to and with today
	// Repository is one with or without its forge, such as gitea:owner/name or owner/name; empty means all.
	Repository string
}

// Check refuses a period that is not one of [Periods]: a database of any size answers those. It refuses
// a name that is too long too.
func (w Wish) Check() error {
	if !slices.Contains(Periods, w.Days) {
		return task.Errorf(task.Invalid, "statistics are of 7, 30 or 90 days, not of %d", w.Days)
	}
	if len(w.Repository) > maxRepository {
		return task.Errorf(task.TooLarge, "the name of the repository has %d bytes; %d are the limit", len(w.Repository), maxRepository)
	}
	return nil
}

// split tells the forge of the repository from its name. No name has a colon.
func (w Wish) split() (forge task.Forge, name string) {
	before, after, found := strings.Cut(w.Repository, ":")
	if !found {
		return "", before
	}
	return task.Forge(before), after
}

// Source is what is read.
type Source interface {
	Statistics(ctx context.Context, filter store.StatisticsFilter) (store.Statistics, error)
}

// Read makes the statistics of a wish, up to the given moment.
func Read(ctx context.Context, source Source, wish Wish, now time.Time) (wire.Statistics, error) {
	if err := wish.Check(); err != nil {
		return wire.Statistics{}, err
	}
	now = now.UTC()
	from := now.Truncate(oneDay).Add(-time.Duration(wish.Days-1) * oneDay)
	filter := store.StatisticsFilter{From: from, To: now, Repositories: mostRepositories}
	filter.Forge, filter.Repository = wish.split()
	found, err := source.Statistics(ctx, filter)
	if err != nil {
		return wire.Statistics{}, err
	}
	b := builder{from: from, now: now, Statistics: wire.Statistics{
		From: from.Format(time.DateOnly), To: now.Format(time.DateOnly), CountedAt: now.Truncate(time.Second), Repository: wish.Repository,
		Days: make([]wire.StatisticsDay, wish.Days),
	}}
	for i := range b.Days {
		b.Days[i].Day = from.Add(time.Duration(i) * oneDay).Format(time.DateOnly)
		b.Days[i].Cost.Repositories = []wire.RepositoryCost{}
	}
	b.runs(found)
	b.times(found)
	b.rounds(found)
	b.costs(found.Costs)
	b.busy(found.Busy)
	return b.Statistics, nil
}

// builder puts what the store has counted into rows.
type builder struct {
	wire.Statistics
	from, now time.Time
}

// rows are the rows to which something of a day belongs: that of the day, and that of all. What is of a
// day beyond the time belongs to none.
func (b *builder) rows(day time.Time) []*wire.StatisticsDay {
	i := int(day.Sub(b.from) / oneDay)
	if day.Before(b.from) || i >= len(b.Days) {
		return nil
	}
	return []*wire.StatisticsDay{&b.Days[i], &b.Total}
}

func (b *builder) runs(found store.Statistics) {
	for _, one := range found.Runs {
		for _, row := range b.rows(one.Day) {
			addTo(map[store.RunResult]*int64{
				store.RunDone: &row.Runs.Done, store.RunFailed: &row.Runs.Failed, store.RunStopped: &row.Runs.Stopped,
				store.RunPaused: &row.Runs.Paused, store.RunReturned: &row.Runs.Returned,
			}, one.Result, one.Runs)
		}
	}
	for _, one := range found.Attempts {
		for _, row := range b.rows(one.Day) {
			addTo(map[store.AttemptResult]*int64{
				store.AttemptRight: &row.FirstAttempts.Right, store.AttemptCorrected: &row.FirstAttempts.Corrected, store.AttemptFailed: &row.FirstAttempts.Failed,
			}, one.Result, one.Tasks)
		}
	}
}

// addTo adds to the number of a result. One that is not known is of a newer version, and is left out.
func addTo[R comparable](numbers map[R]*int64, result R, more int64) {
	if number, known := numbers[result]; known {
		*number += more
	}
}

func (b *builder) times(found store.Statistics) {
	for _, one := range found.Pulls.Days {
		for _, row := range b.rows(one.Day) {
			row.Pulls = timesOf(one)
		}
	}
	for _, one := range found.Waits.Days {
		for _, row := range b.rows(one.Day) {
			row.Waits = timesOf(one)
		}
	}
	b.Total.Pulls, b.Total.Waits = timesOf(found.Pulls.Total), timesOf(found.Waits.Total)
}

func timesOf(spread store.DaySpread) wire.Times {
	return wire.Times{Count: spread.Count, Median: spread.Median.Seconds(), P90: spread.P90.Seconds()}
}

func (b *builder) rounds(found store.Statistics) {
	for _, one := range found.Rounds {
		for _, row := range b.rows(one.Day) {
			of := [...]*int64{&row.Rounds.None, &row.Rounds.One, &row.Rounds.Two, &row.Rounds.More}
			*of[min(one.Rounds, len(of)-1)] += one.Pulls
		}
	}
	for _, one := range found.RoundSums {
		for _, row := range b.rows(one.Day) {
			row.Rounds.Sum += one.Rounds
		}
	}
}

func (b *builder) costs(costs []store.Cost) {
	b.Total.Cost.Repositories = []wire.RepositoryCost{}
	for _, one := range costs {
		cost := wire.RepositoryCost{Others: one.Others, Tokens: one.Tokens, Money: one.Money}
		if one.Repository != "" {
			cost.Repository = RepositoryName(store.RepositoryName{Forge: one.Forge, Name: one.Repository})
		}
		for _, row := range b.rows(one.Day) {
			row.Cost.Tokens += cost.Tokens
			row.Cost.Money += cost.Money
			addCost(&row.Cost, cost)
		}
	}
	// The order of the whole time is that of each day.
	place := map[wire.RepositoryCost]int{}
	slices.SortStableFunc(b.Total.Cost.Repositories, byCost)
	for i, one := range b.Total.Cost.Repositories {
		place[nameOf(one)] = i
	}
	for _, day := range b.Days {
		slices.SortFunc(day.Cost.Repositories, func(x, y wire.RepositoryCost) int { return place[nameOf(x)] - place[nameOf(y)] })
	}
}

// nameOf is only which repository it is.
func nameOf(cost wire.RepositoryCost) wire.RepositoryCost {
	return wire.RepositoryCost{Repository: cost.Repository, Others: cost.Others}
}

// byCost puts the highest cost first, and the others last.
func byCost(a, b wire.RepositoryCost) int {
	if a.Others != b.Others {
		if a.Others {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(b.Money, a.Money), cmp.Compare(b.Tokens, a.Tokens), strings.Compare(a.Repository, b.Repository))
}

func addCost(to *wire.DayCost, cost wire.RepositoryCost) {
	i := slices.IndexFunc(to.Repositories, func(c wire.RepositoryCost) bool { return nameOf(c) == nameOf(cost) })
	if i < 0 {
		to.Repositories = append(to.Repositories, cost)
		return
	}
	to.Repositories[i].Tokens += cost.Tokens
	to.Repositories[i].Money += cost.Money
}

// busy counts the day of today as far as it has come.
func (b *builder) busy(days []store.BusyDay) {
	first := b.now
	for _, one := range days {
		for _, row := range b.rows(one.Day) {
			row.Busy.Seconds += one.Time.Seconds()
		}
		if len(b.rows(one.Day)) > 0 && one.Day.Before(first) {
			first = one.Day
		}
	}
	for i := range b.Days {
		begin := b.from.Add(time.Duration(i) * oneDay)
		b.Days[i].Busy.Average = b.Days[i].Busy.Seconds / min(oneDay, max(b.now.Sub(begin), time.Second)).Seconds()
	}
	b.Total.Busy.Average = b.Total.Busy.Seconds / max(b.now.Sub(first), time.Second).Seconds()
}

// RepositoryName is the name of a repository on all forges, such as gitea:owner/name.
func RepositoryName(of store.RepositoryName) string { return string(of.Forge) + ":" + of.Name }
