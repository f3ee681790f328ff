package gitlab

import (
	"cmp"
	"context"
	"slices"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// LabelEvents returns when labels were put on the item and taken off. GitLab
// forgets the name of a label that was deleted since.
func (f *Forge) LabelEvents(ctx context.Context, key task.Key) ([]forge.LabelEvent, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	options := gl.ListLabelEventsOptions{}
	options.PerPage = perPage
	found, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.LabelEvent, *gl.Response, error) {
		if key.Kind == task.Pull {
			return f.client.ResourceLabelEvents.ListMergeRequestsLabelEvents(key.Repository, key.Number, &options, page...)
		}
		return f.client.ResourceLabelEvents.ListIssueLabelEvents(key.Repository, key.Number, &options, page...)
	})
	if err != nil {
		return nil, callError(err, "read the history of %s", key)
	}
	var events []forge.LabelEvent
	for _, event := range found {
		if event == nil || event.Label.Name == "" {
			continue
		}
		events = append(events, forge.LabelEvent{
			Label: event.Label.Name,
			On:    event.Action == "add",
			Actor: userLogin(&event.User),
			At:    timeOf(event.CreatedAt),
		})
	}
	slices.SortStableFunc(events, func(a, b forge.LabelEvent) int { return a.At.Compare(b.At) })
	return events, nil
}

// LinkedPulls returns the merge requests that are about the issue.
func (f *Forge) LinkedPulls(ctx context.Context, key task.Key) ([]forge.LinkedPull, error) {
	if err := checkKey(key); err != nil || key.Kind == task.Pull {
		return nil, err
	}
	options := gl.ListMergeRequestsRelatedToIssueOptions{}
	options.PerPage = perPage
	requests, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.BasicMergeRequest, *gl.Response, error) {
		return f.client.Issues.ListMergeRequestsRelatedToIssue(key.Repository, key.Number, &options, page...)
	})
	if err != nil {
		return nil, callError(err, "read the links of %s", key)
	}
	slices.SortStableFunc(requests, func(a, b *gl.BasicMergeRequest) int {
		return cmp.Or(timeOf(a.CreatedAt).Compare(timeOf(b.CreatedAt)), cmp.Compare(a.ID, b.ID))
	})
	var links []forge.LinkedPull
	for _, request := range requests {
		repository := key.Repository
		if request.References != nil {
			if to, ok := parseReference(request.References.Full); ok {
				repository = to.Repository
			}
		}
		item := pullItem(repository, request)
		links = append(links, forge.LinkedPull{Key: item.Key, State: item.State, URL: item.URL})
	}
	return links, nil
}
