package gitea

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

func commentOf(c *sdk.Comment) task.Comment {
	return task.Comment{
		ID: strconv.FormatInt(c.ID, 10), Kind: task.ItemComment, Author: login(c.Poster), Body: forge.Clean(c.Body),
		CreatedAt: c.Created.UTC(), UpdatedAt: c.Updated.UTC(),
	}
}

// CreateComment writes a comment.
func (f *Forge) CreateComment(ctx context.Context, key task.Key, post forge.Post) (task.Comment, error) {
	at, err := locate(key)
	if err != nil {
		return task.Comment{}, err
	}
	if post.Repeat {
		if comment, found, err := f.FindComment(ctx, key, post.Marker); err != nil || found {
			return comment, err
		}
	}
	comment, answer, err := f.client(ctx).CreateIssueComment(at.owner, at.name, at.number, sdk.CreateIssueCommentOption{Body: post.Body()})
	if err != nil {
		return task.Comment{}, f.explain(ctx, key, callError("comment on "+key.String(), answer, err))
	}
	return commentOf(comment), nil
}

// EditComment replaces the text of a comment.
func (f *Forge) EditComment(ctx context.Context, key task.Key, id string, post forge.Post) (task.Comment, error) {
	at, err := locate(key)
	if err != nil {
		return task.Comment{}, err
	}
	number, err := commentID(id)
	if err != nil {
		return task.Comment{}, err
	}
	comment, answer, err := f.client(ctx).EditIssueComment(at.owner, at.name, number, sdk.EditIssueCommentOption{Body: post.Body()})
	if err != nil {
		return task.Comment{}, callError("edit a comment on "+key.String(), answer, err)
	}
	edited := commentOf(comment)
	if comment.Poster == nil {
		// Gitea leaves it out of this answer. Only an author can edit.
		if edited.Author, err = f.Self(ctx); err != nil {
			return task.Comment{}, err
		}
	}
	return edited, nil
}

// FindComment looks for a comment of ours by its marker.
func (f *Forge) FindComment(ctx context.Context, key task.Key, marker forge.Marker) (task.Comment, bool, error) {
	return forge.FindOwnComment(ctx, f, key, marker)
}

// AddLabel puts a label on an item. Gitea passes over the name of a label that
// does not exist; then it is created.
func (f *Forge) AddLabel(ctx context.Context, key task.Key, name string) error {
	at, err := locate(key)
	if err != nil {
		return err
	}
	add := func() (there bool, err error) {
		var labels []*sdk.Label
		wanted := map[string][]string{"labels": {name}}
		answer, err := f.request(ctx, http.MethodPost, at.path("issues")+"/labels", wanted, &labels)
		if err != nil {
			return false, callError("label "+key.String(), answer, err)
		}
		return slices.Contains(labelNames(labels), name), nil
	}
	if there, err := add(); err != nil || there {
		return err
	}
	if _, err := f.newLabel(ctx, key.Repository, forge.Label{Name: name, Color: forge.DefaultLabelColor}); err != nil {
		return err
	}
	there, err := add()
	if err == nil && !there {
		err = task.Errorf(task.Invalid, "Gitea does not put the label %q on %s", name, key)
	}
	return err
}

// RemoveLabel takes a label off an item.
func (f *Forge) RemoveLabel(ctx context.Context, key task.Key, name string) error {
	at, err := locate(key)
	if err != nil {
		return err
	}
	labels, answer, err := f.client(ctx).GetIssueLabels(at.owner, at.name, at.number, sdk.ListLabelsOptions{})
	if err != nil {
		return callError("read the labels of "+key.String(), answer, err)
	}
	for _, label := range labels {
		if label.Name != name {
			continue
		}
		answer, err := f.client(ctx).DeleteIssueLabel(at.owner, at.name, at.number, label.ID)
		if err := callError("take a label off "+key.String(), answer, err); err != nil && task.CodeOf(err) != task.Invalid {
			return err // Invalid means that someone else has taken it off meanwhile
		}
	}
	return nil
}

// Assign adds an assignee.
func (f *Forge) Assign(ctx context.Context, key task.Key, login string) error {
	at, err := locate(key)
	if err != nil {
		return err
	}
	issue, answer, err := f.client(ctx).GetIssue(at.owner, at.name, at.number)
	if err != nil {
		return callError("read "+key.String(), answer, err)
	}
	if itemOf(key.Repository, issue).AssignedTo(login) {
		return nil
	}
	wanted := append(logins(issue.Assignees), login)
	_, answer, err = f.client(ctx).EditIssue(at.owner, at.name, at.number, sdk.EditIssueOption{Assignees: wanted})
	err = callError("change the assignees of "+key.String(), answer, err)
	if isServerError(err) {
		// So Gitea answers as well when the account does not exist.
		if _, answer, findErr := f.client(ctx).GetUserInfo(login); task.CodeOf(callError("look for "+login, answer, findErr)) == task.NotFound {
			return task.Errorf(task.Invalid, "there is no %s on Gitea who could be assigned", login)
		}
	}
	return err
}

// Remote returns where git finds the repository.
func (f *Forge) Remote(_ context.Context, repository string) (forge.Remote, error) {
	owner, name, err := split(repository)
	if err != nil {
		return forge.Remote{}, err
	}
	// Gitea takes a token as the password under any name.
	return forge.Remote{
		URL:      f.url + "/" + url.PathEscape(owner) + "/" + url.PathEscape(name) + ".git",
		Username: "toryo", Password: f.token,
	}, nil
}
