package gitlab

import (
	"cmp"
	"context"
	"slices"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// List returns the open items that pass the query.
func (f *Forge) List(ctx context.Context, query forge.Query) ([]forge.Item, error) {
	if err := checkRepository(query.Repository); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(query.Labels, hasComma) {
		return nil, nil // no label can be called that
	}
	var assignee *gl.AssigneeIDValue
	if query.Assignee != "" {
		who, found, err := f.find(ctx, query.Assignee)
		if err != nil || !found {
			return nil, err
		}
		assignee = gl.AssigneeID(who.id)
	}
	var items []forge.Item
	if query.Kind != task.Pull {
		issues, err := f.listIssues(ctx, query, assignee)
		if err != nil {
			return nil, callError(err, "list the issues of %s", query.Repository)
		}
		items = append(items, issues...)
	}
	if query.Kind != task.Issue {
		requests, err := f.listPulls(ctx, query, assignee)
		if err != nil {
			return nil, callError(err, "list the merge requests of %s", query.Repository)
		}
		items = append(items, requests...)
	}
	slices.SortStableFunc(items, func(a, b forge.Item) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key.Number, b.Key.Number))
	})
	return items, nil
}

func hasComma(label string) bool { return strings.Contains(label, ",") }

func labelsOption(labels []string) *gl.LabelOptions {
	if len(labels) == 0 {
		return nil
	}
	options := gl.LabelOptions(labels)
	return &options
}

func (f *Forge) listIssues(ctx context.Context, query forge.Query, assignee *gl.AssigneeIDValue) ([]forge.Item, error) {
	state, order, sort := "opened", "created_at", "asc"
	options := gl.ListProjectIssuesOptions{
		State: &state, Labels: labelsOption(query.Labels), AssigneeID: assignee, OrderBy: &order, Sort: &sort,
	}
	options.PerPage = perPage
	if !query.UpdatedSince.IsZero() {
		options.UpdatedAfter = &query.UpdatedSince
	}
	issues, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.Issue, *gl.Response, error) {
		return f.client.Issues.ListProjectIssues(query.Repository, &options, page...)
	})
	var items []forge.Item
	for _, issue := range issues {
		items = append(items, issueItem(query.Repository, issue))
	}
	return items, err
}

func (f *Forge) listPulls(ctx context.Context, query forge.Query, assignee *gl.AssigneeIDValue) ([]forge.Item, error) {
	state, order, sort := "opened", "created_at", "asc"
	options := gl.ListProjectMergeRequestsOptions{
		State: &state, Labels: labelsOption(query.Labels), AssigneeID: assignee, OrderBy: &order, Sort: &sort,
	}
	options.PerPage = perPage
	if !query.UpdatedSince.IsZero() {
		options.UpdatedAfter = &query.UpdatedSince
	}
	requests, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.BasicMergeRequest, *gl.Response, error) {
		return f.client.MergeRequests.ListProjectMergeRequests(query.Repository, &options, page...)
	})
	var items []forge.Item
	for _, request := range requests {
		items = append(items, pullItem(query.Repository, request))
	}
	return items, err
}

// Item returns one item.
func (f *Forge) Item(ctx context.Context, key task.Key) (forge.Item, error) {
	if err := checkKey(key); err != nil {
		return forge.Item{}, err
	}
	if key.Kind == task.Pull {
		request, err := f.request(ctx, key)
		if err != nil {
			return forge.Item{}, err
		}
		return pullItem(key.Repository, &request.BasicMergeRequest), nil
	}
	issue, err := f.issue(ctx, key)
	if err != nil {
		return forge.Item{}, err
	}
	return issueItem(key.Repository, issue), nil
}

func (f *Forge) issue(ctx context.Context, key task.Key) (*gl.Issue, error) {
	issue, _, err := f.client.Issues.GetIssue(key.Repository, key.Number, in(ctx))
	if err == nil && (issue == nil || issue.IID != key.Number) {
		err = errNonsense
	}
	if err != nil {
		return nil, callError(err, "read %s", key)
	}
	if issue.MovedToID != 0 {
		return nil, task.Errorf(task.NotFound, "%s was moved to another project", key)
	}
	return issue, nil
}

func (f *Forge) request(ctx context.Context, key task.Key) (*gl.MergeRequest, error) {
	request, _, err := f.client.MergeRequests.GetMergeRequest(key.Repository, key.Number, nil, in(ctx))
	if err == nil && (request == nil || request.IID != key.Number) {
		err = errNonsense
	}
	if err != nil {
		return nil, callError(err, "read %s", key)
	}
	return request, nil
}
