package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// TestAFullDisk: while nothing can be written everything can be read, the error is one that
// passes, and afterwards it goes on.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	disk := testkit.NewDisk(t, 8<<20, 1000)
	if disk == nil {
		return
	}
	s := opened(t, filepath.Join(disk.Dir, "toryo.db"))
	assign := func(number int) error {
		_, _, err := s.Assign(t.Context(), store.NewTask{
			Key:  task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: int64(number)},
			Type: task.Development, Title: "Fix the gate", Reason: task.ReasonAssigned,
		}, nil)
		return err
	}
	if err := assign(1); err != nil {
		t.Fatal(err)
	}
	disk.Fill(t)
	// What the file of the log has room for is still taken.
	number := 1
	deadline := time.Now().Add(time.Minute)
	var err error
	for ; err == nil && time.Now().Before(deadline); number++ {
		err = assign(number + 1)
	}
	if task.CodeOf(err) != task.DatabaseDown {
		t.Fatalf("on a full disk: %v", err)
	}
	if found, err := s.ListTasks(t.Context(), store.TaskFilter{}); err != nil || len(found) != number-1 {
		t.Errorf("%d tasks can be read, %v; %d were made", len(found), err, number-1)
	}
	disk.Free(t)
	if err := assign(number); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if err := s.TestWrite(t.Context()); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
