package gitea

import (
	"context"
	"fmt"
	"net/http"
	"slices"
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
	Review   int64      `json:"review_id"`
	Created  time.Time  `json:"created_at"`
	Label    *sdk.Label `json:"label"`
	RefIssue *sdk.Issue `json:"ref_issue"`
}

// timeline reads what happened to an item, until there is enough or there is no more.
// Gitea leaves comments on lines out of it, but only after it has cut it into pages.
// So an empty page is not the end yet if the item has such comments: as many as hidden
// of them may make empty pages. One more empty page is looked behind for those that
// nobody tells us of.
func (f *Forge) timeline(ctx context.Context, key task.Key, hidden int, enough func(event) bool) error {
	at, err := locate(key)
	if err != nil {
		return err
	}
	empty, allowed := 0, 2+hidden/smallestPage
	for number := 1; empty < allowed; number++ {
		var page []event
		path := fmt.Sprintf("%s/timeline?page=%d&limit=%d", at.path("issues"), number, perPage)
		answer, err := f.request(ctx, http.MethodGet, path, nil, &page)
		if err != nil {
			return callError("read the timeline of "+key.String(), answer, err)
		}
		if len(page) == 0 {
			empty++
		}
		if slices.ContainsFunc(page, enough) {
			return nil
		}
	}
	return nil
}

// texts returns the texts of reviews as they are now, by the ids of the reviews. The
// review itself still has the text that it was submitted with: what people edit and
// delete on the page is a comment in the timeline.
func (f *Forge) texts(ctx context.Context, key task.Key, reviews []*sdk.PullReview) (map[int64]string, error) {
	hidden, wanted := 0, map[int64]bool{}
	for _, review := range reviews {
		hidden += review.CodeCommentsCount
		if review.Body != "" {
			wanted[review.ID] = true
		}
	}
	texts := make(map[int64]string, len(wanted))
	if len(wanted) == 0 {
		return texts, nil
	}
	err := f.timeline(ctx, key, hidden, func(one event) bool {
		if one.Type == "review" && wanted[one.Review] {
			texts[one.Review] = one.Body
		}
		return len(texts) == len(wanted)
	})
	return texts, err
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
	var events []forge.LabelEvent
	err := f.timeline(ctx, key, hidden, func(one event) bool {
		if one.Type == "label" && one.Label != nil {
			// Gitea marks a label that was put on with "1" in the text.
			events = append(events, forge.LabelEvent{
				Label: one.Label.Name, On: one.Body == "1", Actor: login(one.User), At: one.Created.UTC(),
			})
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}

// LinkedPulls returns the pull requests that refer to the issue.
func (f *Forge) LinkedPulls(ctx context.Context, key task.Key) ([]forge.LinkedPull, error) {
	if key.Kind == task.Pull {
		_, err := f.Item(ctx, key)
		return nil, err
	}
	var linked []forge.LinkedPull
	seen := map[task.Key]bool{}
	err := f.timeline(ctx, key, 0, func(one event) bool {
		if one.RefIssue == nil || one.RefIssue.PullRequest == nil || one.RefIssue.Repository == nil {
			return false
		}
		item := itemOf(one.RefIssue.Repository.FullName, one.RefIssue)
		if !seen[item.Key] {
			seen[item.Key] = true
			linked = append(linked, forge.LinkedPull{Key: item.Key, State: item.State, URL: item.URL})
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	return linked, nil
}
