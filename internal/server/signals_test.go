package server

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// onSQLite runs a test on one database, where the other can make no difference.
func onSQLite(t *testing.T, settings ...setting) *workshop {
	t.Helper()
	return newWorkshop(t, newHouse(t).store, settings...)
}

// await waits for signals in the background.
func await(t *testing.T, held *wire.RunClient) <-chan wire.Signals {
	t.Helper()
	arrived := make(chan wire.Signals, 1)
	go func() {
		signals, err := held.Signals(t.Context(), 0, time.Minute)
		if err != nil {
			t.Errorf("waiting for signals: %v", err)
		}
		arrived <- signals
	}()
	return arrived
}

func (w *workshop) unassign(t *testing.T, key task.Key) {
	t.Helper()
	if err := w.forge.Unassign(t.Context(), key, bot); err != nil {
		t.Fatal(err)
	}
	w.changes.Publish(items.Change{Items: []task.Key{key}}) // as a webhook says
}

func (w *workshop) wantState(t *testing.T, id task.ID, state task.State, reason task.Reason) task.Task {
	t.Helper()
	is, err := w.store.Task(t.Context(), id)
	if err != nil || is.State != state || is.Reason != reason {
		t.Fatalf("the task is %s (%s), %v; want %s (%s)", is.State, is.Reason, err, state, reason)
	}
	return is
}

// Unassigning reaches a waiting agent; it saves and answers; then the task is
// stopped, with label and comment, and the run is over.
func TestUnassigningStopsARun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		made := w.issue(t, "Fix the gate")
		held, _ := w.claim(t, made.ID)
		arrived := await(t, held)
		w.unassign(t, made.Key)
		signals := <-arrived
		if signals.Stop == nil || signals.Stop.Reason != string(task.ReasonUnassigned) || signals.Pause != nil {
			t.Fatalf("the agent hears %+v", signals)
		}
		w.wantState(t, made.ID, task.Running, task.ReasonClaimed) // until the agent has saved
		w.pass(5 * time.Second)                                   // of ten that it has
		kept := strings.Repeat("abc12", 8)
		if err := held.Finish(t.Context(), wire.Result{Outcome: "stopped", Kept: kept, CutAfter: 12}); err != nil {
			t.Fatal(err)
		}
		after := w.wantState(t, made.ID, task.Stopped, task.ReasonUnassigned)
		w.settle(t, made.Key)
		w.wantLabel(t, made.Key, task.Stopped)
		w.wantComments(t, made.Key, "Stopped.")
		said := w.comments(t, made.Key)[0].Body
		for _, part := range []string{"the bot was unassigned", "`" + kept + "`", "git fetch https://toryo.example/git/" + string(made.ID) + ".git " + kept + "\n", w.now().AddDate(0, 0, 29).UTC().Format(time.DateOnly)} {
			if !strings.Contains(said, part) {
				t.Errorf("%q is not said in\n%s", part, said)
			}
		}
		if !regexp.MustCompile(`It took ([5-9]|\d\d+)\.\d s`).MatchString(said) {
			t.Errorf("how long it took is not said in\n%s", said)
		}
		if _, err := held.Renew(t.Context()); task.CodeOf(err) != task.LeaseLost {
			t.Errorf("renewing after the stop: %v", err)
		}
		if want := w.now().AddDate(0, 0, 30).UTC().Format(time.DateOnly); after.KeptUntil.Format(time.DateOnly) != want {
			t.Errorf("it is kept until %v, want %s", after.KeptUntil, want)
		}
		if after.Generation != made.Generation+1 {
			t.Errorf("the stop is generation %d", after.Generation)
		}
	})
}

// In the language of the issue.
func TestStopIsSaidInJapanese(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "門を直してください")
	w.unassign(t, made.Key)
	if err := w.intake.Look(t.Context(), made.Key, 0); err != nil {
		t.Fatal(err)
	}
	w.settle(t, made.Key)
	w.wantComments(t, made.Key, "停止しました。")
}

// The body tells the language as well as the title, which may be a name only.
func TestStopIsSaidInTheLanguageOfTheBody(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "NullPointerException in UserService")
	w.forge.Change(made.Key, func(i *forge.Item) {
		i.Body = "ログインすると例外が発生します。直してください。"
	})
	w.unassign(t, made.Key)
	if err := w.intake.Look(t.Context(), made.Key, 0); err != nil {
		t.Fatal(err)
	}
	w.settle(t, made.Key)
	w.wantComments(t, made.Key, "停止しました。")
}

// A task that nobody holds is stopped at once, also while it is paused, and so is
// one whose item is closed.
func TestStopWithoutAnAgent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		for name, c := range map[string]struct {
			paused bool
			end    func(task.Key)
			reason task.Reason
		}{
			"queued and unassigned": {false, func(key task.Key) { w.unassign(t, key) }, task.ReasonUnassigned},
			"paused and unassigned": {true, func(key task.Key) { w.unassign(t, key) }, task.ReasonUnassigned},
			"queued and closed":     {false, w.forge.Close, task.ReasonItemClosed},
			"paused and closed":     {true, w.forge.Close, task.ReasonItemClosed},
		} {
			made := w.issue(t, name)
			if c.paused {
				if _, err := w.controller.Pause(t.Context(), made.ID, task.ReasonPauseRequested); err != nil {
					t.Fatal(err)
				}
				w.wantState(t, made.ID, task.Paused, task.ReasonPauseRequested)
			}
			c.end(made.Key)
			if err := w.intake.Look(t.Context(), made.Key, 0); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			w.wantState(t, made.ID, task.Stopped, c.reason)
			w.settle(t, made.Key)
			w.wantLabel(t, made.Key, task.Stopped)
		}
	})
}

// An agent that does not answer in time is fenced off, and what it saved last is
// named.
func TestAgentThatDoesNotAnswerAStop(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		made := w.issue(t, "Fix the gate")
		held, _ := w.claim(t, made.ID)
		if _, err := held.Report(t.Context(), []wire.Entry{entry(1, task.Saved, `{"step":1,"commit":"wip77"}`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.controller.StopTask(t.Context(), made.ID, task.ReasonStopRequested); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Second) // of ten that it has
		if _, err := w.controller.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantState(t, made.ID, task.Running, task.ReasonClaimed)
		w.pass(10 * time.Second)
		if _, err := w.controller.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantState(t, made.ID, task.Stopped, task.ReasonStopRequested)
		w.settle(t, made.Key)
		w.wantLabel(t, made.Key, task.Stopped)
		if said := w.comments(t, made.Key)[0].Body; !strings.Contains(said, "wip77") || !strings.Contains(said, "did not respond in time") {
			t.Errorf("it is said\n%s", said)
		}
		for name, err := range map[string]error{
			"result":   held.Finish(t.Context(), wire.Result{Outcome: "stopped"}),
			"progress": held.Progress(t.Context(), "late"),
			"comment":  held.AddComment(t.Context(), wire.NewComment{Name: "late", Text: "late"}),
			"events":   second(held.Report(t.Context(), []wire.Entry{entry(2, task.NoteTaken, `{}`)})),
			"pull":     second(held.OpenPull(t.Context(), wire.OpenPull{Branch: "b", Commit: "c", Base: "main", Title: "t"})),
		} {
			if task.CodeOf(err) != task.LeaseLost {
				t.Errorf("%s of an agent that is fenced off: %v", name, err)
			}
		}
		w.wantComments(t, made.Key, "Stopped.")
	})
}

func second[T any](_ T, err error) error { return err }

// An item that cannot be read stops nothing, and is looked at again. A look asks the forge
// for it once.
func TestUnreadableItemStopsNothing(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	_, running := w.claim(t, made.ID)
	var asked atomic.Int32
	w.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "Item" {
			asked.Add(1)
		}
		return dummy.Refuse
	})
	w.snapshots.Changed(made.Key)
	if err := w.watcher.Look(t.Context(), running); err == nil {
		t.Error("looking at an item that cannot be read succeeds")
	}
	if times := asked.Load(); times != 1 {
		t.Errorf("the forge was asked %d times", times)
	}
	w.wantState(t, made.ID, task.Running, task.ReasonClaimed)
	w.forge.SetFaults(nil)
	w.forge.AddComment(made.Key, "alice", "and paint it")
	w.snapshots.Changed(made.Key)
	if err := w.watcher.Look(t.Context(), running); err != nil {
		t.Fatal(err)
	}
	if entries, _, err := w.store.KnownComments(t.Context(), made.ID); err != nil || len(entries) != 1 {
		t.Errorf("the comment was not found at the next look: %v, %v", entries, err)
	}
}

// While a stop is pending nothing is opened or finished; what was opened before
// counts.
func TestStopAndFinishEndInOne(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		open := wire.OpenPull{Branch: "toryo/1", Commit: "c1", Base: "main", Title: "Fix it", Body: "Fixed."}
		made := w.issue(t, "before the pull request")
		held, _ := w.claim(t, made.ID)
		if _, err := w.controller.StopTask(t.Context(), made.ID, task.ReasonUnassigned); err != nil {
			t.Fatal(err)
		}
		if _, err := held.OpenPull(t.Context(), open); task.CodeOf(err) != task.Conflict {
			t.Errorf("a pull request while a stop is pending: %v", err)
		}
		if err := held.Finish(t.Context(), wire.Result{Outcome: "done"}); task.CodeOf(err) != task.Conflict {
			t.Errorf("done while a stop is pending: %v", err)
		}
		if err := held.Finish(t.Context(), wire.Result{Outcome: "stopped"}); err != nil {
			t.Fatal(err)
		}
		w.wantState(t, made.ID, task.Stopped, task.ReasonUnassigned)
		if _, published := w.published.Load("toryo/1"); published {
			t.Error("the branch was published")
		}

		made = w.issue(t, "after the pull request")
		held, _ = w.claim(t, made.ID)
		open.Branch = "toryo/2"
		pulled, err := held.OpenPull(t.Context(), open)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.controller.StopTask(t.Context(), made.ID, task.ReasonUnassigned); err != nil {
			t.Fatal(err)
		}
		if again, err := held.OpenPull(t.Context(), open); err != nil || again.Number != pulled.Number {
			t.Errorf("asking again for what is there: %+v, %v", again, err)
		}
		if err := held.Finish(t.Context(), wire.Result{Outcome: "done", Comment: "Done."}); err != nil {
			t.Fatal(err)
		}
		w.wantState(t, made.ID, task.Done, task.ReasonCompleted)
		if halts, err := database.HaltsOf(t.Context(), made.ID); err != nil || len(halts) != 0 {
			t.Errorf("%v are pending for a task that has ended, %v", halts, err)
		}
		w.settle(t, made.Key)
		w.wantLabel(t, made.Key, task.Done)
		w.wantComments(t, made.Key, "Done.")
	})
}

// However finish and stop meet, the task ends in one of them, and label and
// comments agree.
func TestRaceOfFinishAndStop(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		for i := range 12 {
			made := w.issue(t, fmt.Sprint("race ", i))
			held, _ := w.claim(t, made.ID)
			var finish error
			var all sync.WaitGroup
			all.Go(func() { finish = held.Finish(t.Context(), wire.Result{Outcome: "done", Comment: "Done."}) })
			all.Go(func() {
				_, err := w.controller.StopTask(t.Context(), made.ID, task.ReasonUnassigned)
				if err != nil && task.CodeOf(err) != task.IllegalMove {
					t.Error(err)
				}
			})
			all.Wait()
			if finish != nil {
				if err := held.Finish(t.Context(), wire.Result{Outcome: "stopped"}); err != nil {
					t.Fatalf("after %v: %v", finish, err)
				}
			}
			is, err := database.Task(t.Context(), made.ID)
			if err != nil || (is.State == task.Done) != (finish == nil) || !is.State.Terminal() {
				t.Fatalf("the task is %s although done gave %v, %v", is.State, finish, err)
			}
			w.settle(t, made.Key)
			w.wantLabel(t, made.Key, is.State)
			w.wantComments(t, made.Key, map[task.State]string{task.Done: "Done.", task.Stopped: "Stopped."}[is.State])
		}
	})
}

// Pause, go on elsewhere: the same progress comment, and what was said meanwhile.
func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		made := w.issue(t, "Fix the gate")
		w.forge.AddComment(made.Key, "alice", "it squeaks")
		held, _ := w.claim(t, made.ID)
		if err := held.Progress(t.Context(), "half-way"); err != nil {
			t.Fatal(err)
		}
		w.settle(t, made.Key)
		arrived := await(t, held)
		operator := w.client(w.token(t, access.Operator))
		if shown, err := operator.PauseTask(t.Context(), made.ID); err != nil || shown.State != "running" {
			t.Fatalf("paused: %+v, %v", shown, err)
		}
		if signals := <-arrived; signals.Pause == nil || signals.Stop != nil {
			t.Fatalf("the agent hears %+v", signals)
		}
		if err := held.Finish(t.Context(), wire.Result{Outcome: "paused", Kept: "wip1"}); err != nil {
			t.Fatal(err)
		}
		w.wantState(t, made.ID, task.Paused, task.ReasonPauseRequested)
		w.settle(t, made.Key)
		w.wantLabel(t, made.Key, task.Paused)
		w.forge.AddComment(made.Key, "alice", "paint it too")
		if shown, err := operator.ResumeTask(t.Context(), made.ID); err != nil || shown.State != "queued" {
			t.Fatalf("resumed: %+v, %v", shown, err)
		}
		next, running := w.goOn(t, made.ID)
		w.snapshots.Changed(made.Key)
		if err := w.watcher.Look(t.Context(), running); err != nil {
			t.Fatal(err)
		}
		signals, err := next.Signals(t.Context(), 0, 0)
		if err != nil || len(signals.Comments) != 1 || signals.Comments[0].Body != "paint it too" || signals.Comments[0].Change != "new" {
			t.Errorf("the run that goes on hears %+v, %v", signals, err)
		}
		if err := next.Progress(t.Context(), "three quarters"); err != nil {
			t.Fatal(err)
		}
		w.settle(t, made.Key)
		w.wantComments(t, made.Key, "three quarters", "Paused.", "Resumed.")
	})
}

// What people are told of a move is written even if the task has moved on before
// the forge could take it.
func TestQuickMovesAreAllTold(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	held, _ := w.claim(t, made.ID)
	w.settle(t, made.Key)
	w.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "CreateComment" || call.Method == "AddLabel" {
			return dummy.Refuse
		}
		return dummy.None
	})
	arrived := await(t, held)
	if _, err := w.controller.Pause(t.Context(), made.ID, task.ReasonPauseRequested); err != nil {
		t.Fatal(err)
	}
	<-arrived
	if err := held.Finish(t.Context(), wire.Result{Outcome: "paused"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.controller.Resume(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.controller.StopTask(t.Context(), made.ID, task.ReasonStopRequested); err != nil {
		t.Fatal(err)
	}
	w.forge.SetFaults(nil)
	w.settle(t, made.Key)
	w.wantComments(t, made.Key, "Paused.", "Resumed.", "Stopped.")
	w.wantLabel(t, made.Key, task.Stopped)
}

// A pause that is lifted before the agent has ended its run sends the task back
// into the queue; a stop beats a pause.
func TestHaltsMeet(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "lifted")
	held, _ := w.claim(t, made.ID)
	if _, err := w.controller.Pause(t.Context(), made.ID, task.ReasonPauseRequested); err != nil {
		t.Fatal(err)
	}
	if is, err := w.controller.Resume(t.Context(), made.ID); err != nil || is.State != task.Running {
		t.Fatalf("%s, %v", is.State, err)
	}
	if err := held.Finish(t.Context(), wire.Result{Outcome: "paused", Reason: string(task.ReasonPauseRequested)}); err != nil {
		t.Fatal(err)
	}
	w.wantState(t, made.ID, task.Queued, task.ReasonResumed)

	made = w.issue(t, "both")
	held, _ = w.claim(t, made.ID)
	for _, ask := range []func() (task.Task, error){
		func() (task.Task, error) { return w.controller.Pause(t.Context(), made.ID, task.ReasonPauseRequested) },
		func() (task.Task, error) { return w.controller.StopTask(t.Context(), made.ID, task.ReasonUnassigned) },
	} {
		if _, err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	if signals, err := held.Signals(t.Context(), 0, 0); err != nil || signals.Stop == nil || signals.Pause == nil {
		t.Errorf("the agent hears %+v, %v", signals, err)
	}
	if err := held.Finish(t.Context(), wire.Result{Outcome: "paused"}); err != nil {
		t.Fatal(err)
	}
	w.wantState(t, made.ID, task.Stopped, task.ReasonUnassigned)

	made = w.issue(t, "returned while a pause is pending")
	held, _ = w.claim(t, made.ID)
	if _, err := w.controller.Pause(t.Context(), made.ID, task.ReasonPauseRequested); err != nil {
		t.Fatal(err)
	}
	if err := held.Finish(t.Context(), wire.Result{Outcome: "returned"}); err != nil {
		t.Fatal(err)
	}
	w.wantState(t, made.ID, task.Paused, task.ReasonPauseRequested)

	made = w.issue(t, "nobody asked")
	held, _ = w.claim(t, made.ID)
	if err := held.Finish(t.Context(), wire.Result{Outcome: "stopped"}); task.CodeOf(err) != task.Conflict {
		t.Errorf("stopped although nobody asked: %v", err)
	}
	if err := held.Finish(t.Context(), wire.Result{Outcome: "paused", Reason: string(task.ReasonBudgetExhausted)}); err != nil {
		t.Fatal(err)
	}
	w.wantState(t, made.ID, task.Paused, task.ReasonBudgetExhausted)
}

// The pause of an agent that is lost comes about when its lease is over.
func TestPauseOfALostAgent(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	w.claim(t, made.ID)
	if _, err := w.controller.Pause(t.Context(), made.ID, task.ReasonPauseRequested); err != nil {
		t.Fatal(err)
	}
	if _, err := w.controller.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	running := w.wantState(t, made.ID, task.Running, task.ReasonClaimed)
	w.pass(2 * time.Minute)
	if done, err := w.controller.Halted(t.Context(), running); err != nil || !done {
		t.Fatalf("%v, %v", done, err)
	}
	w.wantState(t, made.ID, task.Paused, task.ReasonPauseRequested)
}

// The pause file pauses everything, and its removal lets everything go on by
// itself, but not what was paused for its own sake.
func TestPauseFile(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		running, alone, queued := w.issue(t, "running"), w.issue(t, "paused alone"), w.issue(t, "queued")
		if _, err := w.controller.Pause(t.Context(), alone.ID, task.ReasonPauseRequested); err != nil {
			t.Fatal(err)
		}
		held, _ := w.claim(t, running.ID)
		w.controller.Start(t.Context())
		t.Cleanup(w.controller.Stop)
		arrived := await(t, held)
		if err := os.WriteFile(w.pauseFile, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if signals := <-arrived; signals.Pause == nil || signals.Pause.Reason != string(task.ReasonAllPaused) {
			t.Fatalf("the agent hears %+v", signals)
		}
		if err := held.Finish(t.Context(), wire.Result{Outcome: "paused"}); err != nil {
			t.Fatal(err)
		}
		w.wantState(t, running.ID, task.Paused, task.ReasonAllPaused)
		if found, err := database.Queue(t.Context(), time.Now().Add(time.Hour), 0); err != nil || len(found.Ready) != 0 {
			t.Errorf("%d tasks would be handed out, %v", len(found.Ready), err)
		}
		rung, stop := w.notifier.Listen(running.ID)
		defer stop()
		if err := os.Remove(w.pauseFile); err != nil {
			t.Fatal(err)
		}
		for {
			is, err := database.Task(t.Context(), running.ID)
			if err != nil {
				t.Fatal(err)
			}
			if is.State == task.Queued {
				break
			}
			<-rung
		}
		w.wantState(t, alone.ID, task.Paused, task.ReasonPauseRequested)
		if found, err := database.Queue(t.Context(), time.Now().Add(time.Hour), 0); err != nil || len(found.Ready) != 2 {
			t.Errorf("%d tasks would be handed out, %v", len(found.Ready), err)
		}
		w.wantState(t, queued.ID, task.Queued, task.ReasonAssigned)
	})
}

func TestPausedForTooLong(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	if _, err := w.controller.Pause(t.Context(), made.ID, task.ReasonPauseRequested); err != nil {
		t.Fatal(err)
	}
	w.settle(t, made.Key)
	w.pass(30*24*time.Hour - time.Minute)
	if err := w.controller.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantState(t, made.ID, task.Paused, task.ReasonPauseRequested)
	w.pass(2 * time.Minute)
	if err := w.controller.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantState(t, made.ID, task.Stopped, task.ReasonPausedTooLong)
	w.settle(t, made.Key)
	w.wantLabel(t, made.Key, task.Stopped)
	w.wantComments(t, made.Key, "Paused.", "longer than 30 days")
}

// A task that waits for an answer is not stopped for that when the answer is there, and nobody
// has told of it; nor while nobody can look.
func TestAnAnswerBeforeTheTaskLapses(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	held, _ := w.claim(t, made.ID)
	if err := held.Finish(t.Context(), wire.Result{Outcome: "paused", Reason: string(task.ReasonAwaitingAnswer)}); err != nil {
		t.Fatal(err)
	}
	w.settle(t, made.Key)
	w.pass(31 * 24 * time.Hour)
	w.forge.SetFaults(func(dummy.Call) dummy.Fault { return dummy.Refuse })
	if err := w.controller.Expire(t.Context()); err == nil {
		t.Error("nobody says that the item cannot be read")
	}
	w.wantState(t, made.ID, task.Paused, task.ReasonAwaitingAnswer)
	w.forge.SetFaults(nil)
	w.look(t, made.ID)
	w.forge.AddComment(made.Key, "alice", "paint it green")
	if err := w.controller.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantState(t, made.ID, task.Queued, task.ReasonResumed)
}

// Without an answer it is stopped.
func TestNoAnswerForTooLong(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	held, _ := w.claim(t, made.ID)
	if err := held.Finish(t.Context(), wire.Result{Outcome: "paused", Reason: string(task.ReasonAwaitingAnswer)}); err != nil {
		t.Fatal(err)
	}
	w.settle(t, made.Key)
	w.pass(31 * 24 * time.Hour)
	if err := w.controller.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantState(t, made.ID, task.Stopped, task.ReasonPausedTooLong)
}

// Operators approve the plan that they name, if the task waits for the approval of that one.
// To resume the task is not enough.
func TestOperatorsApproveThePlanThatTheyName(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	operator := w.client(w.token(t, access.Operator))
	_, err := w.store.Append(t.Context(), []task.Event{
		{Task: made.ID, Generation: 1, Source: task.FromAgent, Sequence: 1, Kind: task.Planned, Data: []byte(`{"plan":{"revision":2}}`)},
		{Task: made.ID, Generation: 1, Source: task.FromAgent, Sequence: 2, Kind: task.SignalTaken,
			Data: []byte(`{"signal":{"signal":"pause","reason":"awaiting_approval","plan_revision":2}}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Move(t.Context(), store.Change{Task: made.ID, Generation: 1, Trigger: task.PauseSet, Reason: task.ReasonAwaitingApproval}); err != nil {
		t.Fatal(err)
	}
	if _, err := operator.ResumeTask(t.Context(), made.ID); task.CodeOf(err) != task.Conflict || !strings.Contains(err.Error(), "toryo tasks approve") {
		t.Errorf("to resume it answers %v", err)
	}
	if _, err := operator.ApproveTask(t.Context(), made.ID, 1); task.CodeOf(err) != task.Conflict {
		t.Errorf("to approve an earlier plan answers %v", err)
	}
	if _, err := operator.ApproveTask(t.Context(), made.ID, 0); err == nil {
		t.Error("no plan in particular is approved")
	}
	w.wantState(t, made.ID, task.Paused, task.ReasonAwaitingApproval)
	if shown, err := operator.ApproveTask(t.Context(), made.ID, 2); err != nil || shown.State != "queued" || shown.Reason != "plan_approved" {
		t.Errorf("%+v, %v", shown, err)
	}
}

// Operators steer; others may not.
func TestOperatorsSteer(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	viewer, operator := w.client(w.token(t, access.Viewer)), w.client(w.token(t, access.Operator))
	for _, do := range []func(*wire.Client) error{
		func(c *wire.Client) error { return second(c.StopTask(t.Context(), made.ID)) },
		func(c *wire.Client) error { return second(c.PauseTask(t.Context(), made.ID)) },
		func(c *wire.Client) error { return second(c.ResumeTask(t.Context(), made.ID)) },
		func(c *wire.Client) error { return second(c.RetryTask(t.Context(), made.ID)) },
		func(c *wire.Client) error { return second(c.ApproveTask(t.Context(), made.ID, 1)) },
		func(c *wire.Client) error { return second(c.PauseAll(t.Context())) },
		func(c *wire.Client) error { return second(c.ResumeAll(t.Context(), false)) },
	} {
		for _, client := range []*wire.Client{viewer, w.client(w.token(t, access.Agent))} {
			if err := do(client); task.CodeOf(err) != task.Forbidden {
				t.Errorf("someone who is no operator steers: %v", err)
			}
		}
	}
	if shown, err := operator.StopTask(t.Context(), made.ID); err != nil || shown.State != "stopped" || shown.Reason != "stop_requested" {
		t.Fatalf("%+v, %v", shown, err)
	}
	if _, err := operator.StopTask(t.Context(), made.ID); task.CodeOf(err) != task.IllegalMove {
		t.Errorf("stopping what has stopped: %v", err)
	}
	if shown, err := operator.RetryTask(t.Context(), made.ID); err != nil || shown.State != "queued" || shown.Reason != "retried" {
		t.Fatalf("%+v, %v", shown, err)
	}
	if _, err := operator.RetryTask(t.Context(), made.ID); task.CodeOf(err) != task.IllegalMove {
		t.Errorf("retrying what is queued: %v", err)
	}
	if _, err := operator.StopTask(t.Context(), "nothing"); task.CodeOf(err) != task.NotFound {
		t.Errorf("a task that is not there: %v", err)
	}
	if pauses, err := operator.PauseAll(t.Context()); err != nil || len(pauses.Pauses) != 1 || pauses.Pauses[0].By != "" { // a token that is made for nobody
		t.Errorf("%+v, %v", pauses, err)
	}
	must(t, access.Accounts{Store: w.store, Now: time.Now}.Create(t.Context(), "Alice", access.Operator, ""))
	token, err := access.Tokens{Store: w.store, Now: time.Now}.CreateFor(t.Context(), access.Operator, "script", store.User{Login: "Alice", Role: string(access.Operator)})
	must(t, err)
	must(t, second(operator.ResumeAll(t.Context(), false)))
	if pauses, err := w.client(token).PauseAll(t.Context()); err != nil || len(pauses.Pauses) != 1 || pauses.Pauses[0].By != "Alice" {
		t.Errorf("%+v, %v", pauses, err)
	}
	if _, err := w.store.PauseAll(t.Context(), store.GeneralPause{Source: "file of a server that is gone"}); err != nil {
		t.Fatal(err)
	}
	if pauses, err := operator.ResumeAll(t.Context(), false); err != nil || len(pauses.Pauses) != 1 || pauses.Pauses[0].Source == "operator" {
		t.Errorf("%+v, %v", pauses, err)
	}
	if pauses, err := operator.ResumeAll(t.Context(), true); err != nil || len(pauses.Pauses) != 0 {
		t.Errorf("%+v, %v", pauses, err)
	}
}
