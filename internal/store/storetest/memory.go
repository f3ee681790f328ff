package storetest

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var memoryChecks = []check{
	{"a pull request is watched until something is learned from it", watchPulls},
	{"a source is learned from once, whoever learns from it", learnOnce},
	{"what says the same is one note with a count", learnSame},
	{"a note follows its comment until a person edits it", followComment},
	{"what was forgotten is gone and not learned again", forgetNote},
	{"a repository keeps so many notes, those that were used last and those of people", mostNotes},
	{"a repository whose notes were all used keeps a new one", newNoteStays},
	{"a note stays while one of its comments is there", oneOfTwoComments},
	{"words of a comment that is gone stay in no note", wordsOfNobody},
	{"nor if others of the same pull request asked for the same", wordsOfNobodyThere},
	{"a note gets the words of another pull request's comment when its own is gone", wordsOfAnother},
	{"a pull request that was closed, opened again and merged ended well for all its comments", mergedLater},
	{"a comment that comes to say something else leaves its note", commentLeaves},
	{"how often counts pull requests, and the best ending stays", askedByPulls},
	{"what says the same as a note that is gone is a new note", intoNothing},
	{"a comment that is there again is learned again", thereAgain},
	{"notes are of their repository", notesApart},
}

var learnedPull = task.Key{Forge: task.Gitea, Repository: "team/app", Kind: task.Pull, Number: 7}

// learned is what is learned from a comment of a review of pull request 7.
func learned(source, text string) store.Learned {
	return store.Learned{Source: source, Note: store.Note{
		Repository: learnedPull.Repo(), Text: text, Path: "gate.go", Ending: store.NoteDone, Author: "ann", URL: "https://forge.example/7", Pull: 7,
		AskedAt: noon, CreatedAt: noon,
	}}
}

func lesson(present []string, all ...store.Learned) store.Lesson {
	return store.Lesson{Pull: learnedPull, Present: present, Learned: all, Most: 500}
}

func notes(t *testing.T, s store.Store) []store.Note {
	t.Helper()
	return got[[]store.Note](t)(s.ListNotes(t.Context(), store.NoteFilter{Forge: task.Gitea, Repository: "team/app"}))
}

func watchPulls(t *testing.T, s store.Store) {
	other := learnedPull
	other.Number = 3
	elsewhere := learnedPull
	elsewhere.Repository = "team/other"
	for _, pull := range []task.Key{learnedPull, learnedPull, other, elsewhere} {
		must(t, s.WatchPull(t.Context(), pull))
	}
	equal(t, got[[]task.Key](t)(s.WatchedPulls(t.Context(), learnedPull.Repo())), []task.Key{other, learnedPull})
	must(t, s.Learn(t.Context(), lesson(nil)))
	equal(t, got[[]task.Key](t)(s.WatchedPulls(t.Context(), learnedPull.Repo())), []task.Key{other})
	must(t, s.UnwatchPull(t.Context(), other))
	equal(t, len(got[[]task.Key](t)(s.WatchedPulls(t.Context(), learnedPull.Repo()))), 0)
	board := task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Pull, Number: 1}
	must(t, s.WatchPull(t.Context(), board))
	must(t, s.WatchPull(t.Context(), other))
	must(t, s.ForgetWatched(t.Context(), task.Gitea, []string{"team/other"}))
	equal(t, len(got[[]task.Key](t)(s.WatchedPulls(t.Context(), other.Repo()))), 0)
	equal(t, got[[]task.Key](t)(s.WatchedPulls(t.Context(), elsewhere.Repo())), []task.Key{elsewhere})
	equal(t, got[[]task.Key](t)(s.WatchedPulls(t.Context(), board.Repo())), []task.Key{board})
	must(t, s.ForgetWatched(t.Context(), "", nil))
	equal(t, len(got[[]task.Key](t)(s.WatchedPulls(t.Context(), board.Repo()))), 0)
	equal(t, len(got[[]task.Key](t)(s.WatchedPulls(t.Context(), elsewhere.Repo()))), 0)
	wantCode(t, s.WatchPull(t.Context(), task.Key{}), task.Invalid)
}

func learnOnce(t *testing.T, s store.Store) {
	var failed atomic.Int64
	together(8, func(int) {
		if err := s.Learn(t.Context(), lesson([]string{"a", "b"}, learned("a", "Close the gate."), learned("b", "Oil it."))); err != nil {
			failed.Add(1)
			t.Error(err)
		}
	})
	found := notes(t, s)
	equal(t, len(found), 2)
	want := learned("", "Oil it.").Note
	want.ID, want.Asked = found[0].ID, 1
	equal(t, found[0], want)
	wantCode(t, s.Learn(t.Context(), lesson(nil, learned("", "x"))), task.Invalid)
}

func learnSame(t *testing.T, s store.Store) {
	must(t, s.Learn(t.Context(), lesson([]string{"a"}, learned("a", "Close the gate."))))
	first := notes(t, s)[0]
	same := sameAs(first.ID, "b", "bob")
	same.Note.AskedAt, same.Note.Pull = noon.Add(time.Hour), 8
	for range 2 {
		later := lesson([]string{"b"}, same)
		later.Pull.Number = 8
		must(t, s.Learn(t.Context(), later))
	}
	first.Asked, first.AskedAt = 2, noon.Add(time.Hour)
	equal(t, notes(t, s), []store.Note{first})
}

func followComment(t *testing.T, s store.Store) {
	must(t, s.Learn(t.Context(), lesson([]string{"a", "b", "c"}, learned("a", "Close the gate."), learned("b", "Oil it."), learned("c", "Paint it."))))
	all := notes(t, s)
	edited := got[store.Note](t)(s.EditNote(t.Context(), all[0].ID, "Paint it red.", "bob", noon.Add(time.Hour)))
	want := all[0]
	want.Text, want.EditedBy, want.EditedAt = "Paint it red.", "bob", noon.Add(time.Hour)
	equal(t, edited, want)
	closed := learned("a", "Close the gate at night.")
	closed.Note.Ending = store.NoteClosed
	must(t, s.Learn(t.Context(), lesson([]string{"a", "c"}, closed, learned("c", "Paint it blue."))))
	all[2].Text, all[2].Ending = "Close the gate at night.", store.NoteClosed
	equal(t, notes(t, s), []store.Note{edited, all[2]}) // the second comment was deleted
	must(t, s.Learn(t.Context(), lesson(nil)))
	equal(t, notes(t, s), []store.Note{edited})
	_, err := s.EditNote(t.Context(), "none", "x", "bob", noon)
	wantCode(t, err, task.NotFound)
}

func forgetNote(t *testing.T, s store.Store) {
	must(t, s.Learn(t.Context(), lesson([]string{"a"}, learned("a", "Close the gate."))))
	must(t, s.ForgetNote(t.Context(), notes(t, s)[0].ID))
	must(t, s.Learn(t.Context(), lesson([]string{}))) // its comment is gone for a while
	must(t, s.Learn(t.Context(), lesson([]string{"a"}, learned("a", "Close the gate."))))
	equal(t, len(notes(t, s)), 0)
	wantCode(t, s.ForgetNote(t.Context(), "none"), task.NotFound)
}

func mostNotes(t *testing.T, s store.Store) {
	own := got[store.Note](t)(s.AddNote(t.Context(), store.Note{Repository: learnedPull.Repo(), Text: "By hand.", Author: "bob", EditedBy: "bob", AskedAt: noon, CreatedAt: noon, EditedAt: noon}, 4))
	for i := range 3 {
		must(t, s.Learn(t.Context(), lesson([]string{"0", "1", "2", "3"}, learned(fmt.Sprint(i), fmt.Sprint("Note ", i)))))
	}
	must(t, s.UseNotes(t.Context(), []string{notes(t, s)[2].ID}, noon.Add(time.Minute))) // Note 0
	must(t, s.UseNotes(t.Context(), nil, noon))
	more := lesson([]string{"0", "1", "2", "3"}, learned("3", "Note 3"))
	more.Most = 3
	more.Learned[0].Note.CreatedAt = noon.Add(time.Second)
	must(t, s.Learn(t.Context(), more))
	equal(t, noteTexts(t, s), []string{"Note 3", "Note 0", "By hand."})
	for _, note := range notes(t, s) {
		got[store.Note](t)(s.EditNote(t.Context(), note.ID, note.Text, "bob", noon))
	}
	_, err := s.AddNote(t.Context(), own, 3)
	wantCode(t, err, task.TooLarge)
	must(t, s.ForgetNote(t.Context(), own.ID))
	got[store.Note](t)(s.AddNote(t.Context(), own, 3))
}

// newNoteStays has notes that were all used, and one more: what was used longest ago goes.
func newNoteStays(t *testing.T, s store.Store) {
	present := []string{"a", "b", "c"}
	must(t, s.Learn(t.Context(), lesson(present, learned("a", "Close the gate."), learned("b", "Oil it."))))
	all := notes(t, s)
	must(t, s.UseNotes(t.Context(), []string{all[0].ID}, noon.Add(time.Hour)))
	must(t, s.UseNotes(t.Context(), []string{all[1].ID}, noon.Add(2*time.Hour)))
	more := lesson(present, learned("c", "Paint it."))
	more.Most, more.Learned[0].Note.CreatedAt = 2, noon.Add(3*time.Hour)
	must(t, s.Learn(t.Context(), more))
	equal(t, noteTexts(t, s), []string{"Paint it.", "Close the gate."})
}

func noteTexts(t *testing.T, s store.Store) (texts []string) {
	t.Helper()
	for _, note := range notes(t, s) {
		texts = append(texts, note.Text)
	}
	return texts
}

// sameAs is what is learned from another comment that asks for the same as a note.
func sameAs(into, source, author string) store.Learned {
	same := learned(source, "Please close the gate.")
	same.Into, same.Note.Author = into, author
	return same
}

func oneOfTwoComments(t *testing.T, s store.Store) {
	both := []store.Learned{learned("a", "Close the gate."), sameAs("a", "b", "bob")}
	must(t, s.Learn(t.Context(), lesson([]string{"a", "b"}, both...)))
	first := notes(t, s)[0]
	must(t, s.Learn(t.Context(), lesson([]string{"b"}, sameAs(first.ID, "b", "bob")))) // the first was deleted
	found := notes(t, s)
	equal(t, len(found), 1)
	equal(t, found[0].ID, first.ID)
	equal(t, found[0].Author+": "+found[0].Text, "bob: Please close the gate.") // nothing is left of the first
	must(t, s.Learn(t.Context(), lesson([]string{})))
	equal(t, len(notes(t, s)), 0)
}

// on is what is learned from the comments of another pull request, an hour earlier for each number before 7.
func on(number int64, all ...store.Learned) store.Lesson {
	other := lesson(nil, all...)
	other.Pull.Number = number
	for at := range all {
		note := &all[at].Note
		note.Pull, note.URL, note.AskedAt = number, fmt.Sprint("https://forge.example/", number), noon.Add(time.Duration(number-7)*time.Hour)
		other.Present = append(other.Present, all[at].Source)
	}
	return other
}

func wordsOfAnother(t *testing.T, s store.Store) {
	must(t, s.Learn(t.Context(), lesson([]string{"a"}, learned("a", "Close the gate."))))
	first := notes(t, s)[0]
	bob, carl := sameAs(first.ID, "b", "bob"), sameAs(first.ID, "c", "carl")
	bob.Note.Ending, bob.Note.Path, carl.Note.Ending = store.NoteClosed, "fence.go", store.NoteMerged
	fifth, sixth := on(5, bob), on(6, carl)
	must(t, s.Learn(t.Context(), fifth))
	must(t, s.Learn(t.Context(), sixth))
	must(t, s.Learn(t.Context(), lesson([]string{}))) // the first was deleted
	watched := got[[]task.Key](t)(s.WatchedPulls(t.Context(), learnedPull.Repo()))
	equal(t, len(watched), 2) // those of the others are read again
	must(t, s.Learn(t.Context(), fifth))
	want := fifth.Learned[0].Note
	want.ID, want.Asked = first.ID, 2
	equal(t, notes(t, s), []store.Note{want})
	must(t, s.Learn(t.Context(), sixth))
	want.Ending, want.AskedAt = store.NoteMerged, sixth.Learned[0].Note.AskedAt // and these are the best and the last
	equal(t, notes(t, s), []store.Note{want})
	equal(t, len(got[[]task.Key](t)(s.WatchedPulls(t.Context(), learnedPull.Repo()))), 0)
	must(t, s.Learn(t.Context(), on(5, learned("b", "Paint the fence.")))) // it asks for something else now
	equal(t, got[[]task.Key](t)(s.WatchedPulls(t.Context(), learnedPull.Repo()))[0].Number, 6)
}

func wordsOfNobody(t *testing.T, s store.Store) {
	must(t, s.Learn(t.Context(), lesson([]string{"a"}, learned("a", "Close the gate."))))
	first := notes(t, s)[0]
	other := on(5, sameAs(first.ID, "b", "bob"))
	must(t, s.Learn(t.Context(), other))
	other.Learned = nil // bob may not write any more
	must(t, s.Learn(t.Context(), other))
	equal(t, len(notes(t, s)), 1) // what ann asked for is still there
	must(t, s.Learn(t.Context(), lesson([]string{})))
	must(t, s.Learn(t.Context(), other))
	equal(t, len(notes(t, s)), 0)
}

func wordsOfNobodyThere(t *testing.T, s store.Store) {
	for _, gone := range []string{"a", "c"} { // before and after the other
		present := slices.DeleteFunc([]string{"a", "b", "c"}, func(source string) bool { return source == gone })
		first := learned(gone, "Close the gate.")
		must(t, s.Learn(t.Context(), lesson([]string{gone}, first)))
		of := notes(t, s)[0].ID
		all := []store.Learned{first}
		for _, source := range present {
			all = append(all, sameAs(of, source, "bob"))
		}
		must(t, s.Learn(t.Context(), lesson([]string{"a", "b", "c"}, all...)))
		must(t, s.Learn(t.Context(), lesson(present))) // the first was deleted, and bob may not write any more
		equal(t, len(notes(t, s)), 0)
	}
}

func mergedLater(t *testing.T, s store.Store) {
	both := func(ending store.NoteEnding, into string) store.Lesson {
		all := []store.Learned{learned("a", "Close the gate."), sameAs("a", "b", "bob")}
		for at := range all {
			all[at].Note.Ending = ending
			if into != "" {
				all[at].Into = into
			}
		}
		return lesson([]string{"a", "b"}, all...)
	}
	must(t, s.Learn(t.Context(), both(store.NoteClosed, "")))
	want := notes(t, s)[0]
	equal(t, want.Ending, store.NoteClosed)
	must(t, s.Learn(t.Context(), both(store.NoteMerged, want.ID)))
	want.Ending = store.NoteMerged
	equal(t, notes(t, s), []store.Note{want})
}

func commentLeaves(t *testing.T, s store.Store) {
	must(t, s.Learn(t.Context(), lesson([]string{"a", "b"}, learned("a", "Close the gate."), sameAs("a", "b", "bob"))))
	first := notes(t, s)[0]
	must(t, s.Learn(t.Context(), lesson([]string{"a", "b"}, sameAs(first.ID, "a", "ann"), learned("b", "Paint the fence."))))
	equal(t, noteTexts(t, s), []string{"Paint the fence.", "Please close the gate."})
}

func askedByPulls(t *testing.T, s store.Store) {
	closed := learned("a", "Close the gate.")
	closed.Note.Ending = store.NoteClosed
	must(t, s.Learn(t.Context(), lesson([]string{"a", "b", "c"}, closed, sameAs("a", "b", "bob"), sameAs("a", "c", "bob"))))
	note := notes(t, s)[0]
	equal(t, note.Asked, 1) // three lines of one pull request
	other := lesson([]string{"d"}, sameAs(note.ID, "d", "bob"))
	other.Pull.Number, other.Learned[0].Note.Pull, other.Learned[0].Note.AskedAt = 6, 6, noon.Add(-time.Hour)
	must(t, s.Learn(t.Context(), other))
	note.Asked, note.Ending = 2, store.NoteDone // and it was not asked for last an hour earlier
	equal(t, notes(t, s), []store.Note{note})
	for number, want := range map[int64]int{6: 1, 7: 1, 8: 0} {
		equal(t, len(got[[]store.Note](t)(s.ListNotes(t.Context(), store.NoteFilter{Forge: task.Gitea, Repository: "team/app", Pull: number}))), want)
	}
}

func intoNothing(t *testing.T, s store.Store) {
	must(t, s.Learn(t.Context(), lesson([]string{"a"}, sameAs("forgotten meanwhile", "a", "bob"))))
	equal(t, noteTexts(t, s), []string{"Please close the gate."})
}

func thereAgain(t *testing.T, s store.Store) {
	must(t, s.Learn(t.Context(), lesson([]string{"a"}, learned("a", "Close the gate."))))
	must(t, s.Learn(t.Context(), lesson([]string{})))
	equal(t, len(notes(t, s)), 0)
	must(t, s.Learn(t.Context(), lesson([]string{"a"}, learned("a", "Close the gate."))))
	equal(t, noteTexts(t, s), []string{"Close the gate."})
}

func notesApart(t *testing.T, s store.Store) {
	must(t, s.Learn(t.Context(), lesson([]string{"a"}, learned("a", "Close the gate."))))
	other := store.Note{Repository: task.Repository{Forge: task.GitHub, Name: "team/app"}, Text: "By hand.", Author: "bob", AskedAt: noon, CreatedAt: noon}
	added := got[store.Note](t)(s.AddNote(t.Context(), other, 500))
	equal(t, len(notes(t, s)), 1)
	all := got[[]store.Note](t)(s.ListNotes(t.Context(), store.NoteFilter{}))
	equal(t, all, []store.Note{added, notes(t, s)[0]})
	equal(t, got[[]store.Note](t)(s.ListNotes(t.Context(), store.NoteFilter{Limit: 1})), all[:1])
	equal(t, got[[]store.Note](t)(s.ListNotes(t.Context(), store.NoteFilter{Before: added.ID})), all[1:])
	equal(t, got[[]store.Note](t)(s.ListNotes(t.Context(), store.NoteFilter{IDs: []string{added.ID, "none"}})), all[:1])
	equal(t, len(got[[]store.Note](t)(s.ListNotes(t.Context(), store.NoteFilter{IDs: []string{}}))), 0)
	_, err := s.AddNote(t.Context(), store.Note{Text: "nowhere"}, 500)
	wantCode(t, err, task.Invalid)
}
