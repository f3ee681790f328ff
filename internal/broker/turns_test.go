package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// The places are in the order by which the hand-out decides: a repository that was served goes
// behind one that was not.
func TestTurnsKnowWhatWasServed(t *testing.T) {
	t.Parallel()
	s := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	in := func(repository, title string) func(*store.NewTask) {
		return func(w *store.NewTask) { w.Key.Repository, w.Title = repository, title }
	}
	assignTask(t, s, in("team/app", "first"))
	assignTask(t, s, in("team/app", "second"))
	assignTask(t, s, in("team/other", "elsewhere"))
	h, _ := handsOut(t, s)
	given := ask(t, h, "a").get(t)
	if given.Task.Title != "first" {
		t.Fatalf("given %s", given.Task.Title)
	}
	if _, err := s.Move(t.Context(), store.Change{Task: given.Task.ID, Trigger: task.GaveUp, Reason: task.ReasonRunFailed}); err != nil {
		t.Fatal(err)
	}
	turns, err := h.Turns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, turn := range turns {
		is, err := s.Task(t.Context(), turn.Task)
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, is.Title)
	}
	if diff := cmp.Diff([]string{"elsewhere", "second"}, order); diff != "" {
		t.Errorf("the order is (-want +got):\n%s", diff)
	}
	if next := ask(t, h, "a").get(t); next.Task.Title != order[0] {
		t.Errorf("given %s next", next.Task.Title)
	}
}

// A task that a person resumes or retries is ready at once, whatever it waited for before.
func TestResumedTasksAreReady(t *testing.T) {
	t.Parallel()
	s := opened(t, sqlite.Open, testkit.SQLite(t, sqlite.Open))
	sender := outbox.NewSender(outbox.SenderOptions{Outbox: s, Tasks: s})
	snapshots := items.NewSnapshots(map[task.Forge]forge.Reader{}, items.DefaultAges, nil)
	t.Cleanup(snapshots.Stop)
	controller := broker.NewController(broker.ControllerOptions{
		Store: s, Sender: sender, Status: &broker.StatusText{Labels: labels, Language: "en", Snapshots: snapshots, GitURL: func(task.ID) string { return "" }},
	})
	for name, do := range map[string]func(context.Context, task.ID) error{
		"resumed": func(ctx context.Context, id task.ID) error {
			if _, err := controller.Pause(ctx, id, task.ReasonPauseRequested); err != nil {
				return err
			}
			_, err := controller.Resume(ctx, id)
			return err
		},
		"retried": func(ctx context.Context, id task.ID) error {
			if _, err := controller.StopTask(ctx, id, task.ReasonStopRequested); err != nil {
				return err
			}
			_, err := controller.Retry(ctx, id)
			return err
		},
	} {
		made := assignTask(t, s, func(w *store.NewTask) { w.ReadyAt = time.Now().Add(time.Hour) })
		if err := do(t.Context(), made.ID); err != nil {
			t.Fatal(name, err)
		}
		is, err := s.Task(t.Context(), made.ID)
		if err != nil || is.State != task.Queued || is.ReadyAt.After(time.Now()) {
			t.Errorf("the task that was %s is %s, and ready at %s: %v", name, is.State, is.ReadyAt, err)
		}
	}
}
