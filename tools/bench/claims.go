package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
)

// handOuts is how many tasks are handed out per measurement.
const handOuts = 2000

// measureClaims hands out tasks from both databases, one by one and in batches,
// with one claimer and with several.
func measureClaims(ctx context.Context, folder string) ([]row, error) {
	lite, err := sqlite.Open(ctx, filepath.Join(folder, "claims.db"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = lite.Close() }()
	databases := []struct {
		name  string
		store store.Store
	}{{"SQLite", lite}}
	if url := os.Getenv("TORYO_TEST_POSTGRES"); url != "" {
		post, err := postgres.Open(ctx, url)
		if err != nil {
			return nil, err
		}
		defer func() { _ = post.Close() }()
		databases = append(databases, struct {
			name  string
			store store.Store
		}{"PostgreSQL", post})
	}
	var rows []row
	for _, shape := range []struct{ claimers, batch int }{{1, 1}, {8, 1}, {1, 50}, {8, 50}} {
		for _, database := range databases {
			rate, err := claimRate(ctx, database.store, shape.claimers, shape.batch)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", database.name, err)
			}
			name := fmt.Sprintf("claims on %s, %d at a time, %d claimers", database.name, shape.batch, shape.claimers)
			rows = append(rows, row{name, fmt.Sprintf("%.0f/s", rate), ""})
		}
	}
	return rows, nil
}

// claimRate queues tasks, shares them out among the claimers and returns how many
// a second were handed out. Every one has to be.
func claimRate(ctx context.Context, database store.Store, claimers, batch int) (float64, error) {
	queued, err := queue(ctx, database, handOuts)
	if err != nil {
		return 0, err
	}
	share := len(queued) / claimers
	counts, failures := make([]int, claimers), make([]error, claimers)
	begun := time.Now()
	var working sync.WaitGroup
	for i := range claimers {
		working.Go(func() {
			counts[i], failures[i] = claimAll(ctx, database, queued[i*share:(i+1)*share], batch)
		})
	}
	working.Wait()
	took := time.Since(begun)
	total := 0
	for i := range claimers {
		if failures[i] != nil {
			return 0, failures[i]
		}
		total += counts[i]
	}
	if total != share*claimers {
		return 0, fmt.Errorf("%d of %d tasks were handed out", total, share*claimers)
	}
	return float64(total) / took.Seconds(), nil
}

func claimAll(ctx context.Context, database store.Leases, tasks []task.Task, batch int) (int, error) {
	claimed := 0
	for len(tasks) > 0 {
		n := min(batch, len(tasks))
		claims := make([]store.Claim, n)
		for i, t := range tasks[:n] {
			claims[i] = store.Claim{Task: t.ID, Generation: t.Generation, Agent: "bench", TokenHash: []byte("bench"), ExpiresAt: time.Now().Add(time.Hour)}
		}
		got, err := database.Claim(ctx, claims, nil)
		if err != nil {
			return claimed, err
		}
		claimed += len(got)
		tasks = tasks[n:]
	}
	return claimed, nil
}

func queue(ctx context.Context, database store.Tasks, count int) ([]task.Task, error) {
	repository := fmt.Sprintf("bench/run-%d", time.Now().UnixNano())
	queued := make([]task.Task, count)
	for i := range queued {
		made, _, err := database.Assign(ctx, store.NewTask{
			Key:  task.Key{Forge: task.Board, Repository: repository, Kind: task.Issue, Number: int64(i + 1)},
			Type: task.Development, Title: "measure", Reason: task.ReasonAssigned,
		}, nil)
		if err != nil {
			return nil, err
		}
		queued[i] = made
	}
	return queued, nil
}
