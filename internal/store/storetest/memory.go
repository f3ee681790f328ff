package storetest

import (
	"fmt"
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
	must(t, s.ForgetWatched(t.Context()))
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
	same := learned("b", "Please close the gate.")
	same.Into, same.Note.AskedAt = first.ID, noon.Add(time.Hour)
	for range 2 {
		must(t, s.Learn(t.Context(), lesson([]string{"a", "b"}, same)))
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
	must(t, s.Learn(t.Context(), more))
	texts := func() (texts []string) {
		for _, note := range notes(t, s) {
			texts = append(texts, note.Text)
		}
		return texts
	}
	equal(t, texts(), []string{"Note 3", "Note 0", "By hand."})
	for _, note := range notes(t, s) {
		got[store.Note](t)(s.EditNote(t.Context(), note.ID, note.Text, "bob", noon))
	}
	_, err := s.AddNote(t.Context(), own, 3)
	wantCode(t, err, task.TooLarge)
	must(t, s.ForgetNote(t.Context(), own.ID))
	got[store.Note](t)(s.AddNote(t.Context(), own, 3))
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
