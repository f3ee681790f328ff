package github

import (
	"context"
	"net/http"
	"strings"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// CreateComment writes a comment.
func (f *Forge) CreateComment(ctx context.Context, key task.Key, post forge.Post) (task.Comment, error) {
	at, err := placeOfKey(key)
	if err != nil {
		return task.Comment{}, err
	}
	if post.Repeat {
		comment, found, err := f.FindComment(ctx, key, post.Marker)
		if found || err != nil {
			return comment, err
		}
	}
	body := gh.IssueCommentRequest{Body: post.Body()}
	comment, _, err := f.client.Issues.CreateComment(ctx, at.owner, at.name, at.number, body)
	return written(comment, err, "comment on %s", key)
}

// EditComment replaces the text of a comment of ours.
func (f *Forge) EditComment(ctx context.Context, key task.Key, id string, post forge.Post) (task.Comment, error) {
	at, err := placeOfKey(key)
	if err != nil {
		return task.Comment{}, err
	}
	comment, err := number(id)
	if err != nil {
		return task.Comment{}, err
	}
	edited, _, err := f.client.Issues.UpdateComment(ctx, at.owner, at.name, comment, gh.IssueCommentRequest{Body: post.Body()})
	return written(edited, err, "edit a comment on %s", key)
}

func written(comment *gh.IssueComment, err error, what string, key task.Key) (task.Comment, error) {
	if err == nil && comment.GetID() == 0 {
		err = errNonsense
	}
	if err != nil {
		return task.Comment{}, callError(err, what, key)
	}
	return issueComment(comment), nil
}

// FindComment returns the oldest comment of ours with the marker.
func (f *Forge) FindComment(ctx context.Context, key task.Key, marker forge.Marker) (task.Comment, bool, error) {
	return forge.FindOwnComment(ctx, f, key, marker)
}

// AddLabel puts a label on the item. GitHub creates one that is missing.
func (f *Forge) AddLabel(ctx context.Context, key task.Key, name string) error {
	at, err := placeOfKey(key)
	if err != nil {
		return err
	}
	if strings.TrimSpace(name) == "" {
		return task.Errorf(task.Invalid, "a label on GitHub needs a name")
	}
	body := map[string][]string{"labels": {name}}
	if err := f.do(ctx, http.MethodPost, at.path("issues", at.number, "labels"), body, nil); err != nil {
		return callError(err, "put the label %q on %s", name, key)
	}
	return nil
}

// RemoveLabel takes a label off the item.
func (f *Forge) RemoveLabel(ctx context.Context, key task.Key, name string) error {
	at, err := placeOfKey(key)
	if err != nil {
		return err
	}
	if name == "" || name == "." || name == ".." {
		return nil // cannot be on it, and would be another address
	}
	err = f.do(ctx, http.MethodDelete, at.path("issues", at.number, "labels", name), nil, nil)
	if status(err) == http.StatusNotFound {
		// The label is not on it, or the item itself is missing.
		_, err := f.Item(ctx, key)
		return err
	}
	if err != nil {
		return callError(err, "take the label %q off %s", name, key)
	}
	return nil
}

// Assign adds a login to the assignees. GitHub gives no error for a login that cannot
// be assigned: it leaves it out.
func (f *Forge) Assign(ctx context.Context, key task.Key, login string) error {
	at, err := placeOfKey(key)
	if err != nil {
		return err
	}
	issue, _, err := f.client.Issues.AddAssignees(ctx, at.owner, at.name, at.number, []string{login})
	if err == nil && issue.GetNumber() != at.number {
		err = errNonsense
	}
	if err != nil {
		return callError(err, "assign %s to %s", login, key)
	}
	if !(forge.Item{Assignees: loginsOf(issue.Assignees)}).AssignedTo(login) {
		return task.Errorf(task.Invalid, "GitHub does not let %s be assigned to %s", login, key).
			WithHint("give %s access to the repository", login)
	}
	return nil
}
