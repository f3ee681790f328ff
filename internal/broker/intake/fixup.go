package intake

import (
	"context"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/review/verdicts"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// fixUp makes a task of a review that asks for changes on a pull request of ours, if
// its author may steer it.
func (i *Intake) fixUp(ctx context.Context, pull forge.Item) error {
	origin, ours, err := i.origin(ctx, pull)
	if err != nil {
		return err
	}
	self, err := i.options.Forges[pull.Key.Forge].Self(ctx)
	if err != nil {
		return err
	}
	if pull.Fork || !ours && !task.SameLogin(pull.Author, self) {
		return nil
	}
	open, rounds, err := i.requests(ctx, pull)
	if err != nil || len(open) == 0 {
		return err
	}
	newest := open[len(open)-1]
	if leave, err := i.leave(ctx, pull, newest, origin, task.SameLogin(newest.Author, self)); err != nil || leave {
		return err
	}
	if rounds > i.options.Rules.ReviewRounds {
		return i.comment(ctx, pull, "undecided/"+newest.ID, notice.Notice{Attempts: rounds - 1}.Undecided)
	}
	otherwise := i.options.Rules.DefaultRole
	if ours {
		otherwise = origin.Role
	}
	return i.assignFixUp(ctx, pull, otherwise, task.ReasonChangesRequested, occasionOf(newest))
}

// leave reports whether nothing follows from a review that asks for changes: something was
// done about it, or it is our own and people have taken the work from us.
func (i *Intake) leave(ctx context.Context, pull forge.Item, review forge.Review, origin task.Task, own bool) (bool, error) {
	last, _, err := store.Optional(i.options.Tasks.TaskOf(ctx, pull.Key, task.Development))
	if err != nil {
		return false, err
	}
	if own {
		if over, err := i.handedOver(ctx, last, origin); err != nil || over {
			return over, err
		}
	}
	return i.dealtWith(ctx, last, review)
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
	issue, err := i.read(ctx, origin.Key, blockerAge)
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

// dealtWith reports whether there is nothing left to do about a review: the task of the
// pull request goes on, or was for the review, or was done after its run had taken the
// review up, which came meanwhile.
func (i *Intake) dealtWith(ctx context.Context, last task.Task, review forge.Review) (bool, error) {
	if last.State.Active() || occasionOf(review) <= last.Occasion {
		return true, nil
	}
	if i.options.TakenUp == nil || last.State != task.Done {
		return false, nil
	}
	return i.options.TakenUp(ctx, last, review)
}

// occasionOf names a review as what a task is for. Later reviews have greater names.
func occasionOf(review forge.Review) string {
	return review.At.UTC().Format(time.RFC3339) + " review " + review.ID
}

// occasionOfAssignment is what the task of a pull request is for that the bot is
// assigned to: all that reviews ask for so far, so that it is not done a second time.
func (i *Intake) occasionOfAssignment(ctx context.Context, item forge.Item) (string, error) {
	if item.Key.Kind != task.Pull {
		return "", nil
	}
	open, _, err := i.requests(ctx, item)
	if err != nil || len(open) == 0 {
		return "", err
	}
	// Each assignment is an occasion of its own.
	return occasionOf(open[len(open)-1]) + " assigned " + i.options.Now().UTC().Format(time.RFC3339Nano), nil
}

// requests returns the reviews of a pull request that ask for changes, still stand and
// count, oldest first. One of ours counts while what it is about is the head commit: another
// head is reviewed anew. Rounds is how often we ourselves and people who may not write to
// the repository have asked for changes, since somebody who may write first decided
// anything, if the last that asks is one of these, and 0 otherwise: people who may write can
// ask as often as they like.
func (i *Intake) requests(ctx context.Context, pull forge.Item) (open []forge.Review, rounds int, err error) {
	from := i.options.Forges[pull.Key.Forge]
	reviews, err := i.options.Verdicts.Of(ctx, from, pull.Key)
	if err != nil {
		return nil, 0, err
	}
	self, err := from.Self(ctx)
	if err != nil {
		return nil, 0, err
	}
	open, err = i.options.Steering.Accepted(ctx, pull, verdicts.Open(reviews, self), self)
	open = slices.DeleteFunc(open, func(r forge.Review) bool {
		return task.SameLogin(r.Author, self) && r.Commit != "" && r.Commit != pull.HeadCommit
	})
	if err != nil || len(open) == 0 {
		return nil, 0, err
	}
	if rounds, err = i.rounds(ctx, pull, open[len(open)-1:], self); err == nil && rounds > 0 {
		rounds, err = i.rounds(ctx, pull, reviews, self)
	}
	return open, rounds, err
}

// rounds is how many of the reviews ask for changes and are ours or of people who may not
// write to the repository. The first decision of each person who may lets us begin anew, and
// no more than the first: it may be a program that decides about each push.
func (i *Intake) rounds(ctx context.Context, pull forge.Item, reviews []forge.Review, self string) (int, error) {
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
