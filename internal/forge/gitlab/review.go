package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Diff returns what the merge request changes.
func (f *Forge) Diff(ctx context.Context, key task.Key) (forge.Diff, error) {
	if err := checkPull(key); err != nil {
		return forge.Diff{}, err
	}
	request, err := f.request(ctx, key)
	if err != nil {
		return forge.Diff{}, err
	}
	return f.diff(ctx, key, request)
}

func (f *Forge) diff(ctx context.Context, key task.Key, request *gl.MergeRequest) (forge.Diff, error) {
	refs := request.DiffRefs
	if refs.HeadSha == "" {
		return forge.Diff{}, task.Errorf(task.Unavailable, "GitLab has not prepared the diff of %s yet", key)
	}
	patch, _, err := f.client.MergeRequests.ShowMergeRequestRawDiffs(key.Repository, key.Number, nil, in(ctx))
	if err != nil {
		return forge.Diff{}, callError(err, "read the diff of %s", key)
	}
	return forge.Diff{Base: refs.BaseSha, Head: refs.HeadSha, Patch: string(patch)}, nil
}

// reviewTag is hidden in the text of a review of ours: its verdict and the head
// that was reviewed. It counts only in notes of our own.
var reviewTag = lazyregexp.New(`\n*<!-- toryo-review: (approve|request_changes|comment) ([0-9a-f]*) -->`)

// tagged is the review's text as GitLab gets it.
func tagged(post forge.ReviewPost, commit string) string {
	tag := fmt.Sprintf("<!-- toryo-review: %s %s -->", post.Verdict, commit)
	if text := post.Text.String(); text != "" {
		tag = text + "\n\n" + tag
	}
	if marker := post.Marker.String(); marker != "" {
		tag += "\n\n" + marker
	}
	return tag
}

// Reviews returns our own reviews, and for everyone else what they last decided.
func (f *Forge) Reviews(ctx context.Context, key task.Key) ([]forge.Review, error) {
	if err := checkPull(key); err != nil {
		return nil, err
	}
	self, err := f.selfAccount(ctx)
	if err != nil {
		return nil, err
	}
	approvals, _, err := f.client.MergeRequestApprovals.GetConfiguration(key.Repository, key.Number, in(ctx))
	if err != nil {
		return nil, callError(err, "read the approvals of %s", key)
	}
	reviewers, _, err := f.client.MergeRequests.GetMergeRequestReviewers(key.Repository, key.Number, in(ctx))
	if err != nil {
		return nil, callError(err, "read the reviewers of %s", key)
	}
	notes, err := f.notes(ctx, key)
	if err != nil {
		return nil, err
	}
	reviews := append(othersReviews(self, approvals, reviewers, notes), ownReviews(self, approvals, notes)...)
	slices.SortStableFunc(reviews, func(a, b forge.Review) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	return reviews, nil
}

// reviewNotes is how the notes begin that GitLab writes itself when somebody reviews. Older
// servers note approvals only.
var reviewNotes = map[forge.Verdict]string{
	forge.Approve:        "approved this merge request",
	forge.RequestChanges: "requested changes",
	forge.Remark:         "left review comments",
}

// reviewNote finds GitLab's note of the last review of a user with a verdict, nil if there
// is none. Notes are oldest first.
func reviewNote(notes []*gl.Note, user int64, verdict forge.Verdict) *gl.Note {
	for _, note := range slices.Backward(notes) {
		if note.System && note.Author.ID == user && note.CreatedAt != nil && strings.HasPrefix(strings.ToLower(note.Body), reviewNotes[verdict]) {
			return note
		}
	}
	return nil
}

// othersReviews takes the times of reviews from GitLab's notes: of a reviewer it says only
// when they were made one, and older servers do not say when somebody approved. The note
// also tells two requests of one person apart. An approval is noted some time after it was
// given, so that its own time comes first.
func othersReviews(self account, approvals *gl.MergeRequestApprovals, reviewers []*gl.MergeRequestReviewer, notes []*gl.Note) []forge.Review {
	var reviews []forge.Review
	approved := map[int64]bool{self.id: true}
	for _, approval := range approvals.ApprovedBy {
		if approval == nil || approval.User == nil || approved[approval.User.ID] {
			continue
		}
		approved[approval.User.ID] = true
		at := cmp.Or(approval.ApprovedAt, approvals.UpdatedAt)
		if note := reviewNote(notes, approval.User.ID, forge.Approve); note != nil && approval.ApprovedAt == nil {
			at = note.CreatedAt
		}
		reviews = append(reviews, forge.Review{
			ID: "user-" + idOf(approval.User.ID), Author: userLogin(approval.User), Verdict: forge.Approve, At: timeOf(at),
		})
	}
	verdicts := map[string]forge.Verdict{"requested_changes": forge.RequestChanges, "reviewed": forge.Remark}
	for _, reviewer := range reviewers {
		verdict, decided := verdicts[reviewer.State]
		if !decided || reviewer.User == nil || approved[reviewer.User.ID] {
			continue
		}
		id, at := "user-"+idOf(reviewer.User.ID), reviewer.CreatedAt
		if note := reviewNote(notes, reviewer.User.ID, verdict); note != nil {
			id, at = idOf(note.ID), note.CreatedAt
		}
		reviews = append(reviews, forge.Review{ID: id, Author: userLogin(reviewer.User), Verdict: verdict, At: timeOf(at)})
	}
	return reviews
}

func ownReviews(self account, approvals *gl.MergeRequestApprovals, notes []*gl.Note) []forge.Review {
	approves := slices.ContainsFunc(approvals.ApprovedBy, func(approval *gl.MergeRequestApproverUser) bool {
		return approval != nil && approval.User != nil && approval.User.ID == self.id
	})
	var reviews []forge.Review
	for _, note := range notes {
		review, isReview := reviewOf(note, self)
		if isReview {
			review.Dismissed = review.Verdict == forge.Approve && !approves
			reviews = append(reviews, review)
		}
	}
	return reviews
}

// reviewOf reads a review of ours out of a note.
func reviewOf(note *gl.Note, self account) (forge.Review, bool) {
	comment := commentOf(note)
	tag := reviewTag.FindStringSubmatch(comment.Body)
	if note.System || note.Author.ID != self.id || tag == nil {
		return forge.Review{}, false
	}
	return forge.Review{
		ID: comment.ID, Author: comment.Author, Verdict: forge.Verdict(tag[1]), Commit: tag[2],
		Body: reviewTag.ReplaceAllString(comment.Body, ""), At: comment.CreatedAt,
	}, true
}

// SubmitReview submits a review: drafts of the comments and of the text, which
// only we can see, then all published at once, then the approval. What an earlier
// attempt left as drafts is thrown away first.
func (f *Forge) SubmitReview(ctx context.Context, key task.Key, post forge.ReviewPost) (forge.Review, error) {
	if err := checkPull(key); err != nil {
		return forge.Review{}, err
	}
	if _, known := reviewerStates[post.Verdict]; !known {
		return forge.Review{}, task.Errorf(task.Invalid, "%q is not a verdict", post.Verdict)
	}
	request, err := f.request(ctx, key)
	if err != nil {
		return forge.Review{}, err
	}
	head := cmp.Or(request.DiffRefs.HeadSha, request.SHA)
	review, found, err := forge.Review{}, false, error(nil)
	if post.Repeat {
		review, found, err = f.findReview(ctx, key, post.Marker)
	}
	if err == nil && !found {
		if post.Commit != "" && post.Commit != head {
			return forge.Review{}, task.Errorf(task.Conflict, "the head of %s is %s, not %s, which was reviewed", key, head, post.Commit)
		}
		review, err = f.publish(ctx, key, request, post, head)
	}
	if err == nil && post.Verdict == forge.Approve {
		err = f.approve(ctx, key, cmp.Or(review.Commit, head))
	}
	return review, err
}

// reviewerStates are the verdicts as servers since GitLab 19.2 take them with a
// review; older ones ignore them.
var reviewerStates = map[forge.Verdict]string{
	forge.Approve:        "reviewed",
	forge.RequestChanges: "requested_changes",
	forge.Remark:         "reviewed",
}

func (f *Forge) publish(ctx context.Context, key task.Key, request *gl.MergeRequest, post forge.ReviewPost, head string) (forge.Review, error) {
	positions, err := f.positions(ctx, key, request, post.Comments)
	if err != nil {
		return forge.Review{}, err
	}
	if err := f.dropDrafts(ctx, key); err != nil {
		return forge.Review{}, err
	}
	for i, comment := range post.Comments {
		body := comment.Text.String()
		if err := f.draft(ctx, key, gl.CreateDraftNoteOptions{Note: &body, Position: positions[i]}); err != nil {
			return forge.Review{}, err
		}
	}
	body := tagged(post, head)
	if err := f.draft(ctx, key, gl.CreateDraftNoteOptions{Note: &body}); err != nil {
		return forge.Review{}, err
	}
	path := fmt.Sprintf("projects/%s/merge_requests/%d/draft_notes/bulk_publish", gl.PathEscape(key.Repository), key.Number)
	state := map[string]string{"reviewer_state": reviewerStates[post.Verdict]}
	if err := f.do(ctx, http.MethodPost, path, state, nil); err != nil {
		return forge.Review{}, callError(err, "publish a review of %s", key)
	}
	review, found, err := f.lastReview(ctx, key, body)
	if err == nil && !found {
		err = callError(errNonsense, "find the review of %s that was published", key)
	}
	return review, err
}

// draft makes a draft note, which nobody else sees.
func (f *Forge) draft(ctx context.Context, key task.Key, options gl.CreateDraftNoteOptions) error {
	note, _, err := f.client.DraftNotes.CreateDraftNote(key.Repository, key.Number, &options, in(ctx))
	if err == nil && (note == nil || note.ID == 0) {
		err = errNonsense
	}
	if err != nil {
		return callError(err, "write a draft of a review of %s", key)
	}
	return nil
}

func (f *Forge) dropDrafts(ctx context.Context, key task.Key) error {
	options := gl.ListDraftNotesOptions{}
	options.PerPage = perPage
	drafts, err := pages(ctx, func(page ...gl.RequestOptionFunc) ([]*gl.DraftNote, *gl.Response, error) {
		return f.client.DraftNotes.ListDraftNotes(key.Repository, key.Number, &options, page...)
	})
	if err != nil {
		return callError(err, "list the drafts of reviews of %s", key)
	}
	for _, draft := range drafts {
		_, err := f.client.DraftNotes.DeleteDraftNote(key.Repository, key.Number, draft.ID, in(ctx))
		if err != nil && status(err) != http.StatusNotFound {
			return callError(err, "drop a draft of a review of %s", key)
		}
	}
	return nil
}

// approve gives our approval, if we have not given it. GitLab refuses it with 401
// to those who may not approve, so that is not about the token.
func (f *Forge) approve(ctx context.Context, key task.Key, commit string) error {
	approvals, _, err := f.client.MergeRequestApprovals.GetConfiguration(key.Repository, key.Number, in(ctx))
	if err != nil {
		return callError(err, "read the approvals of %s", key)
	}
	if approvals != nil && approvals.UserHasApproved {
		return nil
	}
	options := gl.ApproveMergeRequestOptions{SHA: &commit}
	_, _, err = f.client.MergeRequestApprovals.ApproveMergeRequest(key.Repository, key.Number, &options, in(ctx))
	if status(err) == http.StatusUnauthorized {
		return &forge.Error{Err: task.Wrap(task.Forbidden, err, "GitLab does not let us approve "+key.String()), Status: http.StatusUnauthorized}
	}
	if err != nil {
		return callError(err, "approve %s", key)
	}
	return nil
}

func (f *Forge) findReview(ctx context.Context, key task.Key, marker forge.Marker) (forge.Review, bool, error) {
	return f.ownReview(ctx, key, func(review forge.Review, _ *gl.Note) bool { return marker.In(review.Body) })
}

func (f *Forge) lastReview(ctx context.Context, key task.Key, body string) (forge.Review, bool, error) {
	return f.ownReview(ctx, key, func(_ forge.Review, note *gl.Note) bool { return forge.Clean(note.Body) == body })
}

func (f *Forge) ownReview(ctx context.Context, key task.Key, is func(forge.Review, *gl.Note) bool) (forge.Review, bool, error) {
	self, err := f.selfAccount(ctx)
	if err != nil {
		return forge.Review{}, false, err
	}
	notes, err := f.notes(ctx, key)
	if err != nil {
		return forge.Review{}, false, err
	}
	for _, note := range slices.Backward(notes) {
		if review, isReview := reviewOf(note, self); isReview && is(review, note) {
			return review, true, nil
		}
	}
	return forge.Review{}, false, nil
}
