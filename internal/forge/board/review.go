package board

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Diff returns what a pull request changes.
func (f *Forge) Diff(ctx context.Context, key task.Key) (forge.Diff, error) {
	pull, err := f.pull(ctx, key, forge.ReadAccess)
	if err != nil {
		return forge.Diff{}, err
	}
	return f.board.diff(ctx, pull)
}

func (b *Board) diff(ctx context.Context, pull store.BoardItem) (forge.Diff, error) {
	head, err := b.head(ctx, pull)
	if err != nil {
		return forge.Diff{}, err
	}
	if head == "" {
		return forge.Diff{}, task.Errorf(task.NotFound, "the branch %s of pull request %d is gone", pull.Head, pull.Number)
	}
	base, err := b.parting(ctx, pull, head)
	if err != nil {
		return forge.Diff{}, err
	}
	patch, err := git(ctx, b.Path(pull.Repository), nil,
		"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "--src-prefix=a/", "--dst-prefix=b/", base, head, "--")
	return forge.Diff{Base: base, Head: head, Patch: patch}, err
}

// parting returns the commit at which a pull request left its base.
func (b *Board) parting(ctx context.Context, pull store.BoardItem, head string) (string, error) {
	if pull.State == store.BoardMerged {
		commit, found, err := b.resolve(ctx, pull.Repository, kept(pull, "base"))
		if err != nil || found {
			return commit, err
		}
	}
	base, err := b.requireBranch(ctx, pull.Repository, pull.Base)
	if err != nil {
		return "", err
	}
	return b.mergeBase(ctx, pull.Repository, base, head)
}

// remark is a comment on a line, as it is kept with its review. A reply names the
// thread that it belongs to.
type remark struct {
	Path   string     `json:"path"`
	Side   forge.Side `json:"side"`
	Line   int        `json:"line"`
	Body   string     `json:"body"`
	Thread string     `json:"thread,omitempty"`
	// Resolved says that this is no comment but that somebody resolved the thread.
	Resolved bool `json:"resolved,omitempty"`
}

func (r remark) anchor() forge.Anchor { return forge.Anchor{Path: r.Path, Side: r.Side, Line: r.Line} }

// remarkID is the id of a comment on a line: that of its review and its place
// there.
func remarkID(review string, place int) string { return fmt.Sprintf("%s-%d", review, place) }

// Reviews returns the submitted reviews. One that has only comments on lines is
// left to the threads.
func (f *Forge) Reviews(ctx context.Context, key task.Key) ([]forge.Review, error) {
	found, show, err := f.reviews(ctx, key)
	if err != nil {
		return nil, err
	}
	var reviews []forge.Review
	for _, one := range found {
		if one.Body != "" || one.Verdict != store.BoardRemark {
			reviews = append(reviews, reviewOf(one, show))
		}
	}
	return reviews, nil
}

func (f *Forge) reviews(ctx context.Context, key task.Key) ([]store.BoardReview, func(string) string, error) {
	if _, err := f.pull(ctx, key, forge.ReadAccess); err != nil {
		return nil, nil, err
	}
	found, err := f.board.store.BoardReviews(ctx, key.Repository, key.Number)
	if err != nil {
		return nil, nil, storeError("read the reviews of "+key.String(), err)
	}
	show, err := f.people(ctx)
	return found, show, err
}

func reviewOf(r store.BoardReview, show func(string) string) forge.Review {
	return forge.Review{
		ID: r.ID, Author: show(r.Author), Verdict: forge.Verdict(r.Verdict), Body: r.Body, Commit: r.Commit, At: r.CreatedAt,
	}
}

// ReviewThreads returns the conversations on lines.
func (f *Forge) ReviewThreads(ctx context.Context, key task.Key) ([]forge.ReviewThread, error) {
	reviews, show, err := f.reviews(ctx, key)
	if err != nil {
		return nil, err
	}
	var threads []forge.ReviewThread
	of := map[string]int{} // from the id of a thread to its place
	reviewed := map[string]string{}
	for _, review := range reviews {
		var remarks []remark
		if len(review.Comments) > 0 {
			if err := json.Unmarshal(review.Comments, &remarks); err != nil {
				return nil, task.Wrap(task.Internal, err, "the comments of a review cannot be read")
			}
		}
		for place, one := range remarks {
			id := remarkID(review.ID, place)
			thread := one.Thread
			if thread == "" {
				thread, of[id] = id, len(threads)
				reviewed[id] = review.Commit
				threads = append(threads, forge.ReviewThread{ID: id, Anchor: one.anchor()})
			}
			at := of[thread]
			if one.Resolved {
				threads[at].Resolved = true
				continue
			}
			threads[at].Comments = append(threads[at].Comments, task.Comment{
				ID: id, Kind: task.ReviewComment, Author: show(review.Author), Body: one.Body,
				CreatedAt: review.CreatedAt, UpdatedAt: review.CreatedAt,
			})
		}
	}
	return threads, f.markOutdated(ctx, key, threads, reviewed)
}

// markOutdated marks threads on lines that the diff no longer has.
func (f *Forge) markOutdated(ctx context.Context, key task.Key, threads []forge.ReviewThread, reviewed map[string]string) error {
	if len(threads) == 0 {
		return nil
	}
	diff, err := f.Diff(ctx, key)
	if code := task.CodeOf(err); code == task.NotFound || code == task.TooLarge {
		return nil // then it cannot be told
	}
	if err != nil {
		return err
	}
	anchors, err := diff.Anchors()
	if err != nil {
		return err
	}
	for i := range threads {
		if reviewed[threads[i].ID] != diff.Head && !anchors[threads[i].Anchor] {
			threads[i].Outdated, threads[i].Anchor.Line = true, 0
		}
	}
	return nil
}

// SubmitReview submits a review.
func (f *Forge) SubmitReview(ctx context.Context, key task.Key, post forge.ReviewPost) (forge.Review, error) {
	if post.Repeat {
		if review, found, err := f.findReview(ctx, key, post.Marker); err != nil || found {
			return review, err
		}
	}
	judgement := forge.NewReview{Verdict: post.Verdict, Body: post.Body(), Commit: post.Commit}
	for _, comment := range post.Comments {
		judgement.Lines = append(judgement.Lines, forge.LineRemark{Anchor: comment.Anchor, Body: comment.Text.String()})
	}
	return f.AddReview(ctx, key, judgement)
}

// AddReview submits a review of a person.
func (f *Forge) AddReview(ctx context.Context, key task.Key, judgement forge.NewReview) (forge.Review, error) {
	pull, err := f.pull(ctx, key, forge.ReadAccess)
	if err != nil {
		return forge.Review{}, err
	}
	diff, err := f.board.diff(ctx, pull)
	if err != nil {
		return forge.Review{}, err
	}
	judgement.Body = forge.Clean(judgement.Body)
	remarks, err := f.check(ctx, key, pull, diff, judgement)
	if err != nil {
		return forge.Review{}, err
	}
	return f.addReview(ctx, key, store.BoardReview{
		Repository: key.Repository, Number: key.Number, Author: f.self, Verdict: store.BoardVerdict(judgement.Verdict),
		Body: judgement.Body, Commit: diff.Head,
	}, remarks)
}

// check refuses a review that cannot be, and returns its comments on lines.
func (f *Forge) check(ctx context.Context, key task.Key, pull store.BoardItem, diff forge.Diff, judgement forge.NewReview) ([]remark, error) {
	if judgement.Verdict != forge.Remark {
		if task.SameLogin(pull.Author, f.self) {
			return nil, task.Errorf(task.Invalid, "%s is your own: you cannot judge it", key)
		}
		if err := f.require(ctx, key.Repository, forge.WriteAccess); err != nil {
			return nil, err
		}
	}
	if judgement.Commit != "" && judgement.Commit != diff.Head {
		return nil, task.Errorf(task.Conflict, "%s is at %s by now, not at %s", key, diff.Head, judgement.Commit)
	}
	if strings.TrimSpace(judgement.Body) == "" && len(judgement.Lines) == 0 && judgement.Verdict != forge.Approve {
		return nil, task.Errorf(task.Invalid, "a review needs a text or a comment on a line")
	}
	anchors, err := diff.Anchors()
	if err != nil {
		return nil, err
	}
	var remarks []remark
	for _, line := range judgement.Lines {
		at, body := line.Anchor, forge.Clean(line.Body)
		if !anchors[at] {
			return nil, task.Errorf(task.Invalid, "the diff of %s has no line %s", key, at)
		}
		if strings.TrimSpace(body) == "" {
			return nil, task.Errorf(task.Invalid, "the comment on %s is empty", at)
		}
		remarks = append(remarks, remark{Path: at.Path, Side: at.Side, Line: at.Line, Body: body})
	}
	return remarks, nil
}

func (f *Forge) addReview(ctx context.Context, key task.Key, review store.BoardReview, remarks []remark) (forge.Review, error) {
	if len(remarks) > 0 {
		encoded, err := json.Marshal(remarks)
		if err != nil {
			return forge.Review{}, task.Wrap(task.Internal, err, "cannot review "+key.String())
		}
		review.Comments = encoded
	}
	made, err := f.board.store.AddBoardReview(ctx, review)
	if err != nil {
		return forge.Review{}, storeError("review "+key.String(), err)
	}
	show, err := f.people(ctx)
	if err != nil {
		return forge.Review{}, err
	}
	return reviewOf(made, show), nil
}

func (f *Forge) findReview(ctx context.Context, key task.Key, marker forge.Marker) (forge.Review, bool, error) {
	reviews, err := f.Reviews(ctx, key)
	if err != nil {
		return forge.Review{}, false, err
	}
	for _, review := range reviews {
		if task.SameLogin(review.Author, f.self) && marker.In(review.Body) {
			return review, true, nil
		}
	}
	return forge.Review{}, false, nil
}

// Reply writes a comment into a review thread.
func (f *Forge) Reply(ctx context.Context, key task.Key, id string, post forge.Post) (task.Comment, error) {
	thread, err := f.thread(ctx, key, id)
	if err != nil {
		return task.Comment{}, err
	}
	if post.Repeat {
		if comment, found := forge.FindMarked(thread.Comments, f.self, post.Marker); found {
			return comment, nil
		}
	}
	return f.addReply(ctx, key, thread, post.Body())
}

// AddReply writes a comment of a person into a review thread, as it is.
func (f *Forge) AddReply(ctx context.Context, key task.Key, id, body string) (task.Comment, error) {
	thread, err := f.thread(ctx, key, id)
	if err != nil {
		return task.Comment{}, err
	}
	return f.addReply(ctx, key, thread, forge.Clean(body))
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

func (f *Forge) addReply(ctx context.Context, key task.Key, thread forge.ReviewThread, body string) (task.Comment, error) {
	if strings.TrimSpace(body) == "" {
		return task.Comment{}, task.Errorf(task.Invalid, "a comment needs a text")
	}
	anchor := thread.Anchor
	made, err := f.addReview(ctx, key, store.BoardReview{
		Repository: key.Repository, Number: key.Number, Author: f.self, Verdict: store.BoardRemark,
	}, []remark{{Path: anchor.Path, Side: anchor.Side, Line: anchor.Line, Body: body, Thread: thread.ID}})
	if err != nil {
		return task.Comment{}, err
	}
	return task.Comment{
		ID: remarkID(made.ID, 0), Kind: task.ReviewComment, Author: made.Author, Body: body, CreatedAt: made.At, UpdatedAt: made.At,
	}, nil
}

// ResolveThread marks a review thread as resolved. It is for the author of the pull request
// and for who may write.
func (f *Forge) ResolveThread(ctx context.Context, key task.Key, id string) error {
	pull, err := f.pull(ctx, key, forge.ReadAccess)
	if err != nil {
		return err
	}
	if !task.SameLogin(pull.Author, f.self) {
		if err := f.require(ctx, key.Repository, forge.WriteAccess); err != nil {
			return err
		}
	}
	thread, err := f.thread(ctx, key, id)
	if err != nil || thread.Resolved {
		return err
	}
	_, err = f.addReview(ctx, key, store.BoardReview{
		Repository: key.Repository, Number: key.Number, Author: f.self, Verdict: store.BoardRemark,
	}, []remark{{Thread: thread.ID, Resolved: true}})
	return err
}
