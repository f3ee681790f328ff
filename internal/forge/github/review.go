package github

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Diff returns what the pull request changes.
func (f *Forge) Diff(ctx context.Context, key task.Key) (forge.Diff, error) {
	at, err := placeOfPull(key)
	if err != nil {
		return forge.Diff{}, err
	}
	pull, err := f.pull(ctx, key, at)
	if err != nil {
		return forge.Diff{}, err
	}
	request, err := f.client.NewRequest(ctx, http.MethodGet, at.path("pulls", at.number), nil)
	if err != nil {
		return forge.Diff{}, callError(err, "read the diff of %s", key)
	}
	request.Header.Set("Accept", "application/vnd.github.diff")
	var patch bytes.Buffer
	_, err = f.client.Do(request, &patch)
	if status(err) == http.StatusNotAcceptable { // GitHub's word for a diff that is too large
		return forge.Diff{}, task.Wrap(task.TooLarge, err, "GitHub does not give the diff of "+key.String())
	}
	if err != nil {
		return forge.Diff{}, callError(err, "read the diff of %s", key)
	}
	// GitHub does not say at which commit the head left its base.
	return forge.Diff{Head: pull.HeadCommit, Patch: patch.String()}, nil
}

// Reviews returns the submitted reviews. GitHub makes one without a text for every
// reply in a thread; those are left out, since they say nothing that the thread
// does not.
func (f *Forge) Reviews(ctx context.Context, key task.Key) ([]forge.Review, error) {
	at, err := placeOfPull(key)
	if err != nil {
		return nil, err
	}
	var reviews []forge.Review
	options := gh.ListOptions{PerPage: perPage}
	for review, err := range f.client.PullRequests.ListReviewsIter(ctx, at.owner, at.name, at.number, &options) {
		if err != nil {
			return nil, callError(err, "read the reviews of %s", key)
		}
		empty := review.GetState() == "COMMENTED" && review.GetBody() == ""
		if review.GetState() != "PENDING" && !empty {
			reviews = append(reviews, reviewOf(review))
		}
	}
	err = f.beforeDismissal(ctx, key, at, reviews)
	if code := task.CodeOf(err); code == task.Forbidden || code == task.NotFound {
		err = nil // the token may not read events: what was dismissed stays a remark
	}
	return reviews, err
}

// beforeDismissal gives reviews that were dismissed the verdict that they had. Only the
// events of the pull request tell it, which are read until all is known.
func (f *Forge) beforeDismissal(ctx context.Context, key task.Key, at place, reviews []forge.Review) error {
	unknown := map[string]*forge.Review{}
	for i := range reviews {
		if reviews[i].Dismissed {
			unknown[reviews[i].ID] = &reviews[i]
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	options := gh.ListOptions{PerPage: perPage}
	for event, err := range f.client.Issues.ListIssueEventsIter(ctx, at.owner, at.name, at.number, &options) {
		if err != nil {
			return callError(err, "read which reviews of %s were dismissed", key)
		}
		dismissed := event.GetDismissedReview()
		id := idOf(dismissed.GetReviewID())
		if was, known := verdicts[strings.ToUpper(dismissed.GetState())]; known && unknown[id] != nil {
			unknown[id].Verdict = was
			delete(unknown, id)
		}
		if len(unknown) == 0 {
			return nil
		}
	}
	return nil
}

// verdicts by GitHub's states. What a review was that is dismissed now, its state does not
// say; see beforeDismissal.
var verdicts = map[string]forge.Verdict{
	"APPROVED":          forge.Approve,
	"CHANGES_REQUESTED": forge.RequestChanges,
	"COMMENTED":         forge.Remark,
	"DISMISSED":         forge.Remark,
}

func reviewOf(review *gh.PullRequestReview) forge.Review {
	verdict, known := verdicts[review.GetState()]
	if !known {
		verdict = forge.Remark
	}
	return forge.Review{
		ID:        idOf(review.GetID()),
		Author:    loginOf(review.User),
		Verdict:   verdict,
		Body:      forge.Clean(review.GetBody()),
		Commit:    review.GetCommitID(),
		Dismissed: review.GetState() == "DISMISSED",
		At:        timeOf(review.GetSubmittedAt()),
	}
}

// ReviewThreads returns the conversations on lines. A thread's id is that of its
// first comment.
func (f *Forge) ReviewThreads(ctx context.Context, key task.Key) ([]forge.ReviewThread, error) {
	at, err := placeOfPull(key)
	if err != nil {
		return nil, err
	}
	comments, err := f.lineComments(ctx, key, at)
	if err != nil || len(comments) == 0 {
		return nil, err
	}
	states, err := f.threadStates(ctx, at)
	if err != nil {
		return nil, callError(err, "read the review threads of %s", key)
	}
	var threads []forge.ReviewThread
	index := map[string]int{}
	for _, comment := range comments {
		id := threadOf(comment)
		at, known := index[id]
		if !known {
			at = len(threads)
			index[id] = at
			state := states[idOf(comment.GetID())]
			threads = append(threads, forge.ReviewThread{
				ID: id, Anchor: anchorOf(comment), Resolved: state.resolved, Outdated: state.outdated,
			})
		}
		threads[at].Comments = append(threads[at].Comments, lineComment(comment))
	}
	return threads, nil
}

func (f *Forge) lineComments(ctx context.Context, key task.Key, at place) ([]*gh.PullRequestComment, error) {
	var comments []*gh.PullRequestComment
	options := gh.PullRequestListCommentsOptions{
		Sort: "created", Direction: "asc", ListOptions: gh.ListOptions{PerPage: perPage},
	}
	for comment, err := range f.client.PullRequests.ListCommentsIter(ctx, at.owner, at.name, at.number, &options) {
		if err != nil {
			return nil, callError(err, "read the review comments of %s", key)
		}
		comments = append(comments, comment)
	}
	return comments, nil
}

func threadOf(comment *gh.PullRequestComment) string {
	if first := comment.GetInReplyTo(); first != 0 {
		return idOf(first)
	}
	return idOf(comment.GetID())
}

func anchorOf(comment *gh.PullRequestComment) forge.Anchor {
	anchor := forge.Anchor{Path: comment.GetPath(), Side: forge.NewSide, Line: comment.GetLine()}
	if comment.GetSide() == "LEFT" {
		anchor.Side = forge.OldSide
	}
	return anchor
}

var events = map[forge.Verdict]string{
	forge.Approve:        "APPROVE",
	forge.RequestChanges: "REQUEST_CHANGES",
	forge.Remark:         "COMMENT",
}

// SubmitReview submits a review, whole or not at all.
func (f *Forge) SubmitReview(ctx context.Context, key task.Key, post forge.ReviewPost) (forge.Review, error) {
	at, err := placeOfPull(key)
	if err != nil {
		return forge.Review{}, err
	}
	event, known := events[post.Verdict]
	if !known {
		return forge.Review{}, task.Errorf(task.Invalid, "%q is not a verdict", post.Verdict)
	}
	if post.Repeat {
		review, found, err := forge.FindOwnReview(ctx, f, key, post.Marker)
		if found || err != nil {
			return review, err
		}
	}
	body := post.Body()
	request := gh.PullRequestReviewRequest{Body: &body, Event: &event, Comments: drafts(post.Comments)}
	if post.Commit != "" {
		// GitHub takes a review of an older head and shows it as outdated.
		pull, err := f.pull(ctx, key, at)
		if err != nil {
			return forge.Review{}, err
		}
		if pull.HeadCommit != post.Commit {
			return forge.Review{}, task.Errorf(task.Conflict, "the head of %s is %s, not %s, which was reviewed", key, pull.HeadCommit, post.Commit)
		}
		request.CommitID = &post.Commit
	}
	review, _, err := f.client.PullRequests.CreateReview(ctx, at.owner, at.name, at.number, &request)
	if err == nil && review.GetID() == 0 {
		err = errNonsense
	}
	if err != nil {
		return forge.Review{}, callError(err, "submit a review of %s", key)
	}
	return reviewOf(review), nil
}

func drafts(comments []forge.LineComment) []*gh.DraftReviewComment {
	var drafts []*gh.DraftReviewComment
	for _, comment := range comments {
		body, side := comment.Text.String(), "RIGHT"
		if comment.Anchor.Side == forge.OldSide {
			side = "LEFT"
		}
		drafts = append(drafts, &gh.DraftReviewComment{
			Path: &comment.Anchor.Path, Line: &comment.Anchor.Line, Side: &side, Body: &body,
		})
	}
	return drafts
}

// Reply writes a comment into a review thread.
func (f *Forge) Reply(ctx context.Context, key task.Key, thread string, post forge.Post) (task.Comment, error) {
	at, err := placeOfPull(key)
	if err != nil {
		return task.Comment{}, err
	}
	first, err := number(thread)
	if err != nil {
		return task.Comment{}, err
	}
	if post.Repeat {
		comment, found, err := f.findReply(ctx, key, at, thread, post.Marker)
		if found || err != nil {
			return comment, err
		}
	}
	comment := new(gh.PullRequestComment)
	body := map[string]string{"body": post.Body()}
	err = f.do(ctx, http.MethodPost, at.path("pulls", at.number, "comments", first, "replies"), body, comment)
	if err == nil && comment.GetID() == 0 {
		err = errNonsense
	}
	if err != nil {
		return task.Comment{}, callError(err, "reply on %s", key)
	}
	return lineComment(comment), nil
}

func (f *Forge) findReply(ctx context.Context, key task.Key, at place, thread string, marker forge.Marker) (task.Comment, bool, error) {
	self, err := f.Self(ctx)
	if err != nil {
		return task.Comment{}, false, err
	}
	all, err := f.lineComments(ctx, key, at)
	if err != nil {
		return task.Comment{}, false, err
	}
	var comments []task.Comment
	for _, comment := range all {
		if threadOf(comment) == thread {
			comments = append(comments, lineComment(comment))
		}
	}
	comment, found := forge.FindMarked(comments, self, marker)
	return comment, found, nil
}

// ResolveThread marks a review thread as resolved. Only GraphQL can, by an id of its own.
func (f *Forge) ResolveThread(ctx context.Context, key task.Key, thread string) error {
	at, err := placeOfPull(key)
	if err != nil {
		return err
	}
	states, err := f.threadStates(ctx, at)
	if err != nil {
		return callError(err, "read the review threads of %s", key)
	}
	state, found := states[thread]
	if !found {
		return task.Errorf(task.NotFound, "%s has no review thread %q", key, thread)
	}
	if state.resolved {
		return nil
	}
	var data struct{}
	if err := f.query(ctx, resolveMutation, map[string]any{"id": state.node}, &data); err != nil {
		return callError(err, "resolve a review thread of %s", key)
	}
	return nil
}
