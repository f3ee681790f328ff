package broker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
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
	noteOfAnn    = `ann done gate/gate.go "Wrap errors with the name of the gate, as in ***."`
	reviewsOfAnn = `ann done  "Every change needs an entry in the changelog."`
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
			if err := o.intake.Sync(t.Context(), []task.Forge{task.GitHub}, o.now()); !errors.Is(err, errKilled) {
				t.Fatalf("it was not cut off: %v", err)
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

// While it cannot be read what somebody may do, nothing is kept, and it is tried again.
func TestRightsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	o, _ := newMemory(t)
	pull := o.reviewedByPeople()
	o.endPull(pull, forge.Merged)
	o.later(time.Hour)
	o.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "Access" {
			return dummy.Refuse
		}
		return dummy.None
	})
	if err := o.intake.Sync(t.Context(), []task.Forge{task.GitHub}, time.Time{}); err == nil || len(o.notes()) != 0 {
		t.Fatalf("kept %q, %v", o.noteTexts(), err)
	}
	o.forge.SetFaults(nil)
	o.sync()
	if got := o.noteTexts(); len(got) != 2 {
		t.Errorf("it has learned %q", got)
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
