package intake

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/review/verdicts"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// changes makes a task of what a pull request of ours is to be changed for. While it cannot be
// told whether a request is to be done again that was undone by closing the pull request, there
// is no task for anything else: after that the request would count as dealt with.
func (i *Intake) changes(ctx context.Context, pull pullView) error {
	failed := i.fixUp(ctx, pull)
	if failed != nil {
		last, _, err := store.Optional(i.options.Tasks.TaskOf(ctx, pull.Key, task.Development))
		if err != nil || requestUndone(last) {
			return errors.Join(failed, err)
		}
	}
	return errors.Join(failed, i.mergeBase(ctx, pull.Item), i.checks(ctx, pull.Item))
}

// fixUp makes a task of what asks for changes on a pull request of ours: a review, or what
// [Rules.FixUpOn] names besides, if its author may steer it.
func (i *Intake) fixUp(ctx context.Context, pull pullView) error {
	origin, ours, err := i.ours(ctx, pull.Item)
	if err != nil || !ours {
		return err
	}
	last, _, err := store.Optional(i.options.Tasks.TaskOf(ctx, pull.Key, task.Development))
	if err != nil || last.State.Active() {
		return err
	}
	open, err := i.requests(ctx, pull, func(r request) bool { return dealtWith(last, r) })
	if err != nil {
		return err
	}
	unclear := func(r request) bool { return r.unclear }
	if requestUndone(last) && slices.ContainsFunc(open, unclear) {
		return task.Errorf(task.Unavailable, "what the author of a comment may do cannot be read")
	}
	open = slices.DeleteFunc(open, unclear)
	if open, err = i.counting(ctx, open, last, origin); err != nil {
		return err
	}
	if left, err := i.undone(ctx, last, open); err != nil || !left {
		return err
	}
	if origin.State.Active() { // it works on the same branch
		i.lookAt(pull.Key, i.options.Now().Add(busyAgain))
		return nil
	}
	newest := open[len(open)-1]
	rounds, exhausted, err := i.rounds(ctx, pull, newest, last)
	if err != nil {
		return err
	}
	if exhausted {
		return i.comment(ctx, pull.Item, "undecided/"+pull.HeadCommit, notice.Notice{Attempts: rounds}.Undecided)
	}
	return i.assignFixUp(ctx, pull.Item, cmp.Or(origin.Role, i.options.Rules.DefaultRole), task.ReasonChangesRequested, i.occasionAfter(last, newest.occasion()))
}

// reopened stands in an occasion between what a task is for and when it was queued again.
const reopened = " " + task.OccasionReopened + " "

// closedUnder reports whether a task was ended because its item was closed. What it was for is
// to be done when the item is opened again.
func closedUnder(t task.Task) bool {
	return t.State == task.Stopped && t.Reason == task.ReasonItemClosed
}

// requestUndone reports whether a task was for a request for changes, and was ended because its
// item was closed.
func requestUndone(t task.Task) bool {
	return closedUnder(t) && t.Cause == task.ReasonChangesRequested
}

// occasionAfter names what the task after the last one is for. When that was ended because the
// item was closed, the next may be for the same, and the store takes each occasion once.
func (i *Intake) occasionAfter(last task.Task, occasion string) string {
	if closedUnder(last) {
		occasion += reopened + i.options.Now().UTC().Format(time.RFC3339Nano)
	}
	return occasion
}

// dealtWith reports whether the last task of a pull request was for a request or for a later one.
func dealtWith(last task.Task, one request) bool {
	occasion := one.occasion()
	if requestUndone(last) && (last.Occasion == occasion || strings.HasPrefix(last.Occasion, occasion+reopened)) {
		return false
	}
	return occasion <= last.Occasion
}

// ours reports whether a pull request is the work of a task, which is origin, or was opened
// by us, and is not from a fork.
func (i *Intake) ours(ctx context.Context, pull forge.Item) (origin task.Task, ours bool, err error) {
	if pull.Fork {
		return task.Task{}, false, nil
	}
	origin, found, err := i.origin(ctx, pull)
	if err != nil || found {
		return origin, found, err
	}
	self, err := i.options.Forges[pull.Key.Forge].Self(ctx)
	return origin, err == nil && task.SameLogin(pull.Author, self), err
}

// counting leaves our own reviews out if people have taken the work from us.
func (i *Intake) counting(ctx context.Context, open []request, last, origin task.Task) ([]request, error) {
	own := func(r request) bool { return r.own }
	if !slices.ContainsFunc(open, own) {
		return open, nil
	}
	over, err := i.handedOver(ctx, last, origin)
	if err == nil && over {
		open = slices.DeleteFunc(open, own)
	}
	return open, err
}

// handedOver reports whether people have taken the work on a pull request from us: they have
// stopped the last task on it or that of its issue, or taken the bot off the issue. Our own
// reviews and conflicts with the base lead to nothing then.
func (i *Intake) handedOver(ctx context.Context, last, origin task.Task) (bool, error) {
	for _, t := range []task.Task{last, origin} {
		if t.State == task.Stopped && (t.Reason == task.ReasonUnassigned || t.Reason == task.ReasonStopRequested) {
			return true, nil
		}
	}
	if origin.Key.Kind != task.Issue || !origin.Released || i.options.KeepUnassigned {
		return false, nil
	}
	// It is released when the bot was taken off, and when the issue was closed.
	bot, err := i.options.Bot(ctx, origin.Key.Forge)
	if err != nil {
		return false, err
	}
	issue, err := i.read(ctx, origin.Key, issueAge)
	return issue.State == forge.Open && !issue.AssignedTo(bot), err
}

// assignFixUp makes a task that continues the work of a pull request, with a role unless the
// pull request has another.
func (i *Intake) assignFixUp(ctx context.Context, pull forge.Item, otherwise task.Role, reason task.Reason, occasion string) error {
	as, err := i.description(ctx, pull, otherwise, "")
	if err != nil {
		return err
	}
	on, err := i.assignedOn(ctx, pull)
	if err != nil {
		return err
	}
	return i.assign(ctx, store.NewTask{
		Key: pull.Key, Type: task.Development, Role: as.Role, Title: as.Title, URL: as.URL, Priority: as.Priority,
		Branch: assignment.BranchOf(pull), Reason: reason, Occasion: occasion, AssignedOn: on,
	})
}

// undone reports whether there is something left to do about one of the requests, oldest
// first. There is not if the last task of the pull request was for it or for a later one, or
// was done after its run had taken the request up, which came meanwhile.
func (i *Intake) undone(ctx context.Context, last task.Task, open []request) (bool, error) {
	for _, one := range slices.Backward(open) {
		if dealtWith(last, one) {
			return false, nil
		}
		if i.options.TakenUp == nil || last.State != task.Done {
			return true, nil
		}
		if taken, err := i.options.TakenUp(ctx, last, one.comment()); err != nil || !taken {
			return err == nil, err
		}
	}
	return false, nil
}

// request is something that asks for changes on a pull request: a review, or a comment, which
// is treated like a review that requests changes.
type request struct {
	forge.Review
	kind task.CommentKind // of what was written; a review is a SummaryComment
	// formal says that it is a review that requests changes, and own that this is ours.
	formal, own bool
	// writes says that the author of a comment may write to the repository, and unclear that
	// it could not be read what they may do.
	writes, unclear bool
}

// occasion names the request as what a task is for: a review that requests changes, the text of
// another one, or a comment. Later requests have greater names.
func (r request) occasion() string {
	what := task.OccasionComment
	switch {
	case r.formal:
		what = task.OccasionReview
	case r.kind == task.SummaryComment:
		what = task.OccasionBody
	}
	return r.At.UTC().Format(time.RFC3339) + " " + what + " " + r.ID
}

// comment is what was written.
func (r request) comment() task.Comment {
	comment := r.Comment()
	comment.Kind = r.kind
	return comment
}

// occasionOfAssignment is what the task of a pull request is for that the bot is
// assigned to: all that is asked for so far, so that it is not done a second time.
func (i *Intake) occasionOfAssignment(ctx context.Context, item forge.Item) (string, error) {
	if item.Key.Kind != task.Pull {
		return "", nil
	}
	open, err := i.requests(ctx, i.view(ctx, item), func(request) bool { return false })
	if err != nil || len(open) == 0 {
		return "", err
	}
	// Each assignment is an occasion of its own.
	return open[len(open)-1].occasion() + " assigned " + i.options.Now().UTC().Format(time.RFC3339Nano), nil
}

// requests returns what asks for changes on a pull request and counts, oldest first: the
// reviews that ask for changes and still stand, and the comments that do. One of ours counts
// while what it is about is the head commit: another head is reviewed anew. Comments count
// that are not over.
func (i *Intake) requests(ctx context.Context, pull pullView, over func(request) bool) ([]request, error) {
	reviews, err := pull.reviews()
	if err != nil {
		return nil, err
	}
	self, err := i.options.Forges[pull.Key.Forge].Self(ctx)
	if err != nil {
		return nil, err
	}
	standing, err := i.options.Steering.Accepted(ctx, pull.Item, verdicts.Open(reviews, self), self)
	if err != nil {
		return nil, err
	}
	var open []request
	for _, review := range standing {
		own := task.SameLogin(review.Author, self)
		if !own || review.Commit == "" || review.Commit == pull.HeadCommit {
			open = append(open, request{Review: review, kind: task.SummaryComment, formal: true, own: own})
		}
	}
	comments, err := i.commentRequests(ctx, pull, self, over)
	open = append(open, comments...)
	slices.SortStableFunc(open, func(a, b request) int { return cmp.Compare(a.occasion(), b.occasion()) })
	return open, err
}

// rounds is how often changes were asked for before the newest request, as far as that is
// bounded, and whether this was often enough. People who may write to the repository can
// request changes in reviews as often as they like.
func (i *Intake) rounds(ctx context.Context, pull pullView, newest request, last task.Task) (rounds int, exhausted bool, err error) {
	reviews, err := pull.reviews()
	if err != nil {
		return 0, false, err
	}
	self, err := i.options.Forges[pull.Key.Forge].Self(ctx)
	if err != nil {
		return 0, false, err
	}
	limit := i.options.Rules.ReviewRounds
	if !newest.formal {
		if newest.writes {
			limit = commentRounds * max(limit, 1)
		}
		rounds, err = i.roundsSinceDecision(ctx, pull.Item, reviews, self, last)
		return rounds, rounds >= limit, err
	}
	bounded, err := i.countRounds(ctx, pull.Item, []forge.Review{newest.Review}, self)
	if err != nil || bounded == 0 {
		return 0, false, err
	}
	rounds, err = i.countRounds(ctx, pull.Item, reviews, self)
	return rounds - 1, rounds > limit, err
}

// commentRounds is how many times as often comments of people who may write lead to changes:
// one of them may be a program that answers whatever we publish.
const commentRounds = 3

// roundsSinceDecision is how many tasks requests for changes have led to since somebody who
// may write to the repository, and is not us or another program, last approved or requested
// changes.
func (i *Intake) roundsSinceDecision(ctx context.Context, pull forge.Item, reviews []forge.Review, self string, last task.Task) (int, error) {
	if last.ID == "" {
		return 0, nil
	}
	var decided time.Time
	for _, review := range reviews {
		if review.Verdict == forge.Remark || review.At.Before(decided) || task.SameLogin(review.Author, self) || forge.Automated(review.Author) {
			continue
		}
		standing, err := i.options.Steering.Of(ctx, pull, review.Author, nil)
		if err != nil {
			return 0, err
		}
		if standing.Writes {
			decided = review.At
		}
	}
	changes, err := i.changesOf(ctx, last)
	rounds := 0
	for _, change := range changes {
		if change.Trigger == task.Assigned && change.Reason == task.ReasonChangesRequested && change.at.After(decided) {
			rounds++
		}
	}
	return rounds, err
}

// countRounds is how many of the reviews ask for changes and are ours or of people who may not
// write to the repository. The first decision of each person who may lets us begin anew, and
// no more than the first: it may be a program that decides about each push.
func (i *Intake) countRounds(ctx context.Context, pull forge.Item, reviews []forge.Review, self string) (int, error) {
	count, decided := 0, map[string]bool{}
	for _, review := range slices.SortedStableFunc(slices.Values(reviews), func(a, b forge.Review) int { return a.At.Compare(b.At) }) {
		if review.Verdict == forge.Remark {
			continue
		}
		if !task.SameLogin(review.Author, self) {
			standing, err := i.options.Steering.Of(ctx, pull, review.Author, nil)
			if err != nil {
				return 0, err
			}
			if author := task.FoldLogin(review.Author); standing.Writes {
				if !decided[author] {
					count = 0
				}
				decided[author] = true
				continue
			}
		}
		if review.Verdict == forge.RequestChanges {
			count++
		}
	}
	return count, nil
}
