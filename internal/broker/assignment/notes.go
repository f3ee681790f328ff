package assignment

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/memory"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Memory has the notes from past reviews, and the journals that say which task was given which.
type Memory interface {
	ListNotes(ctx context.Context, filter store.NoteFilter) ([]store.Note, error)
	UseNotes(ctx context.Context, ids []string, at time.Time) error
	Append(ctx context.Context, events []task.Event) (int, error)
}

// notes chooses the notes from past reviews that fit a task.
func (p *Preparer) notes(ctx context.Context, made *Assignment) error {
	if p.Memory == nil {
		return nil
	}
	key := made.Item.Key
	all, err := p.Memory.ListNotes(ctx, store.NoteFilter{Forge: key.Forge, Repository: key.Repository})
	if err != nil {
		return fmt.Errorf("read the notes from past reviews: %w", err)
	}
	if made.Item.Fork { // what a stranger's pull request makes a review say is public
		all = slices.DeleteFunc(all, func(note store.Note) bool { return note.EditedBy != "" })
	}
	made.Notes = memory.Choose(all, about(*made), p.Now())
	return nil
}

// about is what a task is about: what its item says, and the files of its pull request.
func about(a Assignment) memory.About {
	is := memory.About{Texts: []string{a.Item.Title, a.Item.Body}}
	if a.Pull == nil {
		return is
	}
	for _, issue := range a.Pull.Issues {
		is.Texts = append(is.Texts, issue.Title, issue.Body)
	}
	for _, thread := range a.Pull.Threads {
		is.Paths = append(is.Paths, thread.Anchor.Path)
	}
	for _, file := range splitDiff(a.Pull.Diff) {
		is.Paths = append(is.Paths, fileOf(file))
	}
	is.Paths = append(is.Paths, a.Pull.CutFiles...)
	return is
}

// noteGiven writes into the journal which notes a run is given, and that they were used.
func (p *Preparer) noteGiven(ctx context.Context, made Assignment) error {
	if len(made.Notes) == 0 {
		return nil
	}
	var given task.Remembering
	for _, note := range made.Notes {
		given.Notes = append(given.Notes, note.ID)
	}
	data, err := json.Marshal(given)
	if err != nil {
		return task.Wrap(task.Internal, err, "which notes were given cannot be written down")
	}
	t := made.Task
	if _, err := p.Memory.Append(ctx, []task.Event{{
		Task: t.ID, Generation: t.Generation, Source: task.FromServer, Kind: task.Remembered, At: p.Now(), Data: data,
	}}); err != nil {
		return fmt.Errorf("write which notes were given into the journal: %w", err)
	}
	return p.Memory.UseNotes(ctx, given.Notes, p.Now())
}

// notesPart is the notes for an executor that takes a prompt.
func notesPart(a Assignment) string {
	if len(a.Notes) == 0 {
		return ""
	}
	return "\n" + memory.Render(a.Notes) + "\n"
}
