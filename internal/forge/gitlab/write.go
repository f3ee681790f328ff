package gitlab

import (
	"context"
	"slices"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// CreateComment writes a comment.
func (f *Forge) CreateComment(ctx context.Context, key task.Key, post forge.Post) (task.Comment, error) {
	if err := checkKey(key); err != nil {
		return task.Comment{}, err
	}
	if post.Repeat {
		comment, found, err := f.FindComment(ctx, key, post.Marker)
		if found || err != nil {
			return comment, err
		}
	}
	body := post.Body()
	var note *gl.Note
	var err error
	if key.Kind == task.Pull {
		note, _, err = f.client.Notes.CreateMergeRequestNote(key.Repository, key.Number, &gl.CreateMergeRequestNoteOptions{Body: &body}, in(ctx))
	} else {
		note, _, err = f.client.Notes.CreateIssueNote(key.Repository, key.Number, &gl.CreateIssueNoteOptions{Body: &body}, in(ctx))
	}
	return written(note, err, "comment on %s", key)
}

// EditComment replaces the text of a comment of ours.
func (f *Forge) EditComment(ctx context.Context, key task.Key, id string, post forge.Post) (task.Comment, error) {
	if err := checkKey(key); err != nil {
		return task.Comment{}, err
	}
	comment, err := number(id)
	if err != nil {
		return task.Comment{}, err
	}
	body := post.Body()
	var note *gl.Note
	if key.Kind == task.Pull {
		note, _, err = f.client.Notes.UpdateMergeRequestNote(key.Repository, key.Number, comment, &gl.UpdateMergeRequestNoteOptions{Body: &body}, in(ctx))
	} else {
		note, _, err = f.client.Notes.UpdateIssueNote(key.Repository, key.Number, comment, &gl.UpdateIssueNoteOptions{Body: &body}, in(ctx))
	}
	return written(note, err, "edit a comment on %s", key)
}

func written(note *gl.Note, err error, what string, key task.Key) (task.Comment, error) {
	if err == nil && (note == nil || note.ID == 0) {
		err = errNonsense
	}
	if err != nil {
		return task.Comment{}, callError(err, what, key)
	}
	return commentOf(note), nil
}

// FindComment returns the oldest comment of ours with the marker.
func (f *Forge) FindComment(ctx context.Context, key task.Key, marker forge.Marker) (task.Comment, bool, error) {
	return forge.FindOwnComment(ctx, f, key, marker)
}

func canBeLabel(name string) bool { return strings.TrimSpace(name) != "" && !hasComma(name) }

func checkLabel(name string) error {
	if !canBeLabel(name) {
		return task.Errorf(task.Invalid, "GitLab can have no label called %q", name)
	}
	return nil
}

// AddLabel puts a label on the item. GitLab creates one that is missing.
func (f *Forge) AddLabel(ctx context.Context, key task.Key, name string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := checkLabel(name); err != nil {
		return err
	}
	item, err := f.update(ctx, key, change{addLabel: name})
	if err != nil {
		return callError(err, "put the label %q on %s", name, key)
	}
	if !item.HasLabel(name) {
		return task.Errorf(task.Forbidden, "GitLab did not put the label %q on %s", name, key).
			WithHint("give the account the right to create labels, or create it")
	}
	return nil
}

// RemoveLabel takes a label off the item.
func (f *Forge) RemoveLabel(ctx context.Context, key task.Key, name string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if !canBeLabel(name) {
		return nil // it is not on it
	}
	if _, err := f.update(ctx, key, change{removeLabel: name}); err != nil {
		return callError(err, "take the label %q off %s", name, key)
	}
	return nil
}

// change is a change of an issue or merge request, which have the same fields.
type change struct {
	addLabel, removeLabel string
	assignees             *[]int64
}

func (f *Forge) update(ctx context.Context, key task.Key, change change) (forge.Item, error) {
	var add, remove *gl.LabelOptions
	if change.addLabel != "" {
		add = labelsOption([]string{change.addLabel})
	}
	if change.removeLabel != "" {
		remove = labelsOption([]string{change.removeLabel})
	}
	if key.Kind == task.Pull {
		options := gl.UpdateMergeRequestOptions{AddLabels: add, RemoveLabels: remove, AssigneeIDs: change.assignees}
		request, _, err := f.client.MergeRequests.UpdateMergeRequest(key.Repository, key.Number, &options, in(ctx))
		if err == nil && (request == nil || request.IID != key.Number) {
			err = errNonsense
		}
		if err != nil {
			return forge.Item{}, err
		}
		return pullItem(key.Repository, &request.BasicMergeRequest), nil
	}
	options := gl.UpdateIssueOptions{AddLabels: add, RemoveLabels: remove, AssigneeIDs: change.assignees}
	issue, _, err := f.client.Issues.UpdateIssue(key.Repository, key.Number, &options, in(ctx))
	if err == nil && (issue == nil || issue.IID != key.Number) {
		err = errNonsense
	}
	if err != nil {
		return forge.Item{}, err
	}
	return issueItem(key.Repository, issue), nil
}

// Assign adds a login to the assignees. On GitLab's free tier an item has one at
// most: then it is Invalid while somebody else is assigned.
func (f *Forge) Assign(ctx context.Context, key task.Key, login string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	now, err := f.assignees(ctx, key)
	if err != nil {
		return err
	}
	who, found, err := f.find(ctx, login)
	if err != nil {
		return err
	}
	if !found {
		return task.Errorf(task.Invalid, "GitLab has no account called %s", login)
	}
	if slices.Contains(now, who.id) {
		return nil
	}
	wanted := append(slices.Clone(now), who.id)
	item, err := f.update(ctx, key, change{assignees: &wanted})
	if err != nil {
		return callError(err, "assign %s to %s", login, key)
	}
	if !item.AssignedTo(login) {
		return task.Errorf(task.Invalid, "GitLab does not let %s be assigned to %s", login, key).
			WithHint("give %s access to the project; on the free tier only one account can be assigned", login)
	}
	return nil
}

// assignees returns the ids of those who are assigned.
func (f *Forge) assignees(ctx context.Context, key task.Key) ([]int64, error) {
	var ids []int64
	if key.Kind == task.Pull {
		request, err := f.request(ctx, key)
		if err != nil {
			return nil, err
		}
		for _, assignee := range request.Assignees {
			ids = append(ids, assignee.ID)
		}
		return ids, nil
	}
	issue, err := f.issue(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, assignee := range issue.Assignees {
		ids = append(ids, assignee.ID)
	}
	return ids, nil
}
