// River measures what the job library of that name does with as many jobs, servers
// and workers as our own hand-out is measured with, on the same PostgreSQL. It is
// run by make bench, and is a module of its own so that the product does not depend
// on the library.
//
//	go run . SERVERS WORKERS JOBS ONE-BY-ONE COOLDOWN
//
// The cooldown is for how long a client rests between two fetches, in milliseconds;
// 0 means what the library does unless it is told.
// The URL of a database that may be written to is in TORYO_TEST_POSTGRES. It prints
// one line of JSON: jobs per second, and how long it takes from the insertion of a
// job to its worker, in milliseconds.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// job is a job that does nothing.
type job struct {
	Number int `json:"number"`
}

// Kind implements river.JobArgs.
func (job) Kind() string { return "nothing" }

// worker tells that a job has reached it.
type worker struct {
	river.WorkerDefaults[job]
	reached func()
}

// Work implements river.Worker.
func (w *worker) Work(context.Context, *river.Job[job]) error {
	w.reached()
	return nil
}

// Measured is what is printed.
type Measured struct {
	PerSecond float64 `json:"per_second"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
}

func main() {
	measured, err := run(context.Background())
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(measured)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (measured Measured, err error) {
	var numbers [5]int
	if len(os.Args) != len(numbers)+1 {
		return measured, fmt.Errorf("usage: river SERVERS WORKERS JOBS ONE-BY-ONE COOLDOWN")
	}
	for i := range numbers {
		if numbers[i], err = strconv.Atoi(os.Args[i+1]); err != nil || numbers[i] < 0 {
			return measured, fmt.Errorf("%q is not a number of anything", os.Args[i+1])
		}
	}
	servers, workers, jobs, single := numbers[0], numbers[1], numbers[2], numbers[3]
	arrived := make(chan time.Time, jobs)
	cooldown := time.Duration(numbers[4]) * time.Millisecond
	all, end, err := open(ctx, servers, workers, cooldown, func() { arrived <- time.Now() })
	if err != nil {
		return measured, err
	}
	defer end()
	if measured.PerSecond, err = rate(ctx, all, jobs, arrived); err != nil {
		return measured, err
	}
	waits, err := latency(ctx, all, single, arrived)
	if err != nil {
		return measured, err
	}
	measured.P50 = float64(waits[len(waits)/2].Microseconds()) / 1000
	measured.P99 = float64(waits[len(waits)*99/100].Microseconds()) / 1000
	return measured, nil
}

// open makes River's tables and as many clients as there are servers, each with its
// share of the workers.
func open(ctx context.Context, servers, workers int, cooldown time.Duration, reached func()) (all []*river.Client[pgx.Tx], end func(), err error) {
	var pools []*pgxpool.Pool
	end = func() {
		for _, client := range all {
			_ = client.StopAndCancel(ctx) // it may not have been started
		}
		for _, pool := range pools {
			pool.Close()
		}
	}
	for i := range servers {
		pool, err := pgxpool.New(ctx, os.Getenv("TORYO_TEST_POSTGRES"))
		if err != nil {
			return nil, end, err
		}
		pools = append(pools, pool)
		if i == 0 {
			migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
			if err != nil {
				return nil, end, err
			}
			if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
				return nil, end, err
			}
		}
		known := river.NewWorkers()
		river.AddWorker(known, &worker{reached: reached})
		client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
			Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: (workers + servers - 1) / servers}},
			Workers: known, Logger: slog.New(slog.DiscardHandler), FetchCooldown: cooldown,
		})
		if err != nil {
			return nil, end, err
		}
		all = append(all, client)
	}
	return all, end, nil
}

// rate is how many jobs a second are fetched and worked on, which are there when the
// clients start.
func rate(ctx context.Context, all []*river.Client[pgx.Tx], jobs int, arrived <-chan time.Time) (float64, error) {
	many := make([]river.InsertManyParams, jobs)
	for i := range many {
		many[i].Args = job{i}
	}
	if _, err := all[0].InsertManyFast(ctx, many); err != nil {
		return 0, err
	}
	begun := time.Now()
	for _, client := range all {
		if err := client.Start(ctx); err != nil {
			return 0, err
		}
	}
	for range jobs {
		<-arrived
	}
	return float64(jobs) / time.Since(begun).Seconds(), nil
}

// latency is how long single jobs take to reach a worker, sorted. It begins with the
// insertion.
func latency(ctx context.Context, all []*river.Client[pgx.Tx], single int, arrived <-chan time.Time) ([]time.Duration, error) {
	var waits []time.Duration
	for i := range single {
		begun := time.Now()
		if _, err := all[i%len(all)].Insert(ctx, job{i}, nil); err != nil {
			return nil, err
		}
		waits = append(waits, (<-arrived).Sub(begun))
	}
	slices.Sort(waits)
	return waits, nil
}
