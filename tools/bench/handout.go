package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/leader"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	benchServers = 3
	benchAgents  = 100
	handedOut    = 3000 // tasks for the throughput
	oneByOne     = 300  // tasks for the latency
)

// measureHandOut hands out tasks on PostgreSQL with several servers and many
// agents, each of which ends its task and asks again; and then one task at a time,
// to agents that wait. HTTP is not in it.
func measureHandOut(ctx context.Context, _ string) ([]row, error) {
	url := os.Getenv("TORYO_TEST_POSTGRES")
	if url == "" {
		return nil, nil
	}
	var servers []*broker.HandOut
	var stores []store.Store
	defer func() {
		for _, database := range stores {
			_ = database.Close()
		}
	}()
	for range benchServers {
		database, err := postgres.Open(ctx, url)
		if err != nil {
			return nil, err
		}
		stores = append(stores, database)
		servers = append(servers, benchHandOut(database))
	}
	// What other measures have left in the queue is not handed out here.
	if err := emptyQueue(ctx, stores[0]); err != nil {
		return nil, err
	}
	if _, err := queue(ctx, stores[0], handedOut); err != nil {
		return nil, err
	}
	before, err := spentOn(ctx, url, stores)
	if err != nil {
		return nil, err
	}
	rate, err := handOutRate(ctx, stores, servers)
	if err != nil {
		return nil, err
	}
	after, err := spentOn(ctx, url, stores)
	if err != nil {
		return nil, err
	}
	waits, err := handOutLatency(ctx, stores, servers)
	if err != nil {
		return nil, err
	}
	resumed, err := resumeTimes(ctx, stores[0])
	if err != nil {
		return nil, err
	}
	takeOver, err := takeOverTime(ctx, stores)
	if err != nil {
		return nil, err
	}
	setting := fmt.Sprintf("PostgreSQL, %d servers, %d agents", benchServers, benchAgents)
	return []row{
		{"tasks handed out and ended, " + setting, fmt.Sprintf("%.0f/s", rate), "as many as River"},
		{"statements, commits and processor time of each of them (servers and agents; PostgreSQL)", after.perTask(before), ""},
		{"from assignment to agent, " + setting + ", p50", waits[len(waits)/2].Round(10 * time.Microsecond).String(), "under 3 ms"},
		{"the same, p99", waits[len(waits)*99/100].Round(10 * time.Microsecond).String(), "under 25 ms"},
		{"from the end of a lease to the next agent, mean and longest of " + fmt.Sprint(len(resumed)), resumed.String(), "seconds"},
		{"background work taken over from a server that died", takeOver.Round(10 * time.Millisecond).String(), "seconds"},
	}, nil
}

var benchLabels outbox.Labels = func(task.Forge) task.LabelNames { return task.DefaultLabelNames() }

func benchHandOut(database store.Store) *broker.HandOut {
	return broker.NewHandOut(broker.HandOutOptions{
		Leases: database, Tasks: database, Notices: database, Outbox: database, Lease: time.Minute, Renew: 15 * time.Second, MaxAttempts: 1000,
		Labels: benchLabels,
		Token:  access.NewLeaseToken, Hash: access.Hash, Now: time.Now,
		Prepare: func(_ context.Context, given assignment.Assignment) (assignment.Assignment, error) {
			return given, nil
		},
	})
}

const (
	expiries   = 5
	shortLease = time.Second
)

type durations []time.Duration

// String is the mean and the longest.
func (d durations) String() string {
	var sum time.Duration
	for _, one := range d {
		sum += one
	}
	return (sum / time.Duration(len(d))).Round(10*time.Millisecond).String() + ", " + slices.Max(d).Round(10*time.Millisecond).String()
}

// resumeTimes lets an agent take a task and fall silent, several times, and returns
// how long after the end of its lease another one has the task, which is looked for
// once a second as in the product.
func resumeTimes(ctx context.Context, database store.Store) (durations, error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	hands := broker.NewHandOut(broker.HandOutOptions{
		Leases: database, Tasks: database, Notices: database, Outbox: database, Lease: shortLease, Renew: shortLease / 3, MaxAttempts: 1000, Labels: benchLabels,
		Token: access.NewLeaseToken, Hash: access.Hash, Now: time.Now,
		Prepare: func(_ context.Context, given assignment.Assignment) (assignment.Assignment, error) {
			return given, nil
		},
	})
	hands.Start(ctx)
	defer hands.Stop()
	expiry := &broker.Expiry{
		Leases: database, Tasks: database, MaxAttempts: 1000, Labels: benchLabels, Now: time.Now, OutboxChanged: func() {}, Log: slog.New(slog.DiscardHandler),
	}
	background := &leader.Election{
		Elections: database, Server: fmt.Sprintf("bench %d resume", time.Now().UnixNano()), Log: slog.New(slog.DiscardHandler),
		Jobs: []leader.Job{{Name: "end leases", Every: time.Second, Do: expiry.Expire}},
	}
	background.Start(ctx)
	defer background.Stop(ctx)
	if _, err := queue(ctx, database, 1); err != nil {
		return nil, err
	}
	var took durations
	given, found, err := hands.Request(ctx, broker.Asker{Agent: "agent 0"}, time.Minute)
	for i := range expiries {
		if err != nil || !found {
			return nil, fmt.Errorf("nobody is given a task: %w", err)
		}
		over := given.Task.Lease.ExpiresAt
		if given, found, err = hands.Request(ctx, broker.Asker{Agent: fmt.Sprint("agent ", i+1)}, time.Minute); found {
			took = append(took, time.Since(over))
		}
	}
	_, err = database.Move(ctx, store.Change{Task: given.Task.ID, Trigger: task.Withdrawn, Reason: task.ReasonUnassigned})
	return took, err
}

func emptyQueue(ctx context.Context, database store.Store) error {
	left, err := database.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Queued, task.Running}})
	if err != nil {
		return err
	}
	for _, t := range left {
		if _, err := database.Move(ctx, store.Change{Task: t.ID, Trigger: task.Withdrawn, Reason: task.ReasonUnassigned}); err != nil {
			return err
		}
	}
	return nil
}

// handOutRate returns how many tasks a second went to agents and were ended by
// them.
func handOutRate(ctx context.Context, stores []store.Store, servers []*broker.HandOut) (float64, error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	var ended atomic.Int64
	var failed atomic.Pointer[error]
	var working sync.WaitGroup
	begun := time.Now()
	for i := range benchAgents {
		working.Go(func() {
			agent := fmt.Sprint("agent ", i)
			for ctx.Err() == nil {
				found, err := takeAndEnd(ctx, servers[i%benchServers], stores[i%benchServers], agent)
				if err != nil {
					failed.Store(&err)
					done()
				}
				if found && ended.Add(1) == handedOut {
					done()
				}
			}
		})
	}
	for _, server := range servers {
		server.Start(ctx)
	}
	working.Wait()
	took := time.Since(begun)
	if err := failed.Load(); err != nil && ended.Load() != handedOut {
		return 0, *err
	}
	return handedOut / took.Seconds(), nil
}

// spent is what was done so far, by all servers together.
type spent struct {
	counts         store.Counts
	ours, database time.Duration // of the processors; that of the database is known on the same machine only
}

func spentOn(ctx context.Context, url string, stores []store.Store) (s spent, err error) {
	for _, one := range stores {
		counts := one.Counts()
		s.counts.Statements += counts.Statements
		s.counts.Commits += counts.Commits
	}
	s.ours = processorTime()
	connection, err := pgx.Connect(ctx, url)
	if err != nil {
		return s, err
	}
	defer func() { _ = connection.Close(ctx) }()
	rows, err := connection.Query(ctx, `SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()`)
	if err != nil {
		return s, err
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	for _, pid := range pids {
		used, _ := processorTimeOf(pid) // 0 if it is on another machine
		s.database += used
	}
	return s, err
}

// perTask is what each of the tasks took since.
func (s spent) perTask(before spent) string {
	return fmt.Sprintf("%.1f, %.2f, %.0f µs; %.0f µs",
		float64(s.counts.Statements-before.counts.Statements)/handedOut, float64(s.counts.Commits-before.counts.Commits)/handedOut,
		float64((s.ours-before.ours).Microseconds())/handedOut, float64((s.database-before.database).Microseconds())/handedOut)
}

// takeAndEnd waits for a task and ends it.
func takeAndEnd(ctx context.Context, server *broker.HandOut, database store.Store, agent string) (found bool, err error) {
	given, found, err := server.Request(ctx, broker.Asker{Agent: agent}, time.Minute)
	if err != nil || !found {
		return false, err
	}
	_, err = database.EndRun(ctx, store.RunEnd{
		Task: given.Task.ID, Generation: given.Task.Generation, TokenHash: access.Hash(given.Token), Outcome: string(task.OutcomeDone),
		Decide: func(task.Task, []store.Halt) (store.Change, []task.Event, error) {
			return store.Change{Trigger: task.Finished, Reason: task.ReasonCompleted, Effects: benchLabels.Effects}, nil, nil
		},
	})
	return err == nil, err
}

// handOutLatency returns how long it took from the beginning of an assignment to
// its arrival at one of the agents that wait, sorted.
func handOutLatency(ctx context.Context, stores []store.Store, servers []*broker.HandOut) ([]time.Duration, error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	arrived := make(chan assignment.Assignment, benchAgents)
	for i := range benchAgents {
		go func() {
			for ctx.Err() == nil {
				if given, found, err := servers[i%benchServers].Request(ctx, broker.Asker{Agent: fmt.Sprint("agent ", i)}, time.Minute); found && err == nil {
					arrived <- *given
				}
			}
		}()
	}
	repository := fmt.Sprintf("bench/latency-%d", time.Now().UnixNano())
	var waits []time.Duration
	for i := range oneByOne {
		for servers[0].Waiting()+servers[1].Waiting()+servers[2].Waiting() < benchAgents {
			if err := lifecycle.Sleep(ctx, time.Millisecond); err != nil {
				return nil, err
			}
		}
		begun := time.Now()
		_, _, err := stores[i%benchServers].Assign(ctx, store.NewTask{
			Key:  task.Key{Forge: task.Board, Repository: repository, Kind: task.Issue, Number: int64(i + 1)},
			Type: task.Development, Title: "measure", Reason: task.ReasonAssigned,
		}, nil)
		if err != nil {
			return nil, err
		}
		given := <-arrived
		waits = append(waits, time.Since(begun))
		if _, err := stores[0].Move(ctx, store.Change{Task: given.Task.ID, Trigger: task.Finished, Reason: task.ReasonCompleted}); err != nil {
			return nil, err
		}
	}
	slices.Sort(waits)
	return waits, nil
}

// takeOverTime lets a server take the background work and die, and returns how long
// it is until another one does it.
func takeOverTime(ctx context.Context, stores []store.Store) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begins := make(chan time.Time, 4)
	takesPart := func(name string, elections store.Elections) *leader.Election {
		return &leader.Election{Elections: elections, Server: name, Log: slog.New(slog.DiscardHandler), Jobs: []leader.Job{{
			Name: "begin", Every: time.Hour, Do: func(context.Context) error {
				begins <- time.Now()
				return nil
			},
		}}}
	}
	name := fmt.Sprintf("bench %d ", time.Now().UnixNano())
	mortal := &mortal{Elections: stores[0]}
	first := takesPart(name+"first", mortal)
	first.Start(ctx)
	select {
	case <-begins:
	case <-time.After(time.Minute):
		return 0, fmt.Errorf("nobody does the background work")
	}
	second := takesPart(name+"second", stores[1])
	second.Start(ctx)
	defer second.Stop(ctx)
	died := time.Now()
	mortal.dead.Store(true)
	took := (<-begins).Sub(died)
	first.Stop(ctx)
	return took, nil
}

// mortal is a connection to the database that can be cut off.
type mortal struct {
	store.Elections
	dead atomic.Bool
}

// Lead fails once it is cut off.
func (m *mortal) Lead(ctx context.Context, election, server string, lasting time.Duration) (bool, error) {
	if m.dead.Load() {
		return false, fmt.Errorf("the server is dead")
	}
	return m.Elections.Lead(ctx, election, server, lasting)
}
