package memory

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Store is what people need to read and change notes.
type Store interface {
	AddNote(ctx context.Context, note store.Note, most int) (store.Note, error)
	ListNotes(ctx context.Context, filter store.NoteFilter) ([]store.Note, error)
	EditNote(ctx context.Context, id, text, by string, at time.Time) (store.Note, error)
	ForgetNote(ctx context.Context, id string) error
}

// ParseRepository reads a repository as people write it, with its forge: github:owner/name.
func ParseRepository(text string) (task.Repository, error) {
	name, repository, found := strings.Cut(strings.TrimSpace(text), ":")
	key := task.Key{Forge: task.Forge(name), Repository: repository, Kind: task.Pull, Number: 1}
	if !found || !slices.Contains(task.Forges, key.Forge) || key.Validate() != nil {
		return task.Repository{}, task.Errorf(task.Invalid, "%q is not a repository with its forge", textfmt.Shorten(text, 100)).
			WithHint("write it like github:owner/name or board:team/app")
	}
	return key.Repo(), nil
}

// Editor writes and changes notes for people.
type Editor struct {
	Store Store
	Mask  func(text string) string // masks secrets; nil means that nothing is looked for
}

// Write keeps a note that a person writes by hand. An empty path means that it may be given to any task.
func (e Editor) Write(ctx context.Context, repository, text, path, by string, now time.Time) (store.Note, error) {
	of, err := ParseRepository(repository)
	if err != nil {
		return store.Note{}, err
	}
	if text, err = e.text(text); err != nil {
		return store.Note{}, err
	}
	if path = textfmt.OneLine(e.mask(visible(path))); utf8.RuneCountInString(path) > MaxPath {
		return store.Note{}, task.Errorf(task.TooLarge, "the path has more than %d characters", MaxPath)
	}
	return e.Store.AddNote(ctx, store.Note{Repository: of, Text: text, Path: path, Author: by, EditedBy: by, AskedAt: now, CreatedAt: now, EditedAt: now}, MostNotes)
}

// Edit changes the text of a note.
func (e Editor) Edit(ctx context.Context, id, text, by string, now time.Time) (store.Note, error) {
	text, err := e.text(text)
	if err != nil {
		return store.Note{}, err
	}
	return e.Store.EditNote(ctx, id, text, by, now)
}

func (e Editor) mask(text string) string {
	if e.Mask == nil {
		return text
	}
	return e.Mask(text)
}

// text is a text as a note has it. One that is too long is not cut: the person can choose what to leave
// out.
func (e Editor) text(text string) (string, error) {
	text = plain(text, e.mask)
	if text == "" {
		return "", task.Errorf(task.Invalid, "the note is empty")
	}
	if n := utf8.RuneCountInString(text); n > MaxText {
		return "", task.Errorf(task.TooLarge, "the note has %d characters; %d are allowed", n, MaxText)
	}
	return text, nil
}
