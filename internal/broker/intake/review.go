package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// pullAge is how old the snapshot of a pull request may be that an issue links to.
const pullAge = 30 * time.Second

// reviews makes review tasks of the pull requests of an item that waits for
// review, if they are due.
func (i *Intake) reviews(ctx context.Context, item forge.Item) error {
	from := i.options.Forges[item.Key.Forge]
	pulls := []task.Key{item.Key}
	if item.Key.Kind == task.Issue {
		linked, err := from.LinkedPulls(ctx, item.Key)
		if err != nil {
			return fmt.Errorf("read the linked pull requests: %w", err)
		}
		pulls = nil
		for _, one := range linked {
			// A label says something about the repository in which it was put on.
			if one.State == forge.Open && one.Key.Repository == item.Key.Repository {
				pulls = append(pulls, one.Key)
			}
		}
	}
	if len(pulls) == 0 {
		return nil
	}
	events, err := from.LabelEvents(ctx, item.Key)
	if err != nil {
		return fmt.Errorf("read when the label was put on: %w", err)
	}
	labeled, on := forge.LabeledAt(events, i.options.Rules.ReviewLabel)
	if !on {
		return nil // taken off a moment ago
	}
	by := forge.LabeledBy(events, i.options.Rules.ReviewLabel)
	if entitled, err := i.asked(ctx, item.Key, by, "labeled"); err != nil || !entitled {
		return err
	}
	if due := labeled.Add(i.options.Rules.ReviewDelay); due.After(i.options.Now()) {
		i.lookAt(item.Key, due)
		return nil
	}
	for _, key := range pulls {
		err = errors.Join(err, i.review(ctx, item, key, labeled))
	}
	return err
}

// review makes the review task of a pull request whose time has come, unless a
// person who may steer it has reviewed it since the label was put on, or we have
// reviewed the same head commit before.
func (i *Intake) review(ctx context.Context, item forge.Item, key task.Key, labeled time.Time) error {
	pull, err := i.read(ctx, key, pullAge)
	if err != nil {
		return err
	}
	if pull.State != forge.Open || pull.Draft || pull.HeadCommit == "" {
		return nil
	}
	if entitled, err := i.mayUseLabelOf(ctx, item, pull); err != nil || !entitled {
		return err
	}
	last, err := i.options.Tasks.TaskOf(ctx, key, task.Review)
	if err != nil && task.CodeOf(err) != task.NotFound {
		return err
	}
	byOthers, err := i.reviewedSince(ctx, pull, labeled)
	if err != nil {
		return err
	}
	needed := !byOthers
	switch {
	case last.State == task.Queued && !needed:
		return i.withdraw(ctx, last, task.ReasonReviewNotNeeded)
	case last.State.Active() || !needed || reviewed(last, pull.HeadCommit):
		return nil
	}
	return i.assignReview(ctx, item, pull, labeled)
}

// assignReview makes the review task of a pull request, for the label on an item.
func (i *Intake) assignReview(ctx context.Context, item, pull forge.Item, labeled time.Time) error {
	role, wrong := i.options.Rules.role(item, task.DefaultReviewRole)
	if wrong != "" {
		i.options.Log.WarnContext(ctx, "the role of an item is ambiguous", "why", wrong, "item", item.Key.String(), "labels", item.Labels, "role", role)
	}
	author, err := i.author(ctx, pull)
	if err != nil {
		return err
	}
	on, err := i.assignedOn(ctx, pull, item.Key)
	if err != nil {
		return err
	}
	return i.assign(ctx, store.NewTask{
		Key: pull.Key, Type: task.Review, Role: role, Title: pull.Title, URL: pull.URL, Priority: i.options.Rules.priority(item),
		Reason: task.ReasonReviewDue, Occasion: reviewOccasion(pull.HeadCommit, labeled), Branch: assignment.BranchOf(pull), Author: author, AssignedOn: on,
	})
}

// mayUseLabelOf reports whether the label of an item holds for a pull request: its own
// does, and that of an issue for those of people who may steer the issue, and for ours.
// Everyone can open a pull request that names an issue, any number of them.
func (i *Intake) mayUseLabelOf(ctx context.Context, item, pull forge.Item) (bool, error) {
	if item.Key == pull.Key {
		return true, nil
	}
	self, err := i.options.Forges[pull.Key.Forge].Self(ctx)
	if err != nil || task.SameLogin(pull.Author, self) {
		return err == nil, err
	}
	standing, err := i.options.Steering.Of(ctx, item, pull.Author, nil)
	if err != nil {
		return false, fmt.Errorf("read what the author of a pull request may do: %w", err)
	}
	return standing.MaySteer(), nil
}

// reviewOccasion names a head commit that is to be reviewed, and the label that
// asked for it.
func reviewOccasion(commit string, labeled time.Time) string {
	return commit + " " + labeled.UTC().Format(time.RFC3339)
}

// reviewed reports whether the last review task was for the commit. One that was
// found not to be needed was not carried out.
func reviewed(last task.Task, commit string) bool {
	if last.State == task.Stopped && last.Reason == task.ReasonReviewNotNeeded {
		return false
	}
	before, _, _ := strings.Cut(last.Occasion, " ")
	return before == commit
}

// reviewedSince reports whether somebody else has reviewed after the moment. What the
// author says about their own work is no review of it, and one of a stranger does not
// relieve us of ours. We cannot tell other programs from people.
func (i *Intake) reviewedSince(ctx context.Context, pull forge.Item, since time.Time) (bool, error) {
	from := i.options.Forges[pull.Key.Forge]
	self, err := from.Self(ctx)
	if err != nil {
		return false, err
	}
	reviews, err := from.Reviews(ctx, pull.Key)
	if err != nil {
		return false, fmt.Errorf("read the reviews: %w", err)
	}
	for _, review := range reviews {
		if review.At.Before(since) || task.SameLogin(review.Author, self) || task.SameLogin(review.Author, pull.Author) {
			continue
		}
		standing, err := i.options.Steering.Of(ctx, pull, review.Author, nil)
		if err != nil {
			return false, fmt.Errorf("read what a reviewer may do: %w", err)
		}
		if standing.MaySteer() {
			return true, nil
		}
	}
	return false, nil
}

// author is the agent that wrote the pull request, if it is the work of a task.
func (i *Intake) author(ctx context.Context, pull forge.Item) (string, error) {
	origin, found, err := i.origin(ctx, pull)
	if err != nil || !found {
		return "", err
	}
	own, err := i.options.Tasks.TaskOf(ctx, pull.Key, task.Development)
	if err == nil && own.LastAgent != "" {
		return own.LastAgent, nil // it has worked on it since
	}
	return origin.LastAgent, nil
}

// origin is the task that the branch of a pull request is the work of.
func (i *Intake) origin(ctx context.Context, pull forge.Item) (origin task.Task, found bool, err error) {
	if pull.Head == "" {
		return task.Task{}, false, nil
	}
	origin, err = i.options.Tasks.TaskOfBranch(ctx, pull.Key.Forge, pull.Key.Repository, pull.Head)
	if task.CodeOf(err) == task.NotFound {
		return task.Task{}, false, nil
	}
	return origin, err == nil, err
}

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
	if dealtWith, err := i.dealtWith(ctx, pull, newest); err != nil || dealtWith {
		return err
	}
	if rounds > i.options.Rules.ReviewRounds {
		i.options.Log.WarnContext(ctx, "reviews of the bot, or of people without write access, keep requesting changes; a person has to decide", "pull", pull.Key.String(), "rounds", rounds)
		return nil
	}
	otherwise := i.options.Rules.DefaultRole
	if ours {
		otherwise = origin.Role
	}
	return i.assignFixUp(ctx, pull, otherwise, occasionOf(newest))
}

// assignFixUp makes the task of a review that asks for changes, with a role unless the pull
// request has another.
func (i *Intake) assignFixUp(ctx context.Context, pull forge.Item, otherwise task.Role, occasion string) error {
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
		Branch: assignment.BranchOf(pull), Reason: task.ReasonChangesRequested, Occasion: occasion, AssignedOn: on,
	})
}

// dealtWith reports whether there is nothing left to do about a review: the task of the
// pull request goes on, or was for the review, or was done after its run had taken the
// review up, which came meanwhile.
func (i *Intake) dealtWith(ctx context.Context, pull forge.Item, review forge.Review) (bool, error) {
	last, err := i.options.Tasks.TaskOf(ctx, pull.Key, task.Development)
	if task.CodeOf(err) == task.NotFound {
		return false, nil
	}
	if err != nil || last.State.Active() || occasionOf(review) <= last.Occasion {
		return err == nil, err
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
// count, oldest first. Rounds is how often we ourselves and people who may not write to
// the repository have asked for changes so far, if the last that asks is one of these, and
// 0 otherwise: people who may write can ask as often as they like.
func (i *Intake) requests(ctx context.Context, pull forge.Item) (open []forge.Review, rounds int, err error) {
	from := i.options.Forges[pull.Key.Forge]
	reviews, err := from.Reviews(ctx, pull.Key)
	if err != nil {
		return nil, 0, fmt.Errorf("read the reviews: %w", err)
	}
	self, err := from.Self(ctx)
	if err != nil {
		return nil, 0, err
	}
	open, err = i.options.Steering.Accepted(ctx, pull, forge.OpenRequests(reviews), self)
	if err != nil || len(open) == 0 {
		return nil, 0, err
	}
	counted, err := i.counted(ctx, pull, open[len(open)-1:], self)
	if err == nil && counted > 0 {
		rounds, err = i.counted(ctx, pull, reviews, self)
	}
	return open, rounds, err
}

// counted is how many of the reviews ask for changes and are ours or of people who may not
// write to the repository.
func (i *Intake) counted(ctx context.Context, pull forge.Item, reviews []forge.Review, self string) (int, error) {
	count := 0
	for _, review := range reviews {
		if review.Verdict != forge.RequestChanges {
			continue
		}
		if !task.SameLogin(review.Author, self) {
			standing, err := i.options.Steering.Of(ctx, pull, review.Author, nil)
			if err != nil {
				return 0, err
			}
			if standing.Writes {
				continue
			}
		}
		count++
	}
	return count, nil
}
