package gitlab

import (
	"context"
	"slices"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/task"
)

// Comments returns the comments in the item's conversation, without the notes
// that GitLab writes itself, internal ones, those on lines, and the texts of our own
// reviews.
func (f *Forge) Comments(ctx context.Context, key task.Key) ([]task.Comment, error) {
	notes, err := f.notes(ctx, key)
	if err != nil {
		return nil, err
	}
	var comments []task.Comment
	for _, note := range notes {
		if note.System || note.Internal || onLine(note) {
			continue
		}
		comment := commentOf(note)
		if reviewTag.MatchString(comment.Body) {
			self, err := f.Self(ctx)
			if err != nil {
				return nil, err
			}
			if comment.By(self) {
				continue
			}
		}
		comments = append(comments, comment)
	}
	slices.SortStableFunc(comments, oldestFirst)
	return comments, nil
}

// notes returns everything in the item's conversation.
func (f *Forge) notes(ctx context.Context, key task.Key) ([]*gl.Note, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	order, sort := "created_at", "asc"
	notes, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.Note, *gl.Response, error) {
		if key.Kind == task.Pull {
			options := gl.ListMergeRequestNotesOptions{OrderBy: &order, Sort: &sort}
			options.PerPage = perPage
			return f.client.Notes.ListMergeRequestNotes(key.Repository, key.Number, &options, page...)
		}
		options := gl.ListIssueNotesOptions{OrderBy: &order, Sort: &sort}
		options.PerPage = perPage
		return f.client.Notes.ListIssueNotes(key.Repository, key.Number, &options, page...)
	})
	if err == nil && slices.ContainsFunc(notes, func(note *gl.Note) bool { return note == nil || note.ID == 0 }) {
		err = errNonsense
	}
	if err != nil {
		return nil, callError(err, "read the comments on %s", key)
	}
	return notes, nil
}
