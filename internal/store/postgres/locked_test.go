package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// TestALockedTask: while somebody has locked one task, others can be moved. The locked one is moved
// when it is free.
func TestALockedTask(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
	s := opened(t, address)
	defer closed(t, s)
	assigned := func(number int64) task.Task {
		made, _, err := s.Assign(t.Context(), store.NewTask{
			Key:  task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: number},
			Type: task.Development, Title: "x", Reason: task.ReasonAssigned,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	move := func(x task.Task) error {
		_, err := s.Move(t.Context(), store.Change{Task: x.ID, Trigger: task.Withdrawn, Reason: task.ReasonUnassigned})
		return err
	}
	locked, other := assigned(1), assigned(2)
	watch := connected(t, address)
	lock, err := connected(t, address).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `SELECT 1 FROM tasks WHERE id = $1 FOR UPDATE`, locked.ID); err != nil {
		t.Fatal(err)
	}
	moved := make(chan error, 1)
	go func() { moved <- move(locked) }()
	untilLocked(t, watch, moved)
	if err := move(other); err != nil {
		t.Errorf("another task: %v", err)
	}
	select {
	case err := <-moved:
		t.Errorf("the locked task is moved: %v", err)
	default:
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-moved; err != nil {
		t.Errorf("the task that was locked: %v", err)
	}
}

// untilLocked returns when a session of the database waits for a lock. What is to wait must not be done before.
func untilLocked(t *testing.T, watch *pgx.Conn, done <-chan error) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for waits := 0; waits == 0; {
		select {
		case err := <-done:
			t.Fatalf("it does not wait: %v", err)
		case <-again.C:
		}
		if err := watch.QueryRow(t.Context(), `SELECT COUNT(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
}
