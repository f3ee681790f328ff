package gitea

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Diff returns what a pull request changes.
func (f *Forge) Diff(ctx context.Context, key task.Key) (forge.Diff, error) {
	at, err := locatePull(key)
	if err != nil {
		return forge.Diff{}, err
	}
	pull, answer, err := f.client(ctx).GetPullRequest(at.owner, at.name, at.number)
	if err != nil {
		return forge.Diff{}, callError("read "+key.String(), answer, err)
	}
	patch, answer, err := f.client(ctx).GetPullRequestDiff(at.owner, at.name, at.number, sdk.PullRequestDiffOptions{})
	if err != nil {
		return forge.Diff{}, callError("read the diff of "+key.String(), answer, err)
	}
	diff := forge.Diff{Base: pull.MergeBase, Patch: string(patch)}
	if pull.Head != nil {
		diff.Head = pull.Head.Sha
	}
	return diff, nil
}

var verdicts = map[sdk.ReviewStateType]forge.Verdict{
	sdk.ReviewStateApproved:       forge.Approve,
	sdk.ReviewStateRequestChanges: forge.RequestChanges,
	sdk.ReviewStateComment:        forge.Remark,
}

var reviewStates = map[forge.Verdict]sdk.ReviewStateType{
	forge.Approve:        sdk.ReviewStateApproved,
	forge.RequestChanges: sdk.ReviewStateRequestChanges,
	forge.Remark:         sdk.ReviewStateComment,
}

// reviews returns the submitted reviews, without those that are still being
// written or were only asked for.
func (f *Forge) reviews(ctx context.Context, key task.Key) ([]*sdk.PullReview, error) {
	found, err := f.allReviews(ctx, key)
	return slices.DeleteFunc(found, func(r *sdk.PullReview) bool { return verdicts[r.State] == "" }), err
}

func (f *Forge) allReviews(ctx context.Context, key task.Key) ([]*sdk.PullReview, error) {
	at, err := locatePull(key)
	if err != nil {
		return nil, err
	}
	found, answer, err := pages(func(r *sdk.PullReview) int64 { return r.ID },
		func(page sdk.ListOptions) ([]*sdk.PullReview, *sdk.Response, error) {
			return f.client(ctx).ListPullReviews(at.owner, at.name, at.number, sdk.ListPullReviewsOptions{ListOptions: page})
		})
	if err != nil {
		return nil, callError("read the reviews of "+key.String(), answer, err)
	}
	slices.SortFunc(found, func(a, b *sdk.PullReview) int { return int(a.ID - b.ID) })
	return found, nil
}

func reviewOf(r *sdk.PullReview) forge.Review {
	return forge.Review{
		ID: strconv.FormatInt(r.ID, 10), Author: login(r.Reviewer), Verdict: verdicts[r.State],
		Body: forge.Clean(r.Body), Commit: r.CommitID, Dismissed: r.Dismissed, At: r.Submitted.UTC(),
	}
}

// Reviews returns the submitted reviews. A comment on a line that stands alone is
// a review without a text in Gitea, and is left to the threads.
func (f *Forge) Reviews(ctx context.Context, key task.Key) ([]forge.Review, error) {
	found, err := f.reviews(ctx, key)
	if err != nil {
		return nil, err
	}
	texts, err := f.texts(ctx, key, found)
	if err != nil {
		return nil, err
	}
	var reviews []forge.Review
	for _, one := range found {
		one.Body = texts[one.ID]
		if one.State == sdk.ReviewStateComment && one.Body == "" {
			continue
		}
		reviews = append(reviews, reviewOf(one))
	}
	return reviews, nil
}

// ReviewThreads returns the conversations on lines.
func (f *Forge) ReviewThreads(ctx context.Context, key task.Key) ([]forge.ReviewThread, error) {
	reviews, err := f.reviews(ctx, key)
	if err != nil {
		return nil, err
	}
	var comments []*sdk.PullReviewComment
	for _, review := range reviews {
		if review.CodeCommentsCount == 0 {
			continue
		}
		found, err := f.reviewComments(ctx, key, review.ID)
		if err != nil {
			return nil, err
		}
		comments = append(comments, found...)
	}
	slices.SortFunc(comments, func(a, b *sdk.PullReviewComment) int { return int(a.ID - b.ID) })
	return threadsOf(comments), nil
}

func (f *Forge) reviewComments(ctx context.Context, key task.Key, review int64) ([]*sdk.PullReviewComment, error) {
	at, err := locatePull(key)
	if err != nil {
		return nil, err
	}
	found, answer, err := f.client(ctx).ListPullReviewComments(at.owner, at.name, at.number, review)
	if err != nil {
		return nil, callError("read the comments of a review of "+key.String(), answer, err)
	}
	return found, nil
}

func threadsOf(comments []*sdk.PullReviewComment) []forge.ReviewThread {
	var threads []forge.ReviewThread
	at := map[forge.Anchor]int{}
	for _, comment := range comments {
		anchor := forge.Anchor{Path: comment.Path, Side: forge.NewSide, Line: int(comment.LineNum)} //nolint:gosec // a line number
		if comment.OldLineNum > 0 {
			anchor.Side, anchor.Line = forge.OldSide, int(comment.OldLineNum) //nolint:gosec // a line number
		}
		index, known := at[anchor]
		if !known {
			index = len(threads)
			at[anchor] = index
			threads = append(threads, forge.ReviewThread{ID: strconv.FormatInt(comment.ID, 10), Anchor: anchor})
		}
		thread := &threads[index]
		thread.Resolved = thread.Resolved || comment.Resolver != nil
		thread.Comments = append(thread.Comments, lineCommentOf(comment))
	}
	return threads
}

func lineCommentOf(c *sdk.PullReviewComment) task.Comment {
	return task.Comment{
		ID: strconv.FormatInt(c.ID, 10), Kind: task.ReviewComment, Author: login(c.Reviewer), Body: forge.Clean(c.Body),
		CreatedAt: c.Created.UTC(), UpdatedAt: c.Updated.UTC(),
	}
}

// SubmitReview submits a review.
func (f *Forge) SubmitReview(ctx context.Context, key task.Key, post forge.ReviewPost) (forge.Review, error) {
	at, err := locatePull(key)
	if err != nil {
		return forge.Review{}, err
	}
	if post.Repeat {
		if review, found, err := forge.FindOwnReview(ctx, f, key, post.Marker); err != nil || found {
			return review, err
		}
	}
	option := sdk.CreatePullReviewOptions{State: reviewStates[post.Verdict], Body: post.Body(), CommitID: post.Commit}
	for _, comment := range post.Comments {
		option.Comments = append(option.Comments, lineComment(comment.Anchor, comment.Text.String()))
	}
	review, answer, err := f.client(ctx).CreatePullReview(at.owner, at.name, at.number, option)
	if err != nil {
		return forge.Review{}, callError("review "+key.String(), answer, err)
	}
	return reviewOf(review), nil
}

func lineComment(anchor forge.Anchor, body string) sdk.CreatePullReviewComment {
	comment := sdk.CreatePullReviewComment{Path: anchor.Path, Body: body}
	if anchor.Side == forge.OldSide {
		comment.OldLineNum = int64(anchor.Line)
	} else {
		comment.NewLineNum = int64(anchor.Line)
	}
	return comment
}

// Reply writes a comment on the line of a thread.
func (f *Forge) Reply(ctx context.Context, key task.Key, id string, post forge.Post) (task.Comment, error) {
	at, err := locatePull(key)
	if err != nil {
		return task.Comment{}, err
	}
	thread, err := f.thread(ctx, key, id)
	if err != nil {
		return task.Comment{}, err
	}
	if post.Repeat {
		self, err := f.Self(ctx)
		if err != nil {
			return task.Comment{}, err
		}
		if comment, found := forge.FindMarked(thread.Comments, self, post.Marker); found {
			return comment, nil
		}
	}
	review, answer, err := f.client(ctx).CreatePullReview(at.owner, at.name, at.number, sdk.CreatePullReviewOptions{
		State: sdk.ReviewStateComment, Comments: []sdk.CreatePullReviewComment{lineComment(thread.Anchor, post.Body())},
	})
	if err != nil {
		return task.Comment{}, callError("reply in a review thread of "+key.String(), answer, err)
	}
	written, err := f.reviewComments(ctx, key, review.ID)
	if err != nil || len(written) == 0 {
		return task.Comment{}, task.Wrap(task.Unavailable, err, "cannot read the reply that was written on "+key.String())
	}
	return lineCommentOf(written[0]), nil
}

func (f *Forge) thread(ctx context.Context, key task.Key, id string) (forge.ReviewThread, error) {
	threads, err := f.ReviewThreads(ctx, key)
	if err != nil {
		return forge.ReviewThread{}, err
	}
	at := slices.IndexFunc(threads, func(t forge.ReviewThread) bool { return t.ID == id })
	if at < 0 {
		return forge.ReviewThread{}, task.Errorf(task.NotFound, "%s has no review thread %q", key, id)
	}
	return threads[at], nil
}

// ResolveThread marks a review thread as resolved, by its first comment. Gitea 1.26 has the
// call; not every server does.
func (f *Forge) ResolveThread(ctx context.Context, key task.Key, id string) error {
	at, err := locatePull(key)
	if err != nil {
		return err
	}
	thread, err := f.thread(ctx, key, id)
	if err != nil || thread.Resolved {
		return err
	}
	answer, err := f.request(ctx, http.MethodPost, at.repository()+"/pulls/comments/"+id+"/resolve", nil, nil)
	err = callError("resolve a review thread of "+key.String(), answer, err)
	if code := task.CodeOf(err); code == task.NotFound || code == task.Conflict { // the comment is there
		return task.Wrap(task.Unsupported, err, "this server has no call to resolve review threads")
	}
	return err
}
