package server

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// look looks at a running task's item, as it is now.
func (w *workshop) look(t *testing.T, id task.ID) {
	t.Helper()
	is, err := w.store.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	w.snapshots.Changed(is.Key)
	if err := w.watcher.Look(t.Context(), is); err != nil {
		t.Fatal(err)
	}
}

// commentsAfter returns the comments that a run receives after a position, as "change author: text".
func commentsAfter(t *testing.T, held *wire.RunClient, after int64) (heard []string, last int64) {
	t.Helper()
	for {
		signals, err := held.Signals(t.Context(), after, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(signals.Comments) == 0 {
			return heard, after
		}
		for _, c := range signals.Comments {
			if c.Position <= after {
				t.Fatalf("position %d comes after %d", c.Position, after)
			}
			after = c.Position
			heard = append(heard, fmt.Sprintf("%s %s: %s", c.Change, c.Author, c.Body))
		}
	}
}

// What was there at the start is not new; what is new, edited or deleted is heard
// once; the bot's own, under any spelling of its name, never.
func TestCommentsAreHeardOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		made := w.issue(t, "Fix the gate")
		early := w.forge.AddComment(made.Key, "alice", "it squeaks")
		w.forge.AddComment(made.Key, "bob", "since May")
		held, _ := w.claim(t, made.ID)
		w.look(t, made.ID)
		if heard, _ := commentsAfter(t, held, 0); heard != nil {
			t.Errorf("at the start the run hears %q", heard)
		}
		arrived := await(t, held)
		paint := w.forge.AddComment(made.Key, "alice", "paint it")
		for _, own := range []string{"toryo-bot", "Toryo-Bot", "toryo-bot[bot]"} {
			w.forge.AddComment(made.Key, own, "I am at it")
		}
		w.forge.AddComment(made.Key, "bob", "green, please")
		w.changes.Publish(items.Change{Items: []task.Key{made.Key}})
		signals := <-arrived
		if len(signals.Comments) != 2 || signals.Comments[0].Body != "paint it" || signals.Comments[1].Author != "bob" {
			t.Fatalf("the waiting agent hears %+v", signals)
		}
		w.look(t, made.ID)
		w.forge.Edit(made.Key, paint.ID, "paint it twice")
		w.look(t, made.ID)
		w.look(t, made.ID)
		w.forge.DeleteComment(made.Key, early.ID)
		w.look(t, made.ID)
		heard, last := commentsAfter(t, held, 0)
		want := []string{"new alice: paint it", "new bob: green, please", "edited alice: paint it twice", "deleted alice: it squeaks"}
		if !slices.Equal(heard, want) {
			t.Errorf("the run hears %q, want %q", heard, want)
		}
		if again, _ := commentsAfter(t, held, last); again != nil {
			t.Errorf("after the last position it hears %q", again)
		}
	})
}

// A snapshot that is older than the log does not bring back what was edited or
// deleted.
func TestOldSnapshotChangesNothing(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	held, running := w.claim(t, made.ID)
	edited, deleted := w.forge.AddComment(made.Key, "alice", "one"), w.forge.AddComment(made.Key, "alice", "two")
	old, err := w.snapshots.Get(t.Context(), made.Key, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.look(t, made.ID)
	w.forge.Edit(made.Key, edited.ID, "uno")
	w.forge.DeleteComment(made.Key, deleted.ID)
	w.forge.AddComment(made.Key, "alice", "three")
	w.look(t, made.ID)
	before, _ := commentsAfter(t, held, 0)
	if err := w.talk.Update(t.Context(), running, old); err != nil {
		t.Fatal(err)
	}
	if after, _ := commentsAfter(t, held, 0); !slices.Equal(before, after) || len(after) != 5 {
		t.Errorf("an old snapshot makes %q of %q", after, before)
	}
}

// A thousand comments at once arrive all, in order.
func TestManyComments(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database)
		made := w.issue(t, "Fix the gate")
		held, _ := w.claim(t, made.ID)
		var want []string
		for i := range 1000 {
			w.forge.AddComment(made.Key, "alice", fmt.Sprint(i))
			want = append(want, fmt.Sprintf("new alice: %d", i))
		}
		w.look(t, made.ID)
		if heard, _ := commentsAfter(t, held, 0); !slices.Equal(heard, want) {
			t.Errorf("of 1000 comments %d arrive, the first %q", len(heard), heard[:min(3, len(heard))])
		}
	})
}

// Who is heard is configured. Of the others the run is told that they said
// something and why that does not count, and not what.
func TestAcceptFrom(t *testing.T) {
	t.Parallel()
	const noWriter, noPart = "no_write_access", "not_a_participant"
	for accept, want := range map[items.Accept][]string{
		items.FromAll:              {"alice: a", "early: b", "writer: c", "stranger: d"},
		items.FromParticipants:     {"alice: a", "early: b", "writer: c", "stranger refused " + noPart},
		items.FromWritersAndAuthor: {"alice: a", "early refused " + noWriter, "writer: c", "stranger refused " + noWriter},
		items.FromWriters:          {"alice refused " + noWriter, "early refused " + noWriter, "writer: c", "stranger refused " + noWriter},
	} {
		t.Run(string(accept), func(t *testing.T) {
			t.Parallel()
			w := onSQLite(t, setting{accept: accept})
			w.forge.SetAccess(repository, "writer", forge.WriteAccess)
			for _, reader := range []string{"alice", "early", "stranger"} {
				w.forge.SetAccess(repository, reader, forge.ReadAccess)
			}
			made := w.issue(t, "Fix the gate")
			w.forge.AddComment(made.Key, "early", "hello")
			held, _ := w.claim(t, made.ID)
			for i, author := range []string{"alice", "early", "writer", "stranger"} {
				w.forge.AddComment(made.Key, author, string(rune('a'+i)))
			}
			w.look(t, made.ID)
			w.look(t, made.ID)
			signals, err := held.Signals(t.Context(), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			var heard []string
			for _, c := range signals.Comments {
				told := c.Author + ": " + c.Body
				if c.Refused != "" {
					told = c.Author + " refused " + string(c.Refused) + c.Body
				}
				heard = append(heard, told)
			}
			if !slices.Equal(heard, want) {
				t.Errorf("the run hears %q, want %q", heard, want)
			}
		})
	}
}

// Where comments are not taken up, the answer to a question still is, and nothing before or
// after it.
func TestAnAnswerIsHeardWhereCommentsAreNot(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database store.Store) {
		t.Helper()
		w := newWorkshop(t, database, setting{silent: true})
		made := w.issue(t, "Repair the gate")
		held, _ := w.claim(t, made.ID)
		early := w.forge.AddComment(made.Key, "alice", "during the work")
		w.look(t, made.ID)
		if err := held.AddComment(t.Context(), wire.NewComment{Name: "1-question-3", Text: "Green or red?"}); err != nil {
			t.Fatal(err)
		}
		if err := held.Finish(t.Context(), wire.Result{Outcome: "paused", Reason: string(task.ReasonAwaitingAnswer)}); err != nil {
			t.Fatal(err)
		}
		w.look(t, made.ID)
		w.settle(t, made.Key)
		w.look(t, made.ID)
		w.wantState(t, made.ID, task.Paused, task.ReasonAwaitingAnswer) // nobody has answered
		w.forge.AddComment(made.Key, "alice", "paint it green")
		w.look(t, made.ID)
		w.wantState(t, made.ID, task.Queued, task.ReasonResumed)
		held, _ = w.goOn(t, made.ID)
		w.forge.AddComment(made.Key, "alice", "after the answer")
		w.forge.Edit(made.Key, early.ID, "changed after the answer")
		w.look(t, made.ID)
		heard, _ := commentsAfter(t, held, 0)
		if len(heard) != 1 || heard[0] != "new alice: paint it green" {
			t.Errorf("the run hears %q", heard)
		}
	})
}

// Without a comment of the run's own, the one that says what it waits for is the question,
// and what somebody changes afterwards is an answer too.
func TestAnEditIsAnAnswerWhereCommentsAreNotHeard(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, setting{silent: true})
	made := w.issue(t, "Repair the gate")
	held, _ := w.claim(t, made.ID)
	said := w.forge.AddComment(made.Key, "alice", "during the work")
	if err := held.Finish(t.Context(), wire.Result{Outcome: "paused", Reason: string(task.ReasonAwaitingAnswer)}); err != nil {
		t.Fatal(err)
	}
	w.settle(t, made.Key)
	w.look(t, made.ID)
	w.wantState(t, made.ID, task.Paused, task.ReasonAwaitingAnswer)
	w.forge.Advance(time.Minute)
	w.forge.Edit(made.Key, said.ID, "green")
	w.look(t, made.ID)
	w.wantState(t, made.ID, task.Queued, task.ReasonResumed)
}

// A task that waits for an answer goes on by itself when somebody answers whose word
// counts, whether we are told of it or look.
func TestAnAnswerLetsTheTaskGoOn(t *testing.T) {
	t.Parallel()
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprint("told ", told), func(t *testing.T) {
			t.Parallel()
			w := onSQLite(t, setting{accept: items.FromWriters})
			w.forge.SetAccess(repository, "writer", forge.WriteAccess)
			made := w.issue(t, "Fix the gate")
			held, _ := w.claim(t, made.ID)
			w.forge.AddComment(made.Key, "writer", "before the question")
			w.look(t, made.ID)
			_, last := commentsAfter(t, held, 0)
			if _, err := held.Report(t.Context(), []wire.Entry{entry(1, task.SignalTaken, fmt.Sprintf(`{"signal":{"signal":"comments","position":%d}}`, last))}); err != nil {
				t.Fatal(err)
			}
			if err := held.Finish(t.Context(), wire.Result{Outcome: "paused", Reason: string(task.ReasonAwaitingAnswer)}); err != nil {
				t.Fatal(err)
			}
			w.settle(t, made.Key)
			w.forge.AddComment(made.Key, "stranger", "whatever")
			w.look(t, made.ID)
			w.wantState(t, made.ID, task.Paused, task.ReasonAwaitingAnswer)
			rung, stop := w.notifier.ListenAll()
			defer stop()
			w.forge.AddComment(made.Key, "writer", "paint it green")
			if told {
				w.changes.Publish(items.Change{Items: []task.Key{made.Key}})
			} else {
				w.snapshots.Changed(made.Key)
				w.pass(time.Hour)
				if err := w.watcher.GoThrough(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for {
				is, err := w.store.Task(t.Context(), made.ID)
				if err != nil {
					t.Fatal(err)
				}
				if is.State == task.Queued && is.Reason == task.ReasonResumed {
					break
				}
				select {
				case <-rung:
				case <-time.After(50 * time.Millisecond): // not every move rings
				case <-t.Context().Done():
					t.Fatalf("it is %+v", is)
				}
			}
			next, _ := w.goOn(t, made.ID)
			if heard, _ := commentsAfter(t, next, last); !slices.Contains(heard, "new writer: paint it green") {
				t.Errorf("the run that goes on hears %q", heard)
			}
		})
	}
}

// An answer that nobody has told of, and that came after the last reading, is heard by the run
// that goes on because nobody seemed to answer in time.
func TestAnAnswerAtTheLastMoment(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, setting{silent: true})
	made := w.issue(t, "Repair the gate")
	held, _ := w.claim(t, made.ID)
	if err := held.Finish(t.Context(), wire.Result{Outcome: "paused", Reason: string(task.ReasonAwaitingAnswer)}); err != nil {
		t.Fatal(err)
	}
	w.settle(t, made.Key)
	w.look(t, made.ID)
	waiting := w.wantState(t, made.ID, task.Paused, task.ReasonAwaitingAnswer)
	w.forge.AddComment(made.Key, "alice", "paint it green")
	impatient := broker.NewWatcher(broker.WatchOptions{
		Tasks: w.store, Changes: w.changes, Snapshots: w.snapshots, Comments: w.talk, Answered: w.controller.Answered, AnswerWithin: time.Nanosecond, Now: w.now,
	})
	if err := impatient.Look(t.Context(), waiting); err != nil {
		t.Fatal(err)
	}
	w.wantState(t, made.ID, task.Queued, task.ReasonResumed)
	held, _ = w.goOn(t, made.ID)
	if heard, _ := commentsAfter(t, held, 0); !slices.Contains(heard, "new alice: paint it green") {
		t.Errorf("the run hears %q", heard)
	}
}

// A person's pause of a task that waits for an answer holds when the answer is there. The
// run that goes on has the answer.
func TestAPauseOfATaskThatAsks(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Repair the gate")
	held, _ := w.claim(t, made.ID)
	if err := held.Finish(t.Context(), wire.Result{Outcome: "paused", Reason: string(task.ReasonAwaitingAnswer)}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.controller.Pause(t.Context(), made.ID, task.ReasonPauseRequested); err != nil {
		t.Fatal(err)
	}
	w.settle(t, made.Key)
	w.look(t, made.ID)
	w.wantState(t, made.ID, task.Paused, task.ReasonAwaitingAnswer)
	w.forge.AddComment(made.Key, "alice", "paint it green")
	w.look(t, made.ID)
	w.wantState(t, made.ID, task.Paused, task.ReasonPauseRequested)
	if _, err := w.controller.Resume(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	held, _ = w.goOn(t, made.ID)
	if heard, _ := commentsAfter(t, held, 0); !slices.Contains(heard, "new alice: paint it green") {
		t.Errorf("the run hears %q", heard)
	}
}

// Resuming a task that a person has paused behind a question takes back the pause; the
// question stays until it is answered, or somebody resumes again.
func TestResumeBehindAQuestion(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Repair the gate")
	held, _ := w.claim(t, made.ID)
	if _, err := w.controller.Pause(t.Context(), made.ID, task.ReasonPauseRequested); err != nil {
		t.Fatal(err)
	}
	if err := held.Finish(t.Context(), wire.Result{Outcome: "paused", Reason: string(task.ReasonAwaitingAnswer)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []task.State{task.Paused, task.Queued} {
		if is, err := w.controller.Resume(t.Context(), made.ID); err != nil || is.State != want {
			t.Errorf("the task is %s, %v; want %s", is.State, err, want)
		}
	}
}

// A task that is paused for another reason does not go on because of a comment.
func TestACommentDoesNotLiftAPause(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	held, _ := w.claim(t, made.ID)
	if _, err := w.controller.Pause(t.Context(), made.ID, task.ReasonPauseRequested); err != nil {
		t.Fatal(err)
	}
	if err := held.Finish(t.Context(), wire.Result{Outcome: "paused"}); err != nil {
		t.Fatal(err)
	}
	w.forge.AddComment(made.Key, "alice", "and the fence")
	w.look(t, made.ID)
	w.wantState(t, made.ID, task.Paused, task.ReasonPauseRequested)
}

// When it is not known whether an author may write, the comment waits; it is not
// lost.
func TestUnknownAccessIsLookedUpAgain(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, setting{accept: items.FromWriters})
	w.forge.SetAccess(repository, "writer", forge.WriteAccess)
	made := w.issue(t, "Fix the gate")
	held, running := w.claim(t, made.ID)
	w.forge.AddComment(made.Key, "writer", "paint it")
	w.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "Access" {
			return dummy.Refuse
		}
		return dummy.None
	})
	w.snapshots.Changed(made.Key)
	if err := w.watcher.Look(t.Context(), running); err == nil {
		t.Error("nobody says that the access is not known")
	}
	w.forge.SetFaults(nil)
	w.look(t, made.ID)
	if heard, _ := commentsAfter(t, held, 0); !slices.Equal(heard, []string{"new writer: paint it"}) {
		t.Errorf("the run hears %q", heard)
	}
}

// Comments on lines of a pull request count if they are configured to.
func TestReviewComments(t *testing.T) {
	t.Parallel()
	for _, read := range []bool{false, true} {
		w := onSQLite(t, setting{reviews: read})
		w.forge.SetBranch(repository, "fix", "c9")
		key := w.forge.AddItem(repository, task.Pull, "alice", "Fix")
		if err := w.forge.Assign(t.Context(), key, bot); err != nil {
			t.Fatal(err)
		}
		made, _, err := w.store.Assign(t.Context(), store.NewTask{Key: key, Type: task.Development, Title: "Fix", Reason: task.ReasonAssigned}, nil)
		if err != nil {
			t.Fatal(err)
		}
		held, _ := w.claim(t, made.ID)
		w.forge.AddThread(key, "bob", "main.go", 3, "why?")
		w.look(t, made.ID)
		heard, _ := commentsAfter(t, held, 0)
		if want := map[bool][]string{true: {"new bob: why?"}}[read]; !slices.Equal(heard, want) {
			t.Errorf("read %v: the run hears %q", read, heard)
		}
	}
}

// Assigned again, the task is told everything that is there, and nothing of
// before is news.
func TestNewLifeBeginsWithWhatIsThere(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	w.claim(t, made.ID)
	gone := w.forge.AddComment(made.Key, "alice", "never taken up")
	w.forge.AddComment(made.Key, "alice", "nor this")
	w.look(t, made.ID)
	w.forge.DeleteComment(made.Key, gone.ID)
	if _, err := w.controller.StopTask(t.Context(), made.ID, task.ReasonStopRequested); err != nil {
		t.Fatal(err)
	}
	w.pass(11e9)
	if _, err := w.controller.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.controller.Retry(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	held, running := w.goOn(t, made.ID)
	told, err := w.talk.Present(t.Context(), running, items.Snapshot{})
	if err != nil || len(told) != 1 || told[0].Body != "nor this" {
		t.Errorf("with the assignment the run is told %+v, %v", told, err)
	}
	w.look(t, made.ID)
	if heard, _ := commentsAfter(t, held, 0); heard != nil {
		t.Errorf("the new run hears %q", heard)
	}
}

// Nor does its run go on with the journal of the one that was stopped.
func TestNewLifeHasAJournalOfItsOwn(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	held, _ := w.claim(t, made.ID)
	if _, err := held.Report(t.Context(), []wire.Entry{entry(1, task.NoteTaken, `{"text":"before"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.controller.StopTask(t.Context(), made.ID, task.ReasonStopRequested); err != nil {
		t.Fatal(err)
	}
	w.pass(11e9)
	if _, err := w.controller.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.controller.Retry(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	again, _ := w.goOn(t, made.ID)
	if _, err := again.Report(t.Context(), []wire.Entry{entry(1, task.NoteTaken, `{"text":"after"}`)}); err != nil {
		t.Fatal(err)
	}
	// Page by page, each as short as can be.
	var notes []string
	for position := int64(0); ; {
		page, err := again.Journal(t.Context(), position, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) == 0 {
			break
		}
		position = page.Events[0].Position
		if page.Events[0].Source == string(task.FromAgent) {
			notes = append(notes, string(page.Events[0].Data))
		}
	}
	if want := []string{`{"text":"after"}`}; !slices.Equal(notes, want) {
		t.Errorf("the run goes on from %q, want %q", notes, want)
	}
}

// A comment that no run took up before the end is said to be so; one that was taken
// up or written by the bot is not.
func TestCommentsThatCameTooLate(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	made := w.issue(t, "Fix the gate")
	held, _ := w.claim(t, made.ID)
	w.forge.AddComment(made.Key, "alice", "paint it")
	w.look(t, made.ID)
	_, taken := commentsAfter(t, held, 0)
	signal := fmt.Sprintf(`{"signal":{"signal":"comments","position":%d}}`, taken)
	if _, err := held.Report(t.Context(), []wire.Entry{entry(1, task.SignalTaken, signal)}); err != nil {
		t.Fatal(err)
	}
	w.forge.AddComment(made.Key, "bob", "green, please")
	w.forge.AddComment(made.Key, "bob", "or red")
	w.forge.AddComment(made.Key, "toryo-bot", "I am at it")
	w.look(t, made.ID)
	if err := held.Finish(t.Context(), wire.Result{Outcome: "done", Comment: "It is done."}); err != nil {
		t.Fatal(err)
	}
	w.settle(t, made.Key)
	w.wantComments(t, made.Key, "I am at it", "It is done.\n\nThe following came too late for this run and was not included:\n\n- a comment by bob\n\nTo include it")
}
