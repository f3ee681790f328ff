package storetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// StatisticsDays checks what is counted of several days. Execute runs statements on the database, which
// is how a test makes runs of other days.
func StatisticsDays(t *testing.T, open func() store.Store, execute func(statements string), migrations string) {
	t.Helper()
	s := opened(t, open)
	first := noon.Truncate(24 * time.Hour)
	at := func(day int, hours, seconds float64) time.Time {
		return first.Add(time.Duration(day)*24*time.Hour + time.Duration(hours*float64(time.Hour)) + time.Duration(seconds*float64(time.Second)))
	}
	run := func(queued, began, ended time.Time) {
		t.Helper()
		x := moved(t, s, running(t, s), task.Finished)
		execute(fmt.Sprintf(`UPDATE runs SET queued_at = %d, began_at = %d, ended_at = %d WHERE task = '%s'`, queued.UnixMicro(), began.UnixMicro(), ended.UnixMicro(), x.ID))
	}
	run(at(0, 23, -7), at(0, 23, 0), at(2, 1, 0)) // over two midnights
	for i := range 10 {
		began := at(1, 5, float64(i*100))
		run(began.Add(-time.Duration(i+1)*time.Second), began, began.Add(time.Minute))
	}
	run(at(1, 20, 0), at(1, 20, -5), at(1, 21, 0)) // the clocks of two servers differ
	for i, taken := range []time.Duration{time.Hour, 3 * time.Hour, 2 * time.Hour} {
		x := withPull(t, s)
		opened := at(3, float64(10+i), 0)
		execute(fmt.Sprintf(`UPDATE opened_pulls SET assigned_at = %d, opened_at = %d, rounds = %d WHERE task = '%s'`,
			opened.Add(-taken).UnixMicro(), opened.UnixMicro(), 2*i, x.ID))
		execute(fmt.Sprintf(`DELETE FROM runs WHERE task = '%s'`, x.ID))
	}

	_, sums := statisticsMigration(t, migrations)
	execute(`DELETE FROM counted_days;` + sums)
	found := statistics(t, s, store.StatisticsFilter{From: at(0, 12, 0), To: at(5, 0, 0)})
	equal(t, found.Runs, []store.RunCount{{Day: at(1, 0, 0), Result: store.RunDone, Runs: 11}, {Day: at(2, 0, 0), Result: store.RunDone, Runs: 1}})
	equal(t, found.Busy, []store.BusyDay{
		{Day: at(0, 0, 0), Time: time.Hour}, {Day: at(1, 0, 0), Time: 24*time.Hour + 10*time.Minute + time.Hour + 5*time.Second}, {Day: at(2, 0, 0), Time: time.Hour},
	})
	equal(t, found.Waits, store.Spread{
		Days: []store.DaySpread{
			{Day: at(0, 0, 0), Count: 1, Median: 7 * time.Second, P90: 7 * time.Second},
			{Day: at(1, 0, 0), Count: 11, Median: 5 * time.Second, P90: 9 * time.Second},
		},
		Total: store.DaySpread{Count: 12, Median: 5 * time.Second, P90: 9 * time.Second},
	})
	equal(t, len(found.Pulls.Days), 1)
	equal(t, found.Pulls.Days[0].Count, 3)
	for is, want := range map[time.Duration]time.Duration{found.Pulls.Days[0].Median: 2 * time.Hour, found.Pulls.Total.P90: 3 * time.Hour} {
		if off := (is - want).Abs(); off > want/40 {
			t.Errorf("%v is told as %v", want, is)
		}
	}
	equal(t, found.Rounds, []store.RoundCount{
		{Day: at(3, 0, 0), Rounds: 0, Pulls: 1}, {Day: at(3, 0, 0), Rounds: 2, Pulls: 1}, {Day: at(3, 0, 0), Rounds: store.MostRounds, Pulls: 1},
	})
	equal(t, found.RoundSums, []store.RoundSum{{Day: at(3, 0, 0), Rounds: 6}})
	late := statistics(t, s, store.StatisticsFilter{From: at(2, 0, 0), To: at(3, 0, 0)})
	equal(t, late.Busy, []store.BusyDay{{Day: at(2, 0, 0), Time: time.Hour}})
	equal(t, late.Pulls, store.Spread{})
}

// StatisticsOfOlder checks that a database of a version without statistics is counted as if they had
// always been there. Migrations is the folder with the migrations.
func StatisticsOfOlder(t *testing.T, open func() store.Store, execute func(statements string), migrations string) {
	t.Helper()
	s := opened(t, open)
	for _, trigger := range []task.Trigger{task.GaveUp, task.Withdrawn, task.PauseSet, task.Returned, task.Lost} {
		moved(t, s, running(t, s), trigger)
	}
	for _, reason := range []task.Reason{task.ReasonChangesRequested, task.ReasonChecksFailed, task.ReasonBaseConflict} {
		moved(t, s, runningOn(t, s, fixUpOf(withPull(t, s), reason)), task.Finished)
	}
	x := running(t, s)
	moved(t, s, x, task.GaveUp)
	x = claimed(t, s, moved(t, s, x, task.Assigned))
	got[string](t)(s.ReserveSpend(t.Context(), callOf(x, 5, 1), anything))
	got[string](t)(s.ReserveSpend(t.Context(), store.Call{At: noon, Most: store.Amount{Tokens: 1}}, anything))
	filter := store.StatisticsFilter{From: time.Now().Add(-time.Hour), To: noon.Add(time.Hour)}
	before := statistics(t, s, filter)

	whole, _ := statisticsMigration(t, migrations)
	execute(`DROP TABLE runs; DROP TABLE opened_pulls; DROP TABLE spent_days; DROP TABLE counted_days; ALTER TABLE tasks DROP COLUMN free_since;` + whole)
	after := statistics(t, s, filter)
	equal(t, after.Pulls.Total.Count, before.Pulls.Total.Count)
	before.Pulls, after.Pulls = store.Spread{}, store.Spread{} // when they were opened is known about
	equal(t, after, before)
}

// statisticsMigration is the migration that made the tables of statistics, and the part of it that makes
// the sums of days.
func statisticsMigration(t testing.TB, folder string) (whole, sums string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_statistics.sql"))
	must(t, err)
	equal(t, len(files), 1)
	text, err := os.ReadFile(files[0])
	must(t, err)
	whole = strings.TrimPrefix(string(text), "-- +goose Up")
	at := strings.Index(whole, "-- The sums of days of")
	if at < 0 {
		t.Fatal("the migration has no part with the sums of days")
	}
	return whole, whole[at:]
}
