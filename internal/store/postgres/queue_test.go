package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// queued puts tasks of one repository into the queue.
func queued(t *testing.T, s store.Store, count int, change func(*store.NewTask)) {
	t.Helper()
	for i := range count {
		wanted := store.NewTask{
			Key:  task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: int64(i + 1)},
			Type: task.Development, Title: "x", Reason: task.ReasonAssigned,
		}
		change(&wanted)
		if _, _, err := s.Assign(t.Context(), wanted, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func connected(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

// TestALookThatFindsNothing: while one server hands out, another one that finds nothing to hand out does
// not wait for it, and knows when it has to look again.
func TestALookThatFindsNothing(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
	s := opened(t, address)
	defer closed(t, s)
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	queued(t, s, 1, func(w *store.NewTask) { w.ReadyAt = later })
	queued(t, s, 1, func(w *store.NewTask) {
		w.BlockedBy = task.KeysOf(w.Key)
		w.Key.Number = 2
	})
	other, err := connected(t, address).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), `SELECT pg_advisory_xact_lock(`+handOutLock+`)`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var seen store.Queue
	if _, err := s.HandOut(ctx, time.Now(), 10, func(queue store.Queue) []store.Claim {
		seen = queue
		return nil
	}, nil); err != nil {
		t.Errorf("it waits for the other server: %v", err)
	}
	if len(seen.Ready) != 0 || !seen.NextReady.Equal(later) {
		t.Errorf("the queue is %+v, want the next task at %s", seen, later)
	}
}

// TestALookReadsFewTasks: a look at the first tasks of a repository, and the claim of one, do not read all
// that wait there, whether PostgreSQL has counted them or not.
func TestALookReadsFewTasks(t *testing.T) {
	t.Parallel()
	const waiting, looked = 300, 2
	for _, counted := range []bool{true, false} {
		t.Run(fmt.Sprint(counted), func(t *testing.T) {
			t.Parallel()
			address := testkit.Postgres(t)
			watch := connected(t, address)
			s := opened(t, address)
			queued(t, s, waiting, func(*store.NewTask) {})
			closed(t, s)
			before := rowsRead(t, watch, "tasks", waiting, 0)
			if counted {
				if _, err := watch.Exec(t.Context(), `ANALYZE tasks`); err != nil {
					t.Fatal(err)
				}
			}
			s = opened(t, address)
			if _, err := s.HandOut(t.Context(), time.Now(), looked, func(queue store.Queue) []store.Claim {
				if len(queue.Ready) != looked {
					t.Errorf("it finds %d tasks", len(queue.Ready))
				}
				return claimsOf(queue.Ready[:1])
			}, nil); err != nil {
				t.Fatal(err)
			}
			closed(t, s)
			if read := rowsRead(t, watch, "tasks", waiting+1, before+looked) - before; read >= waiting {
				t.Errorf("it reads %d rows where %d tasks wait", read, waiting)
			}
		})
	}
}

// claimsOf claims tasks for an agent.
func claimsOf(ready []task.Task) (claims []store.Claim) {
	for _, t := range ready {
		claims = append(claims, store.Claim{Task: t.ID, Generation: t.Generation, Agent: "agent", TokenHash: []byte("token"), ExpiresAt: time.Now().Add(time.Hour)})
	}
	return claims
}

// TestALookAfterManyHaveEnded: while PostgreSQL still expects that most tasks are queued, as it does
// until it has counted again, a look at the few that are does not read those that have ended.
func TestALookAfterManyHaveEnded(t *testing.T) {
	t.Parallel()
	const all = 300
	for _, left := range []int{0, 2} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			t.Parallel()
			address := testkit.Postgres(t)
			watch := connected(t, address)
			s := opened(t, address)
			queued(t, s, all, func(*store.NewTask) {})
			for _, statement := range []string{`ANALYZE tasks`, fmt.Sprint(`UPDATE tasks SET state = 'done' WHERE number > `, left)} {
				if _, err := watch.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			closed(t, s)
			if err := watch.Close(t.Context()); err != nil { // what it has read is counted then
				t.Fatal(err)
			}
			watch = connected(t, address)
			before := rowsRead(t, watch, "tasks", all+all-left, all)
			s = opened(t, address)
			if _, err := s.HandOut(t.Context(), time.Now(), 10, func(queue store.Queue) []store.Claim {
				if len(queue.Ready) != left {
					t.Errorf("it finds %d tasks, want %d", len(queue.Ready), left)
				}
				return nil
			}, nil); err != nil {
				t.Fatal(err)
			}
			closed(t, s)
			if read := rowsRead(t, watch, "tasks", all+all-left, before+left) - before; read > 10 {
				t.Errorf("it reads %d rows where %d tasks have ended", read, all-left)
			}
		})
	}
}

// TestAnotherServerWasFirst: a server that had to wait for another one, and finds nothing left, does not
// read what runs, and knows when it has to look again.
func TestAnotherServerWasFirst(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
	s := opened(t, address)
	defer closed(t, s)
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	queued(t, s, 2, func(w *store.NewTask) {
		if w.Key.Number == 2 {
			w.ReadyAt = later
		}
	})
	watch := connected(t, address)
	other, err := connected(t, address).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), `SELECT pg_advisory_xact_lock(`+handOutLock+`)`); err != nil {
		t.Fatal(err)
	}
	var seen store.Queue
	done := make(chan error, 1)
	go func() {
		_, err := s.HandOut(t.Context(), time.Now(), 10, func(queue store.Queue) []store.Claim {
			seen = queue
			return nil
		}, nil)
		done <- err
	}()
	untilLocked(t, watch, done)
	if _, err := other.Exec(t.Context(), `UPDATE tasks SET state = 'running' WHERE number = 1`); err != nil {
		t.Fatal(err)
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(seen.Ready)+len(seen.Running) > 0 || !seen.NextReady.Equal(later) {
		t.Errorf("the queue is %+v, want nothing but the next task at %s", seen, later)
	}
}

// TestAWriteToATableThatHasGrown: a write does not read all others to see whether it is there already,
// also when PostgreSQL has planned that while there were few.
func TestAWriteToATableThatHasGrown(t *testing.T) {
	t.Parallel()
	const few, many = 20, 5000 // PostgreSQL keeps a plan from the sixth time on
	address := testkit.Postgres(t)
	watch := connected(t, address)
	s := opened(t, address)
	put := func(number int64) {
		t.Helper()
		if _, _, err := s.Put(t.Context(), store.Action{
			Item: task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: number}, IdempotencyKey: fmt.Sprint(number),
			Coalesce: "progress", Kind: "comment", Payload: []byte("{}"), DueAt: time.Now(),
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(few) {
		put(i + 1)
	}
	if _, err := watch.Exec(t.Context(), `INSERT INTO actions SELECT (json_populate_record(actions, json_build_object('id', id || '-' || n,
		'item', item || '-' || n, 'idempotency_key', 'key' || n))).* FROM actions, generate_series(1, $1::int) AS n WHERE idempotency_key = '1'`, many); err != nil {
		t.Fatal(err)
	}
	put(few + 1)
	closed(t, s)
	if err := watch.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	watch = connected(t, address)
	if read := rowsRead(t, watch, "actions", few+many+1, 0); read >= many {
		t.Errorf("%d rows were read for %d writes to a table of %d", read, few+1, many)
	}
}

// rowsRead is how many rows of a table were read by connections that have ended, as they all have soon.
// It waits until so many rows that were written and read are counted: before PostgreSQL 15 that takes a moment.
func rowsRead(t *testing.T, watch *pgx.Conn, table string, written, least int) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		var left, wrote, read int
		if err := watch.QueryRow(ctx, `SELECT (SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'toryo'),
			n_tup_ins + n_tup_upd, seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = $1`, table).Scan(&left, &wrote, &read); err != nil {
			t.Fatal(err)
		}
		if left == 0 && wrote >= written && read >= least {
			return read
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d connections are left, and %d rows that were written and %d that were read are counted, want %d and %d", left, wrote, read, written, least)
		case <-again.C:
		}
	}
}
