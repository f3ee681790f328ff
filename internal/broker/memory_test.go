package broker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// killed is a memory whose server is killed before a lesson is kept, or after it.
type killed struct {
	store.Store
	before, after bool
}

var errKilled = errors.New("killed")

func (k *killed) Learn(ctx context.Context, lesson store.Lesson) error {
	if k.before {
		return errKilled
	}
	err := k.Store.Learn(ctx, lesson)
	if k.after {
		return errKilled
	}
	return err
}

// newMemory is an office that learns from reviews.
func newMemory(t *testing.T, change ...func(*intake.Options)) (*office, *killed) {
	t.Helper()
	memory := &killed{}
	o := newOffice(t, append(change, func(options *intake.Options) {
		options.Memory, options.Mask = memory, func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
	})...)
	memory.Store = o.store
	o.forge.SetClock(o.now)
	return o, memory
}

// reviewedByPeople is a pull request of ours on which people have asked for something, and that was
// changed by a task.
func (o *office) reviewedByPeople() task.Key {
	o.Helper()
	issue := o.issue("Fix the gate", "BACKENDCODER")
	o.look(issue)
	pull := o.pull(o.finish(o.task(issue, task.Development), "writer").Branch, "Closes #1")
	o.sync()
	o.later(time.Minute)
	thread := o.forge.AddThread(pull, "ann", "gate/gate.go", 3, "Wrap errors with the name of the gate, as in hunter2.")
	o.forge.AddThread(pull, "eve", "gate/gate.go", 4, "Wrap errors with the name of the stranger.")
	o.forge.AddThread(pull, "helper[bot]", "gate/gate.go", 5, "Your dependencies are outdated, says a program.")
	o.forge.AddThread(pull, bot, "gate/gate.go", 6, "Our own review has found something here.")
	taken := o.forge.AddThread(pull, "bob", "gate/gate.go", 7, "This looks wrong and should be removed.")
	o.forge.AddReply(pull, taken.ID, "bob", "Never mind, I misread it.")
	o.forge.AddReview(pull, forge.Review{Author: "ann", Verdict: forge.RequestChanges, Body: "Every change needs an entry in the changelog.", At: time.Now().Add(-time.Hour)}) // the clock of the database cannot be moved
	o.forge.AddReview(pull, forge.Review{Author: "eve", Verdict: forge.RequestChanges, Body: "Every change needs a stranger's blessing."})
	o.forge.AddReview(pull, forge.Review{Author: "bob", Verdict: forge.Approve, Body: "Looks good to me, thank you!"})
	o.sync()
	o.later(time.Minute)
	o.finish(o.task(pull, task.Development), "writer")
	o.check(o.forge.ResolveThread(o.Context(), pull, thread.ID))
	return pull
}

func (o *office) endPull(pull task.Key, state forge.ItemState) {
	o.later(time.Minute)
	o.forge.Change(pull, func(i *forge.Item) { i.State, i.UpdatedAt = state, o.now() })
}

func (o *office) notes() []store.Note {
	o.Helper()
	notes, err := o.store.ListNotes(o.Context(), store.NoteFilter{})
	o.check(err)
	return notes
}

func (o *office) noteTexts() (texts []string) {
	o.Helper()
	for _, note := range o.notes() {
		texts = append(texts, fmt.Sprintf("%s %s %s %q", note.Author, note.Ending, note.Path, note.Text))
	}
	return texts
}

const (
	noteOfAnn    = `ann resolved gate/gate.go "Wrap errors with the name of the gate, as in ***."`
	reviewsOfAnn = `ann merged  "Every change needs an entry in the changelog."`
)

// What people with rights asked for is kept when the pull request was merged, by polling alone: nobody
// tells the intake of anything.
func TestReviewsAreLearnedFrom(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	pull := o.reviewedByPeople()
	o.later(time.Hour)
	o.sync()
	if got := o.noteTexts(); len(got) != 0 {
		t.Fatalf("before the end it has learned %q", got)
	}
	o.endPull(pull, forge.Merged)
	o.later(time.Hour)
	for range 3 {
		o.sync()
	}
	got := o.noteTexts()
	if len(got) != 2 || got[0] != reviewsOfAnn && got[1] != reviewsOfAnn || got[0] != noteOfAnn && got[1] != noteOfAnn {
		t.Fatalf("it has learned %q", got)
	}
	note := o.notes()[0]
	if item, _ := o.forge.Item(t.Context(), pull); note.URL != item.URL || note.Pull != pull.Number || note.Repository != pull.Repo() || note.AskedAt.IsZero() || note.Asked != 1 {
		t.Errorf("the note is %+v", note)
	}
	if left, err := o.store.WatchedPulls(t.Context(), pull.Repo()); err != nil || len(left) != 0 {
		t.Errorf("%v is still watched, %v", left, err)
	}
}

// A pull request on which nobody has worked after the review, and one that was closed.
func TestHowItEnded(t *testing.T) {
	t.Parallel()
	for state, want := range map[forge.ItemState]store.NoteEnding{forge.Merged: store.NoteMerged, forge.Closed: store.NoteClosed} {
		o, _ := newMemory(t)
		pull := o.pull("feature", "")
		o.sync()
		o.forge.AddThread(pull, "ann", "gate/gate.go", 3, "Wrap errors with the name of the gate.")
		o.endPull(pull, state)
		o.later(time.Hour)
		o.sync()
		if notes := o.notes(); len(notes) != 1 || notes[0].Ending != want {
			t.Errorf("%s: it has learned %+v", state, notes)
		}
	}
}

// Killed before a lesson is kept, or right after it: there is one note of each request in the end.
func TestLearningIsDoneOnce(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]killed{"before": {before: true}, "after": {after: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var options intake.Options
			o, memory := newMemory(t, func(given *intake.Options) { options = *given })
			pull := o.reviewedByPeople()
			o.endPull(pull, forge.Merged)
			o.later(time.Hour)
			memory.before, memory.after = cut.before, cut.after
			o.sync() // the work on items goes on
			if !strings.Contains(o.log.String(), errKilled.Error()) {
				t.Fatalf("it was not cut off: %s", o.log)
			}
			memory.before, memory.after = false, false
			options.Memory, options.Mask = memory, strings.ToUpper // another text would be another note
			o.intake = intake.New(options)
			for range 2 {
				o.later(time.Hour)
				o.sync()
				o.look(pull)
			}
			if got := o.noteTexts(); len(got) != 2 {
				t.Errorf("it has learned %q", got)
			}
		})
	}
}

// While it cannot be read what somebody may do, nothing is kept, and it is tried again, whoever may
// steer. What does not pass in a day is given up. Neither fails a sync.
func TestRightsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, accept := range []items.Accept{"", items.FromAll} {
		for _, fault := range []dummy.Fault{dummy.Refuse, dummy.Forbid} {
			o, _ := newMemory(t)
			o.steering.Accept = accept
			pull := o.pull("feature", "")
			o.sync()
			o.forge.AddThread(pull, "ann", "gate/gate.go", 3, "Wrap errors with the name of the gate.")
			o.endPull(pull, forge.Merged)
			o.later(time.Hour)
			failing := func(call dummy.Call) dummy.Fault {
				if call.Method == "Access" {
					return fault
				}
				return dummy.None
			}
			o.forge.SetFaults(failing)
			o.sync()
			if len(o.notes()) != 0 {
				t.Fatalf("kept %q", o.noteTexts())
			}
			o.forge.SetFaults(nil)
			o.later(time.Hour)
			o.sync()
			if got := o.noteTexts(); len(got) != 1 {
				t.Errorf("%q, %v: it has learned %q", accept, fault, got)
			}

			given := o.pull("given-up", "")
			o.sync()
			o.forge.AddThread(given, "bob", "gate/gate.go", 3, "Locks are named after their owners.")
			o.endPull(given, forge.Merged)
			o.forge.SetFaults(failing)
			for range 2 {
				o.later(25 * time.Hour)
				o.sync()
			}
			if left, err := o.store.WatchedPulls(t.Context(), given.Repo()); err != nil || len(left) != 0 || !strings.Contains(o.log.String(), "nothing is learned") {
				t.Errorf("%v is still watched, %v", left, err)
			}
			// Once more: the day begins again.
			o.check(o.store.WatchPull(t.Context(), given))
			o.later(25 * time.Hour)
			o.sync()
			if left, err := o.store.WatchedPulls(t.Context(), given.Repo()); err != nil || len(left) != 1 {
				t.Errorf("%v is watched after the first failure, %v", left, err)
			}
		}
	}
}

// Pull requests in repositories that are not worked on any more are not watched.
func TestNothingIsWatchedOutside(t *testing.T) {
	t.Parallel()
	outside := task.Repository{}
	var options intake.Options
	o, memory := newMemory(t, func(made *intake.Options) {
		within := made.Scope
		made.Scope = func(of task.Forge, repository string) bool {
			return repository != outside.Name && within(of, repository)
		}
		options = *made
	})
	pull := o.pull("feature", "")
	o.sync()
	if left, err := o.store.WatchedPulls(t.Context(), pull.Repo()); err != nil || len(left) != 1 {
		t.Fatalf("%v is watched, %v", left, err)
	}
	// For a moment it looks as if the repository were gone.
	outside = pull.Repo()
	o.sync()
	if left, err := o.store.WatchedPulls(t.Context(), pull.Repo()); err != nil || len(left) != 1 {
		t.Errorf("%v is watched before the next start, %v", left, err)
	}
	options.Memory = memory
	o.intake = intake.New(options)
	o.sync()
	if left, err := o.store.WatchedPulls(t.Context(), pull.Repo()); err != nil || len(left) != 0 {
		t.Errorf("%v is still watched, %v", left, err)
	}
}

// The day after which nothing is learned begins with the first failure after the end: one that was opened
// again is given as much time as any other.
func TestAPullThatIsOpenedAgainHasItsDay(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	pull := o.pull("feature", "")
	o.sync()
	o.forge.AddThread(pull, "ann", "gate/gate.go", 3, "Wrap errors with the name of the gate.")
	failing := func(call dummy.Call) dummy.Fault {
		if call.Method == "ReviewThreads" {
			return dummy.Forbid
		}
		return dummy.None
	}
	fails := func() {
		o.forge.SetFaults(failing)
		o.endPull(pull, forge.Merged)
		o.later(time.Hour)
		o.sync()
		o.forge.SetFaults(nil)
	}
	fails()
	o.endPull(pull, forge.Open)
	o.later(time.Hour)
	o.sync()
	o.later(30 * time.Hour)
	fails()
	o.later(time.Hour)
	o.sync()
	if got := o.noteTexts(); len(got) != 1 {
		t.Errorf("it has learned %q\n%s", got, o.log.String())
	}
}

// One pull request that cannot be read does not keep others from being learned from.
func TestOthersAreLearnedFrom(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	broken, good := o.pull("broken", ""), o.pull("good", "")
	o.sync()
	for _, pull := range []task.Key{broken, good} {
		o.forge.AddThread(pull, "ann", "gate/gate.go", 3, "Wrap errors with the name of "+pull.String())
		o.endPull(pull, forge.Merged)
	}
	o.later(time.Hour)
	o.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "ReviewThreads" && call.Key == broken {
			return dummy.Forbid
		}
		return dummy.None
	})
	o.sync()
	if notes := o.notes(); len(notes) != 1 || notes[0].Pull != good.Number {
		t.Errorf("it has learned %q", o.noteTexts())
	}
}

// A server that was away from the opening to the end knows from the opening that there is something.
func TestAPullThatWasNeverSeenOpen(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	pull := o.pull("feature", "")
	o.check(o.store.WatchPull(t.Context(), pull)) // as when it was opened
	o.forge.AddThread(pull, "ann", "gate/gate.go", 3, "Wrap errors with the name of the gate.")
	o.endPull(pull, forge.Merged)
	o.later(time.Hour)
	o.sync()
	if got := o.noteTexts(); len(got) != 1 {
		t.Errorf("it has learned %q", got)
	}
}

// What ended while it was off is not learned from because somebody says thanks later.
func TestWhatEndedBefore(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	pull := o.pull("feature", "")
	o.forge.AddThread(pull, "ann", "gate/gate.go", 3, "Wrap errors with the name of the gate.")
	o.endPull(pull, forge.Merged)
	o.look(pull)
	if got := o.noteTexts(); len(got) != 0 {
		t.Errorf("it has learned %q", got)
	}
}

// Without reviews in the snapshots the same is learned, and nothing of it is removed.
func TestReviewsThatAreNotNoticed(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t, func(options *intake.Options) {
		options.Snapshots = items.NewSnapshots(map[task.Forge]forge.Reader{task.GitHub: options.Forges[task.GitHub]}, items.DefaultAges, options.Now)
		t.Cleanup(options.Snapshots.Stop)
	})
	pull := o.pull("feature", "")
	o.sync()
	o.forge.AddThread(pull, "ann", "gate/gate.go", 3, "Wrap errors with the name of the gate.")
	o.endPull(pull, forge.Merged)
	o.later(time.Hour)
	o.sync()
	for range 2 {
		o.later(time.Hour)
		o.look(pull)
		if got := o.noteTexts(); len(got) != 1 {
			t.Errorf("the notes are %q", got)
		}
	}
}

// without is a forge that says that one item is not there.
type without struct {
	forge.Forge
	hidden task.Key
}

func (w *without) Item(ctx context.Context, key task.Key) (forge.Item, error) {
	if key == w.hidden {
		return forge.Item{}, task.Errorf(task.NotFound, "there is no %s", key)
	}
	return w.Forge.Item(ctx, key)
}

// That a pull request is hidden from us for a while removes nothing.
func TestAHiddenPullKeepsItsNotes(t *testing.T) {
	t.Parallel()
	from := &without{}
	o, _ := newMemory(t, func(options *intake.Options) {
		from.Forge = options.Forges[task.GitHub]
		options.Forges = map[task.Forge]forge.Forge{task.GitHub: from}
		options.Snapshots = items.NewSnapshots(map[task.Forge]forge.Reader{task.GitHub: from}, items.DefaultAges, options.Now)
		t.Cleanup(options.Snapshots.Stop)
	})
	pull := o.pull("feature", "")
	o.sync()
	o.forge.AddThread(pull, "ann", "gate/gate.go", 3, "Wrap errors with the name of the gate.")
	o.endPull(pull, forge.Merged)
	o.later(time.Hour)
	o.sync()
	o.check(o.store.WatchPull(t.Context(), pull)) // as if it was opened again and ended again
	from.hidden = pull
	o.later(time.Hour)
	o.sync()
	if left, err := o.store.WatchedPulls(t.Context(), pull.Repo()); err != nil || len(left) != 0 || len(o.notes()) != 1 {
		t.Errorf("%v is watched, %v; the notes are %q", left, err, o.noteTexts())
	}
}

// What this program wrote under another account is not what people want, and 50 strangers keep nobody out.
func TestOtherAccountsOfOurs(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	o.forge.SetAccess(team, "old-bot", forge.WriteAccess)
	pull := o.pull("feature", "")
	o.sync()
	for n := range 60 {
		o.forge.AddThread(pull, fmt.Sprint("stranger-", n), "gate/gate.go", 3, "Every stranger wants something else here.")
	}
	o.later(time.Minute)
	o.forge.AddReview(pull, forge.Review{Author: "old-bot", Verdict: forge.RequestChanges, Body: "There are findings.\n\n" + forge.MarkerOf("x").String()})
	o.forge.AddThread(pull, "old-bot", "gate/gate.go", 3, "The earlier account has found something here.")
	o.forge.AddThread(pull, "ann", "gate/gate.go", 3, "Wrap errors with the name of the gate.")
	o.endPull(pull, forge.Merged)
	o.later(time.Hour)
	o.sync()
	if got := o.noteTexts(); len(got) != 1 || !strings.HasPrefix(got[0], "ann ") {
		t.Errorf("it has learned %q", got)
	}
}

// What somebody takes back after the end is forgotten.
func TestTakenBackLater(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	pull := o.pull("feature", "")
	o.sync()
	thread := o.forge.AddThread(pull, "ann", "gate/gate.go", 3, "Wrap errors with the name of the gate.")
	o.endPull(pull, forge.Merged)
	o.later(time.Hour)
	o.sync()
	o.forge.AddReply(pull, thread.ID, "ann", "Never mind, I misread it.")
	o.later(time.Hour)
	o.look(pull)
	if got := o.noteTexts(); len(got) != 0 {
		t.Errorf("the notes are %q", got)
	}
}

// Open pull requests cost one request for all of them, not one each, and not at every sync.
func TestWatchingIsCheap(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	for n := range 5 {
		o.pull(fmt.Sprint("feature-", n), "")
	}
	o.sync()
	var items, lists atomic.Int64
	o.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		switch call.Method {
		case "Item":
			items.Add(1)
		case "List":
			lists.Add(1)
		}
		return dummy.None
	})
	o.later(time.Hour)
	for range 3 {
		o.check(o.intake.Sync(t.Context(), []task.Forge{task.GitHub}, o.now()))
	}
	if items.Load() != 0 || lists.Load() != 10 { // three for each sync, and one
		t.Errorf("%d requests for pull requests, %d for lists", items.Load(), lists.Load())
	}
}

// What people change on the forge afterwards is followed, and what was forgotten stays so.
func TestNotesFollowTheirComments(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	pull := o.pull("feature", "")
	o.sync()
	first := o.forge.AddThread(pull, "ann", "gate/gate.go", 3, "Wrap errors with the name of the gate.").Comments[0]
	second := o.forge.AddThread(pull, "ann", "gate/lock.go", 3, "Locks are named after their owners.").Comments[0]
	third := o.forge.AddThread(pull, "ann", "gate/key.go", 3, "Keys belong into the drawer.").Comments[0]
	o.endPull(pull, forge.Merged)
	o.later(time.Hour)
	o.sync()
	for _, note := range o.notes() {
		if note.Text == third.Body {
			o.check(o.store.ForgetNote(t.Context(), note.ID))
		}
	}
	o.forge.Edit(pull, first.ID, "Wrap errors with the number of the gate.")
	o.forge.DeleteComment(pull, second.ID)
	o.later(time.Hour)
	o.look(pull) // a webhook has told of it
	if got := fmt.Sprint(o.noteTexts()); got != `[ann merged gate/gate.go "Wrap errors with the number of the gate."]` {
		t.Errorf("the notes are %s", got)
	}
}

// When the comment that a note has its words of is deleted, the note gets those of another pull request,
// where the same was asked for. Nobody tells of that one.
func TestANoteOfTwoPulls(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	pulls := []task.Key{o.pull("first", ""), o.pull("second", "")}
	o.sync()
	var first task.Comment
	for at, pull := range pulls {
		made := o.forge.AddThread(pull, []string{"ann", "bob"}[at], "gate/gate.go", 3, []string{"Wrap errors with the name of the gate.", "Please wrap errors with the name of the gate"}[at])
		if at == 0 {
			first = made.Comments[0]
		}
		o.endPull(pull, forge.Merged)
		o.later(time.Hour)
		o.sync()
	}
	if notes := o.notes(); len(notes) != 1 || notes[0].Asked != 2 || notes[0].Author != "ann" {
		t.Fatalf("the notes are %+v", notes)
	}
	o.forge.DeleteComment(pulls[0], first.ID)
	o.look(pulls[0]) // a webhook has told of it
	o.later(time.Hour)
	o.sync()
	item, err := o.forge.Item(t.Context(), pulls[1])
	o.check(err)
	if notes := o.notes(); len(notes) != 1 || notes[0].Asked != 1 || notes[0].Author != "bob" || notes[0].URL != item.URL || !strings.HasPrefix(notes[0].Text, "Please") {
		t.Errorf("the notes are %+v", notes)
	}
}

// What is edited so that it asks for nothing any more is forgotten, also if the comment is still there.
// That its author may not write any more is no edit.
func TestEditedToNothing(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t, fixUpOn(intake.OnMentions))
	pull := o.pull("feature", "")
	o.sync()
	short := o.forge.AddThread(pull, "ann", "gate/gate.go", 3, "The password of the gate is swordfish, take it out.").Comments[0]
	mention := o.forge.AddComment(pull, "ann", "@"+bot+" name locks after their owners")
	o.forge.AddThread(pull, "bob", "gate/key.go", 3, "Keys belong into the drawer.")
	o.endPull(pull, forge.Merged)
	o.later(time.Hour)
	o.sync()
	if got := o.noteTexts(); len(got) != 3 {
		t.Fatalf("it has learned %q", got)
	}
	o.forge.Edit(pull, short.ID, "removed")
	o.forge.Edit(pull, mention.ID, "Name locks after their owners")
	o.forge.SetAccess(team, "bob", forge.ReadAccess)
	o.later(time.Hour)
	o.look(pull)
	if got := fmt.Sprint(o.noteTexts()); got != `[bob merged gate/key.go "Keys belong into the drawer."]` {
		t.Errorf("the notes are %s", got)
	}
}

func TestNothingIsLearnedWhenItIsOff(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.forge.SetClock(o.now)
	pull := o.reviewedByPeople()
	o.endPull(pull, forge.Merged)
	o.later(time.Hour)
	o.sync()
	if got := o.noteTexts(); len(got) != 0 {
		t.Errorf("it has learned %q", got)
	}
}

// A later task of the repository is given what fits it, and the journal says which. Other repositories
// are not, nor is anybody when it is off.
func TestNotesAreGiven(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	o.endPull(o.reviewedByPeople(), forge.Merged)
	o.later(time.Hour)
	o.sync()
	prepared := func(in, title string, on bool) assignment.Assignment {
		t.Helper()
		key := o.forge.AddItem(in, task.Issue, "ann", title)
		o.check(o.forge.Assign(t.Context(), key, bot))
		o.look(key)
		preparing := preparer(o, &seeds{})
		if on {
			preparing.Memory = o.store
		}
		made, err := preparing.Prepare(t.Context(), assignment.Assignment{Task: o.claim(o.task(key, task.Development), "a"), Token: "token", Was: task.ReasonAssigned})
		o.check(err)
		return made
	}
	made := prepared(team, "The gate.go has errors without a name", true)
	if len(made.Notes) != 1 || !strings.Contains(made.Prompt, "notes from past reviews") || !strings.Contains(made.Prompt, "Wrap errors with the name of the gate, as in ***.") {
		t.Errorf("%d notes are given: %s", len(made.Notes), made.Prompt)
	}
	event, err := o.store.LastEvent(t.Context(), made.Task.ID, task.Remembered)
	if err != nil || string(event.Data) != fmt.Sprintf(`{"notes":[%q]}`, made.Notes[0].ID) || event.Source != task.FromServer {
		t.Errorf("the journal has %s, %v", event.Data, err)
	}
	used, err := o.store.ListNotes(t.Context(), store.NoteFilter{IDs: []string{made.Notes[0].ID}})
	if err != nil || used[0].UsedAt.IsZero() {
		t.Errorf("the note was not used: %+v, %v", used, err)
	}

	_, err = o.store.EditNote(t.Context(), made.Notes[0].ID, "Wrap errors with the colour of the gate.", "bob", o.now())
	o.check(err)
	if again := prepared(team, "Errors of gate.go, again", true); !strings.Contains(again.Prompt, "the colour of the gate") || strings.Contains(again.Prompt, "the name of the gate") {
		t.Errorf("after an edit the prompt is %s", again.Prompt)
	}
	o.forge.AddRepository("team/other", forge.Remote{})
	o.forge.SetAccess("team/other", "ann", forge.WriteAccess)
	for _, other := range []assignment.Assignment{prepared("team/other", "Errors of gate.go", true), prepared(team, "Errors of gate.go", false)} {
		if len(other.Notes) != 0 || strings.Contains(other.Prompt, "past reviews") {
			t.Errorf("%s is given %+v", other.Item.Key, other.Notes)
		}
	}
}

// A review of a pull request from a fork is not given what people wrote by hand: the review is public.
func TestNotesByHandStayFromForks(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	_, err := o.store.AddNote(t.Context(), store.Note{
		Repository: task.Repository{Forge: task.GitHub, Name: team}, Text: "Written by hand.", Author: "bob", EditedBy: "bob", AskedAt: o.now(),
	}, 500)
	o.check(err)
	for _, fork := range []bool{false, true} {
		pull := o.pull(fmt.Sprint("feature-", fork), "")
		o.forge.Change(pull, func(i *forge.Item) { i.Fork = fork })
		o.forge.SetDiff(pull, forge.Diff{Head: "c1", Patch: "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1 @@\n+oil\n"})
		o.check(o.forge.AddLabel(t.Context(), pull, "needs-review"))
		o.later(time.Hour)
		o.look(pull)
		preparing := preparer(o, &seeds{})
		preparing.Memory = o.store
		made, err := preparing.Prepare(t.Context(), assignment.Assignment{Task: o.claim(o.task(pull, task.Review), "a")})
		o.check(err)
		if given := strings.Contains(made.Prompt, "Written by hand."); given == fork {
			t.Errorf("fork %v: given %v", fork, given)
		}
	}
}

// A pull request that was opened again is watched again, whichever server has learned from it meanwhile.
func TestOpenedAgain(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	pull := o.pull("feature", "")
	o.look(pull)
	o.check(o.store.UnwatchPull(t.Context(), pull)) // as another server does
	o.look(pull)
	if watched, err := o.store.WatchedPulls(t.Context(), pull.Repo()); err != nil || len(watched) != 1 {
		t.Errorf("%v is watched, %v", watched, err)
	}
}
