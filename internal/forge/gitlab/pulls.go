package gitlab

import (
	"context"
	"net/http"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// OpenPull opens a merge request, or returns the one that is open.
func (f *Forge) OpenPull(ctx context.Context, repository string, post forge.PullPost) (forge.Item, bool, error) {
	if err := checkRepository(repository); err != nil {
		return forge.Item{}, false, err
	}
	title, text := titleOf(post.Title.String(), post.Draft), post.Text.String()
	request, _, err := f.client.MergeRequests.CreateMergeRequest(repository, &gl.CreateMergeRequestOptions{
		Title: &title, Description: &text, SourceBranch: &post.Head, TargetBranch: &post.Base,
	}, in(ctx))
	if err == nil && request != nil && request.IID > 0 {
		return pullItem(repository, &request.BasicMergeRequest), true, nil
	}
	if err == nil {
		err = errNonsense
	}
	if status(err) == http.StatusConflict {
		item, found, findErr := f.FindPull(ctx, repository, post.Head, post.Base)
		if found || findErr != nil {
			return item, false, findErr
		}
	}
	return forge.Item{}, false, callError(err, "open a merge request from %s in %s", post.Head, repository)
}

// FindPull returns the open merge request from head to base.
func (f *Forge) FindPull(ctx context.Context, repository, head, base string) (forge.Item, bool, error) {
	if err := checkRepository(repository); err != nil {
		return forge.Item{}, false, err
	}
	state, order, sort := "opened", "created_at", "asc"
	options := gl.ListProjectMergeRequestsOptions{State: &state, SourceBranch: &head, OrderBy: &order, Sort: &sort}
	options.PerPage = perPage
	if base != "" {
		options.TargetBranch = &base
	}
	requests, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.BasicMergeRequest, *gl.Response, error) {
		return f.client.MergeRequests.ListProjectMergeRequests(repository, &options, page...)
	})
	if err != nil {
		return forge.Item{}, false, callError(err, "look for the merge request from %s in %s", head, repository)
	}
	for _, request := range requests {
		// A fork may have such a branch as well.
		item := pullItem(repository, request)
		if !item.Fork && item.Head == head && (base == "" || item.Base == base) {
			return item, true, nil
		}
	}
	return forge.Item{}, false, nil
}

// EditPull changes fields of a merge request.
func (f *Forge) EditPull(ctx context.Context, key task.Key, edit forge.PullEdit) (forge.Item, error) {
	if err := checkPull(key); err != nil {
		return forge.Item{}, err
	}
	now, err := f.request(ctx, key)
	if err != nil {
		return forge.Item{}, err
	}
	title, draft := now.Title, now.Draft
	if edit.Title != nil {
		title = edit.Title.String()
	}
	if edit.Draft != nil {
		draft = *edit.Draft
	}
	var options gl.UpdateMergeRequestOptions
	if edit.Title != nil || draft != now.Draft {
		title = titleOf(title, draft)
		options.Title = &title
	}
	if edit.Text != nil {
		text := edit.Text.String()
		options.Description = &text
	}
	if options.Title == nil && options.Description == nil { // GitLab refuses to change nothing
		return pullItem(key.Repository, &now.BasicMergeRequest), nil
	}
	request, _, err := f.client.MergeRequests.UpdateMergeRequest(key.Repository, key.Number, &options, in(ctx))
	if err == nil && (request == nil || request.IID != key.Number) {
		err = errNonsense
	}
	if err != nil {
		return forge.Item{}, callError(err, "edit %s", key)
	}
	return pullItem(key.Repository, &request.BasicMergeRequest), nil
}
