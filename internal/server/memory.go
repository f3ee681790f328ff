package server

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/memory"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/wire"
)

const (
	// searchedNotes is how many notes are looked through for one answer.
	searchedNotes = 5000
)

type (
	notesInput struct {
		Repository string `query:"repository" doc:"Only of this repository, with its forge" example:"github:owner/name" maxLength:"2000"`
		Search     string `query:"search" doc:"Only those that have all these words in the text, the path or the author" maxLength:"200"`
		Before     string `query:"before" doc:"Only older ones than the note with this id" maxLength:"200"`
		Limit      int    `query:"limit" default:"100" minimum:"1" maximum:"500"`
	}
	notesOutput   struct{ Body wire.Notes }
	noteOutput    struct{ Body wire.Note }
	newNoteInput  struct{ Body wire.NewNote }
	editNoteInput struct {
		ID   string `path:"id" maxLength:"200"`
		Body wire.NoteText
	}
	noteInput struct {
		ID string `path:"id" maxLength:"200"`
	}
)

// registerMemory lets people read and change the notes from reviews. Enabled says whether notes are
// kept and given to tasks.
func (s *Server) registerMemory(enabled bool, notes memory.Editor) {
	register(s, access.Viewer, huma.Operation{
		OperationID: "list-notes", Method: http.MethodGet, Path: "/v1/memory", Summary: "Notes from reviews, the newest first",
		Errors: []int{http.StatusUnprocessableEntity},
	}, func(ctx context.Context, input *notesInput) (*notesOutput, error) {
		return s.listNotes(ctx, input, enabled)
	})
	register(s, access.Operator, huma.Operation{
		OperationID: "add-note", Method: http.MethodPost, Path: "/v1/memory", Summary: "Write a note for later tasks of a repository", DefaultStatus: http.StatusCreated,
		Errors: []int{http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge},
	}, func(ctx context.Context, input *newNoteInput) (*noteOutput, error) {
		made, err := notes.Write(ctx, input.Body.Repository, input.Body.Text, input.Body.Path, editor(ctx), s.now())
		return &noteOutput{noteOf(made)}, err
	})
	register(s, access.Operator, huma.Operation{
		OperationID: "edit-note", Method: http.MethodPatch, Path: "/v1/memory/{id}", Summary: "Change the text of a note",
		Errors: []int{http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge},
	}, func(ctx context.Context, input *editNoteInput) (*noteOutput, error) {
		edited, err := notes.Edit(ctx, input.ID, input.Body.Text, editor(ctx), s.now())
		return &noteOutput{noteOf(edited)}, err
	})
	register(s, access.Operator, huma.Operation{
		OperationID: "forget-note", Method: http.MethodDelete, Path: "/v1/memory/{id}", Summary: "Remove a note for good",
		Description: "Nothing is learned again from the comments that it came from.",
		Errors:      []int{http.StatusNotFound},
	}, func(ctx context.Context, input *noteInput) (*struct{}, error) {
		return nil, s.store.ForgetNote(ctx, input.ID)
	})
}

// editor is who changes a note: a person, or what a token without one is called.
func editor(ctx context.Context) string { return cmp.Or(person(ctx), caller(ctx).Name, "operator") }

func (s *Server) listNotes(ctx context.Context, input *notesInput, enabled bool) (*notesOutput, error) {
	filter := store.NoteFilter{Before: input.Before, Limit: searchedNotes}
	if input.Repository != "" {
		of, err := memory.ParseRepository(input.Repository)
		if err != nil {
			return nil, err
		}
		filter.Forge, filter.Repository = of.Forge, of.Name
	}
	if input.Search == "" {
		filter.Limit = input.Limit
	}
	found, err := s.store.ListNotes(ctx, filter)
	if err != nil {
		return nil, err
	}
	answer := wire.Notes{Enabled: enabled, Notes: []wire.Note{}}
	for i, note := range found {
		if has(note, input.Search) {
			answer.Notes = append(answer.Notes, noteOf(note))
		}
		whole := len(answer.Notes) == input.Limit && (i+1 < len(found) || len(found) == filter.Limit)
		if whole || i+1 == searchedNotes {
			answer.Before = note.ID
			break
		}
	}
	return &notesOutput{answer}, nil
}

// has reports whether a note has all words of a search in it.
func has(note store.Note, search string) bool {
	text := strings.ToLower(strings.Join([]string{note.Text, note.Path, note.Author}, "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(search)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func noteOf(n store.Note) wire.Note {
	return wire.Note{
		ID: n.ID, Repository: n.Repository.String(), Text: n.Text, Path: n.Path, Ending: string(n.Ending), Author: n.Author, Source: n.URL, Asked: n.Asked,
		AskedAt: n.AskedAt, EditedBy: n.EditedBy, EditedAt: n.EditedAt, UsedAt: n.UsedAt,
	}
}
