package github

import (
	"context"
	"fmt"
	"net/http"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

const threadsQuery = `query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: 100, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes { id isResolved isOutdated comments(first: 1) { nodes { fullDatabaseId } } }
      }
    }
  }
}`

const resolveMutation = `mutation($id: ID!) {
  resolveReviewThread(input: {threadId: $id}) { thread { isResolved } }
}`

const connectedQuery = `query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    issue(number: $number) {
      closedByPullRequestsReferences(first: 100, after: $after, includeClosedPrs: true) {
        pageInfo { hasNextPage endCursor }
        nodes { number state url repository { nameWithOwner } }
      }
    }
  }
}`

const readyMutation = `mutation($id: ID!) {
  markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { isDraft } }
}`

const draftMutation = `mutation($id: ID!) {
  convertPullRequestToDraft(input: {pullRequestId: $id}) { pullRequest { isDraft } }
}`

// queryError is a refusal by GraphQL, which has the status 200 all the same.
type queryError struct {
	kind, message string
	answer        *http.Response
}

func (e *queryError) Error() string { return fmt.Sprintf("%s: %s", e.kind, e.message) }

// queryStatus gives the refusals of GraphQL the status that REST has for them.
var queryStatus = map[string]int{
	"NOT_FOUND":           http.StatusNotFound,
	"FORBIDDEN":           http.StatusForbidden,
	"INSUFFICIENT_SCOPES": http.StatusForbidden,
	"UNPROCESSABLE":       http.StatusUnprocessableEntity,
	"RATE_LIMITED":        http.StatusTooManyRequests,
	"RATE_LIMIT":          http.StatusTooManyRequests,
}

// query asks GraphQL and puts the data into result.
func (f *Forge) query(ctx context.Context, query string, variables map[string]any, result any) error {
	body := map[string]any{"query": query, "variables": variables}
	request, err := f.client.NewRequest(ctx, http.MethodPost, f.graphql, body)
	if err != nil {
		return err
	}
	var answer struct {
		Data   any `json:"data"`
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	answer.Data = result
	response, err := f.client.Do(request, &answer)
	if err != nil || len(answer.Errors) == 0 {
		return err
	}
	refusal := answer.Errors[0]
	code, known := queryStatus[refusal.Type]
	if !known {
		// Such as a time-out: it may or may not have happened.
		code = http.StatusInternalServerError
	}
	return &queryError{refusal.Type, refusal.Message, &http.Response{StatusCode: code, Header: response.Header}}
}

type pageInfo struct {
	HasNextPage bool
	EndCursor   string
}

// threadState is what REST does not tell about a review thread.
type threadState struct {
	node               string
	resolved, outdated bool
}

// threadStates returns the state of each review thread by the id of its first
// comment.
func (f *Forge) threadStates(ctx context.Context, at place) (map[string]threadState, error) {
	states := map[string]threadState{}
	variables := map[string]any{"owner": at.owner, "name": at.name, "number": at.number}
	for {
		var data struct {
			Repository struct {
				PullRequest struct {
					ReviewThreads struct {
						PageInfo pageInfo
						Nodes    []struct {
							ID                     string
							IsResolved, IsOutdated bool
							Comments               struct {
								Nodes []struct{ FullDatabaseID string }
							}
						}
					}
				}
			}
		}
		if err := f.query(ctx, threadsQuery, variables, &data); err != nil {
			return nil, err
		}
		threads := data.Repository.PullRequest.ReviewThreads
		for _, thread := range threads.Nodes {
			for _, first := range thread.Comments.Nodes {
				states[first.FullDatabaseID] = threadState{thread.ID, thread.IsResolved, thread.IsOutdated}
			}
		}
		if !threads.PageInfo.HasNextPage {
			return states, nil
		}
		variables["after"] = threads.PageInfo.EndCursor
	}
}

// connectedPulls returns the pull requests that close the issue, also by a link
// that was made by hand.
func (f *Forge) connectedPulls(ctx context.Context, issue task.Key) ([]forge.LinkedPull, error) {
	at, err := placeOfKey(issue)
	if err != nil {
		return nil, err
	}
	var pulls []forge.LinkedPull
	variables := map[string]any{"owner": at.owner, "name": at.name, "number": at.number}
	states := map[string]forge.ItemState{"OPEN": forge.Open, "CLOSED": forge.Closed, "MERGED": forge.Merged}
	for {
		var data struct {
			Repository struct {
				Issue struct {
					ClosedByPullRequestsReferences struct {
						PageInfo pageInfo
						Nodes    []struct {
							Number     int
							State, URL string
							Repository struct{ NameWithOwner string }
						}
					}
				}
			}
		}
		if err := f.query(ctx, connectedQuery, variables, &data); err != nil {
			return nil, callError(err, "read the links of %s", issue)
		}
		found := data.Repository.Issue.ClosedByPullRequestsReferences
		for _, pull := range found.Nodes {
			pulls = append(pulls, forge.LinkedPull{
				Key:   key(pull.Repository.NameWithOwner, task.Pull, pull.Number),
				State: states[pull.State],
				URL:   pull.URL,
			})
		}
		if !found.PageInfo.HasNextPage {
			return pulls, nil
		}
		variables["after"] = found.PageInfo.EndCursor
	}
}

// setDraft turns a draft into a pull request that is ready, or back.
func (f *Forge) setDraft(ctx context.Context, node string, draft bool) error {
	mutation := readyMutation
	if draft {
		mutation = draftMutation
	}
	var data struct{}
	return f.query(ctx, mutation, map[string]any{"id": node}, &data)
}
