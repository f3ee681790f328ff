package statistics

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// fixed is a store that has counted something.
type fixed struct {
	found store.Statistics
	asked store.StatisticsFilter
}

func (f *fixed) Statistics(_ context.Context, filter store.StatisticsFilter) (store.Statistics, error) {
	f.asked = filter
	return f.found, nil
}

var (
	noon  = time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	today = noon.Truncate(24 * time.Hour)
)

func read(t *testing.T, source *fixed, wish Wish) wire.Statistics {
	t.Helper()
	found, err := Read(t.Context(), source, wish, noon.In(time.FixedZone("east", 9*3600)))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The days are all there, in order, and end with today; what happened is on its day and in the total.
func TestRead(t *testing.T) {
	t.Parallel()
	yesterday := today.Add(-24 * time.Hour)
	source := &fixed{found: store.Statistics{
		Runs:     []store.RunCount{{Day: yesterday, Result: store.RunDone, Runs: 3}, {Day: today, Result: store.RunDone, Runs: 1}, {Day: today, Result: store.RunReturned, Runs: 2}, {Day: today, Result: "of a newer version", Runs: 9}},
		Attempts: []store.AttemptCount{{Day: today, Result: store.AttemptCorrected, Tasks: 1}},
		Pulls: store.Spread{
			Days:  []store.DaySpread{{Day: today, Count: 2, Median: time.Minute, P90: time.Hour}},
			Total: store.DaySpread{Count: 2, Median: time.Minute, P90: time.Hour},
		},
		Rounds:    []store.RoundCount{{Day: today, Rounds: 0, Pulls: 1}, {Day: today, Rounds: store.MostRounds, Pulls: 1}},
		RoundSums: []store.RoundSum{{Day: today, Rounds: 5}},
		Costs: []store.Cost{
			{Day: yesterday, Forge: task.GitHub, Repository: "a/a", Amount: store.Amount{Tokens: 10, Money: 1}},
			{Day: today, Forge: task.GitHub, Repository: "a/a", Amount: store.Amount{Tokens: 10, Money: 1}},
			{Day: today, Forge: task.GitHub, Repository: "b/b", Amount: store.Amount{Tokens: 1, Money: 9}},
			{Day: today, Others: true, Amount: store.Amount{Tokens: 100, Money: 100}},
		},
		Busy: []store.BusyDay{{Day: yesterday, Time: 36 * time.Hour}, {Day: today, Time: 6 * time.Hour}},
	}}
	found := read(t, source, Wish{Days: 7, Repository: "gitea:a/a"})
	if want := (store.StatisticsFilter{From: today.Add(-6 * 24 * time.Hour), To: noon, Forge: task.Gitea, Repository: "a/a", Repositories: mostRepositories}); source.asked != want {
		t.Errorf("asked for %+v, want %+v", source.asked, want)
	}
	if found.From != "2026-11-11" || found.To != "2026-11-17" || len(found.Days) != 7 || found.Days[6].Day != "2026-11-17" || found.Days[0].Day != "2026-11-11" {
		t.Errorf("the days are %s to %s: %+v", found.From, found.To, found.Days)
	}
	if found.Days[5].Runs != (wire.RunCounts{Done: 3}) || found.Days[6].Runs != (wire.RunCounts{Done: 1, Returned: 2}) || found.Total.Runs != (wire.RunCounts{Done: 4, Returned: 2}) {
		t.Errorf("runs are %+v, %+v and %+v", found.Days[5].Runs, found.Days[6].Runs, found.Total.Runs)
	}
	if found.Total.FirstAttempts != (wire.AttemptCounts{Corrected: 1}) || found.Total.Rounds != (wire.RoundCounts{None: 1, More: 1, Sum: 5}) {
		t.Errorf("attempts and rounds are %+v and %+v", found.Total.FirstAttempts, found.Total.Rounds)
	}
	if want := (wire.Times{Count: 2, Median: 60, P90: 3600}); found.Days[6].Pulls != want || found.Total.Pulls != want || found.Days[5].Pulls.Count != 0 {
		t.Errorf("times are %+v and %+v", found.Days[6].Pulls, found.Total.Pulls)
	}
	wantCosts := []wire.RepositoryCost{{Repository: "github:b/b", Tokens: 1, Money: 9}, {Repository: "github:a/a", Tokens: 20, Money: 2}, {Others: true, Tokens: 100, Money: 100}}
	if !reflect.DeepEqual(found.Total.Cost.Repositories, wantCosts) || found.Total.Cost.Money != 111 || found.Days[6].Cost.Repositories[0].Repository != "github:b/b" {
		t.Errorf("costs are %+v and %+v", found.Total.Cost, found.Days[6].Cost)
	}
	if found.Days[5].Busy.Average != 1.5 || found.Days[6].Busy.Average != 0.5 || found.Total.Busy.Average != 42.0/36 {
		t.Errorf("agents were busy %+v, %+v and %+v", found.Days[5].Busy, found.Days[6].Busy, found.Total.Busy)
	}
}

// Where nothing has happened there are zeros, and no division by them.
func TestReadNothing(t *testing.T) {
	t.Parallel()
	for _, days := range Periods {
		found := read(t, &fixed{}, Wish{Days: days})
		if len(found.Days) != days || found.Total.Busy.Average != 0 || found.Total.Runs.All() != 0 {
			t.Errorf("%d days: %+v", days, found.Total)
		}
		for _, name := range Names() {
			var text strings.Builder
			if err := WriteCSV(&text, name, found); err != nil || strings.Contains(text.String(), "NaN") {
				t.Errorf("%s: %v\n%s", name, err, &text)
			}
		}
	}
}

func TestWrongWishes(t *testing.T) {
	t.Parallel()
	for _, wish := range []Wish{{}, {Days: -7}, {Days: 365}, {Days: 7, Repository: strings.Repeat("x", 3000)}} {
		if _, err := Read(t.Context(), &fixed{}, wish, noon); err == nil {
			t.Errorf("%+v is not refused", wish)
		}
	}
	if err := WriteCSV(new(strings.Builder), "nothing", wire.Statistics{}); task.CodeOf(err) != task.NotFound {
		t.Errorf("a table that is not there: %v", err)
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()
	of := wire.Statistics{Days: []wire.StatisticsDay{
		{Day: "2026-11-16"},
		{Day: "2026-11-17", Waits: wire.Times{Count: 2, Median: 1.5, P90: 61}, FirstAttempts: wire.AttemptCounts{Right: 1, Failed: 3}, Cost: wire.DayCost{Repositories: []wire.RepositoryCost{
			{Repository: "github:a/a", Tokens: 5, Money: 7}, {Others: true, Tokens: 1},
		}}},
	}}
	for name, want := range map[string]string{
		"queue_wait":     "day,taken,median_seconds,p90_seconds\n2026-11-16,0,,\n2026-11-17,2,1.5,61\n",
		"first_attempts": "day,right,corrected,failed_first,right_share\n2026-11-16,0,0,0,\n2026-11-17,1,0,3,0.25\n",
		Costs:            "day,repository,tokens,money_millionths\n2026-11-17,github:a/a,5,7\n2026-11-17,others,1,0\n",
	} {
		var text strings.Builder
		if err := WriteCSV(&text, name, of); err != nil || text.String() != want {
			t.Errorf("%s is %v\n%s\nwant\n%s", name, err, &text, want)
		}
	}
}
