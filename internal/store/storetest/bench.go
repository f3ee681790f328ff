package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
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
	equal(b, len(got[[]task.Task](b)(s.Candidates(b.Context(), noon, 1))), 0)
}
