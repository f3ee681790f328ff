package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
)

// BenchmarkClaim measures how many tasks a second are claimed, durably and with
// their events, in batches of different sizes by the given number of callers.
func BenchmarkClaim(b *testing.B, s store.Store, callers int) {
	for _, size := range []int{1, 10, 50} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			benchmarkClaim(b, s, callers, size)
		})
	}
}

func benchmarkClaim(b *testing.B, s store.Store, callers, size int) {
	batches := make(chan []store.Claim, b.N)
	together(16, func(hand int) {
		for n := hand; n < b.N; n += 16 {
			var claims []store.Claim
			for range size {
				made, _, err := s.Assign(b.Context(), newTaskOn(newKey()), nil)
				if err != nil {
					b.Error(err)
					return
				}
				claims = append(claims, claimOf(made))
			}
			batches <- claims
		}
	})
	close(batches)
	var claimed atomic.Int64
	b.ResetTimer()
	together(callers, func(int) {
		for claims := range batches {
			held, err := s.Claim(b.Context(), claims, nil)
			if err != nil {
				b.Error(err)
			}
			claimed.Add(int64(len(held)))
		}
	})
	b.StopTimer()
	equal(b, claimed.Load(), int64(b.N*size))
	b.ReportMetric(float64(claimed.Load())/b.Elapsed().Seconds(), "claims/s")
	// What is claimed must not be found by the next round.
	equal(b, len(readyAt(b, s, noon)), 0)
}

// BenchmarkStatistics measures how long statistics take in a database with a year of 2,000 tasks a day.
// Execute runs statements on the database, in which runs need no tasks.
func BenchmarkStatistics(b *testing.B, s store.Store, execute func(statements string), migrations string) {
	b.Helper()
	now := time.Now().UTC()
	const day = int64(24 * time.Hour / time.Microsecond)
	execute(fmt.Sprintf(`INSERT INTO runs (task, generation, forge, repository, type, queued_at, began_at, ended_at, result, attempt)
		WITH RECURSIVE many (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM many WHERE i < 999999)
		SELECT 'task number ' || (1000000 + i), 1, 'github', 'team/repository-' || (i * 7919 %% 50), 'development',
			%[1]d - i * %[2]d - i * 7919 %% 600000000, %[1]d - i * %[2]d, %[1]d - i * %[2]d + 1000000 * (60 + i * 104729 %% 4000),
			CASE i %% 10 WHEN 0 THEN 'failed' WHEN 1 THEN 'paused' WHEN 2 THEN 'returned' ELSE 'done' END,
			CASE i %% 3 WHEN 0 THEN 'right' WHEN 1 THEN 'corrected' ELSE '' END FROM many`, now.UnixMicro()-day/6, 365*day/1_000_000))
	execute(`INSERT INTO opened_pulls (task, forge, repository, branch, assigned_at, opened_at, rounds)
		SELECT task, forge, repository, task, queued_at, ended_at, CASE WHEN attempt = 'corrected' THEN 1 ELSE 0 END FROM runs WHERE result = 'done'`)
	execute(`INSERT INTO spent_days (day, forge, repository, tokens, money)
		SELECT ended_at / 86400000000, forge, repository, COUNT(*), COUNT(*) FROM runs GROUP BY 1, 2, 3`)
	_, sums := statisticsMigration(b, migrations)
	execute(sums)
	execute(`ANALYZE`)
	for _, days := range []int{7, 30, 90} {
		for _, repository := range []string{"", "team/repository-7"} {
			b.Run(fmt.Sprintf("days=%d/repository=%s", days, repository), func(b *testing.B) {
				filter := store.StatisticsFilter{From: now.Truncate(24 * time.Hour).Add(-time.Duration(days-1) * 24 * time.Hour), To: now, Repository: repository, Repositories: 100}
				var found store.Statistics
				for b.Loop() {
					found = statistics(b, s, filter)
				}
				b.ReportMetric(float64(found.Waits.Total.Count), "runs")
			})
		}
	}
}
