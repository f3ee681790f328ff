package github

import (
	"context"
	"net/http"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// OpenPull opens a pull request, or returns the one that is open.
func (f *Forge) OpenPull(ctx context.Context, repository string, post forge.PullPost) (forge.Item, bool, error) {
	at, err := placeOf(repository)
	if err != nil {
		return forge.Item{}, false, err
	}
	title, text := post.Title.String(), post.Text.String()
	pull, _, err := f.client.PullRequests.Create(ctx, at.owner, at.name, gh.CreatePullRequest{
		Title: &title, Body: &text, Head: post.Head, Base: post.Base, Draft: &post.Draft,
	})
	switch {
	case err == nil && pull.GetNumber() > 0:
		return pullItem(repository, pull), true, nil
	case err == nil:
		err = errNonsense
	case status(err) == http.StatusUnprocessableEntity:
		item, found, findErr := f.FindPull(ctx, repository, post.Head, post.Base)
		if found || findErr != nil {
			return item, false, findErr
		}
		if post.Draft && hasReason(err, "draft pull requests are not supported") {
			return forge.Item{}, false, task.Wrap(task.Unsupported, err, "the repository "+repository+" can have no drafts").
				WithHint("open it as one that is ready")
		}
	}
	return forge.Item{}, false, callError(err, "open a pull request from %s in %s", post.Head, repository)
}

// FindPull returns the open pull request from head to base.
func (f *Forge) FindPull(ctx context.Context, repository, head, base string) (forge.Item, bool, error) {
	at, err := placeOf(repository)
	if err != nil {
		return forge.Item{}, false, err
	}
	options := gh.PullRequestListOptions{
		State: "open", Head: at.owner + ":" + head, Base: base, Sort: "created", Direction: "asc",
		ListOptions: gh.ListOptions{PerPage: perPage},
	}
	for pull, err := range f.client.PullRequests.ListIter(ctx, at.owner, at.name, &options) {
		if err != nil {
			return forge.Item{}, false, callError(err, "look for the pull request from %s in %s", head, repository)
		}
		// The owner may have a fork with such a branch as well.
		item := pullItem(repository, pull)
		if !item.Fork && item.Head == head && (base == "" || item.Base == base) {
			return item, true, nil
		}
	}
	return forge.Item{}, false, nil
}

// EditPull changes fields of a pull request.
func (f *Forge) EditPull(ctx context.Context, key task.Key, edit forge.PullEdit) (forge.Item, error) {
	at, err := placeOfPull(key)
	if err != nil {
		return forge.Item{}, err
	}
	change := new(gh.PullRequest)
	if edit.Title != nil {
		title := edit.Title.String()
		change.Title = &title
	}
	if edit.Text != nil {
		text := edit.Text.String()
		change.Body = &text
	}
	var pull *gh.PullRequest
	if change.Title == nil && change.Body == nil {
		pull, _, err = f.client.PullRequests.Get(ctx, at.owner, at.name, at.number)
	} else {
		pull, _, err = f.client.PullRequests.Edit(ctx, at.owner, at.name, at.number, change)
	}
	if err == nil && pull.GetNumber() != at.number {
		err = errNonsense
	}
	if err == nil && edit.Draft != nil && pull.GetDraft() != *edit.Draft {
		if err = f.setDraft(ctx, pull.GetNodeID(), *edit.Draft); err == nil {
			pull.Draft = edit.Draft
		}
	}
	if err != nil {
		return forge.Item{}, callError(err, "edit %s", key)
	}
	return pullItem(key.Repository, pull), nil
}
