package gitea

import (
	"context"
	"fmt"
	"net/http"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// event is one entry of an issue's timeline, as far as it matters here. The SDK's
// own type does not fit what the server sends.
type event struct {
	ID       int64      `json:"id"`
	Type     string     `json:"type"`
	User     *sdk.User  `json:"user"`
	Body     string     `json:"body"`
	Created  time.Time  `json:"created_at"`
	Label    *sdk.Label `json:"label"`
	RefIssue *sdk.Issue `json:"ref_issue"`
}

// timeline reads what happened to an item. Gitea leaves comments on lines out of
// it, but only after it has cut it into pages. So an empty page is not the end
// yet if the item has such comments: as many as hidden of them may make empty
// pages. One more empty page is looked behind for those that nobody tells us of.
func (f *Forge) timeline(ctx context.Context, key task.Key, hidden int) ([]event, error) {
	at, err := locate(key)
	if err != nil {
		return nil, err
	}
	var all []event
	empty, allowed := 0, 2+hidden/smallestPage
	for number := 1; empty < allowed; number++ {
		var page []event
		path := fmt.Sprintf("%s/timeline?page=%d&limit=%d", at.path("issues"), number, perPage)
		answer, err := f.request(ctx, http.MethodGet, path, nil, &page)
		if err != nil {
			return nil, read("read the timeline of "+key.String(), answer, err)
		}
		if len(page) == 0 {
			empty++
		}
		all = append(all, page...)
	}
	return all, nil
}

// smallestPage is the smallest that we think a server's pages may be.
const smallestPage = 10

// LabelEvents returns when labels were put on and taken off.
func (f *Forge) LabelEvents(ctx context.Context, key task.Key) ([]forge.LabelEvent, error) {
	hidden := 0
	if key.Kind == task.Pull {
		reviews, err := f.allReviews(ctx, key)
		if err != nil {
			return nil, err
		}
		for _, review := range reviews {
			hidden += review.CodeCommentsCount
		}
	}
	happened, err := f.timeline(ctx, key, hidden)
	if err != nil {
		return nil, err
	}
	var events []forge.LabelEvent
	for _, one := range happened {
		if one.Type != "label" || one.Label == nil {
			continue
		}
		// Gitea marks a label that was put on with "1" in the text.
		events = append(events, forge.LabelEvent{
			Label: one.Label.Name, On: one.Body == "1", Actor: login(one.User), At: one.Created.UTC(),
		})
	}
	return events, nil
}

// LinkedPulls returns the pull requests that refer to the issue.
func (f *Forge) LinkedPulls(ctx context.Context, key task.Key) ([]forge.LinkedPull, error) {
	if key.Kind == task.Pull {
		_, err := f.Item(ctx, key)
		return nil, err
	}
	happened, err := f.timeline(ctx, key, 0)
	if err != nil {
		return nil, err
	}
	var linked []forge.LinkedPull
	seen := map[task.Key]bool{}
	for _, one := range happened {
		if one.RefIssue == nil || one.RefIssue.PullRequest == nil || one.RefIssue.Repository == nil {
			continue
		}
		item := itemOf(one.RefIssue.Repository.FullName, one.RefIssue)
		if !seen[item.Key] {
			seen[item.Key] = true
			linked = append(linked, forge.LinkedPull{Key: item.Key, State: item.State, URL: item.URL})
		}
	}
	return linked, nil
}
