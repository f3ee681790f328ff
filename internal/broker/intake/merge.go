package intake

import (
	"context"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// firstMergeLook and lastMergeLook bound how long it takes until the checks of a pull
	// request that is approved are looked at again.
	firstMergeLook = time.Minute
	lastMergeLook  = time.Hour
)

// merge merges a pull request of ours that people have approved and whose checks have
// succeeded, if the configuration wants that. What else has to be so is the forge's to know:
// its rules are not passed by. If the forge refuses, people are told why, once for a head
// commit; a further approval is another attempt.
func (i *Intake) merge(ctx context.Context, pull pullView) error {
	if !i.options.Rules.Merge || pull.Draft || pull.HeadCommit == "" {
		return nil
	}
	origin, ours, err := i.ours(ctx, pull.Item)
	if err != nil || !ours {
		return err
	}
	since, idle, err := i.idle(ctx, pull.Item, origin)
	if err != nil || !idle {
		return err
	}
	approval, err := i.approval(ctx, pull, since)
	if err != nil || approval.ID == "" {
		return err
	}
	checks, err := i.options.Forges[pull.Key.Forge].Checks(ctx, pull.Key.Repository, pull.HeadCommit)
	if err != nil {
		return err
	}
	switch stateOf(checks) {
	case forge.StatusSuccess:
	case forge.StatusPending:
		// Not every forge tells when a check ends. What takes long is looked at less often.
		wait := i.options.Now().Sub(approval.At) / 2
		i.lookAt(pull.Key, i.options.Now().Add(min(max(wait, firstMergeLook), lastMergeLook)))
		return nil
	default:
		return nil
	}
	write := outbox.Write{Item: pull.Key, What: "merge/" + pull.HeadCommit + "/" + approval.ID}
	stored, err := i.put(ctx, write, outbox.MergePull{Head: pull.HeadCommit})
	if err != nil || stored.Status != store.Refused {
		return err
	}
	why := notice.Notice{Commit: pull.HeadCommit, Detail: stored.LastError}
	return i.comment(ctx, pull.Item, "not_merged/"+pull.HeadCommit, why.NotMerged)
}

// stateOf is what checks say together. None at all say nothing yet: that is pending. When
// there are more than are read, we do not know what the others say.
func stateOf(checks []forge.Check) forge.StatusState {
	if len(checks) == 0 {
		return forge.StatusPending
	}
	if len(checks) >= forge.MaxChecks {
		return forge.StatusError
	}
	state := forge.StatusSuccess
	for _, check := range checks {
		switch check.State {
		case forge.StatusSuccess:
		case forge.StatusPending:
			state = forge.StatusPending
		default:
			return check.State
		}
	}
	return state
}

// idle reports whether nobody works on a pull request for us, and people have not taken the
// work from us. Since is when our last work on it ended.
func (i *Intake) idle(ctx context.Context, pull forge.Item, origin task.Task) (since time.Time, idle bool, err error) {
	last, _, err := store.Optional(i.options.Tasks.TaskOf(ctx, pull.Key, task.Development))
	if err != nil {
		return time.Time{}, false, err
	}
	review, _, err := store.Optional(i.options.Tasks.TaskOf(ctx, pull.Key, task.Review))
	if err != nil || last.State.Active() || review.State.Active() || origin.State.Active() {
		return time.Time{}, false, err
	}
	since = origin.UpdatedAt
	if last.UpdatedAt.After(since) {
		since = last.UpdatedAt
	}
	over, err := i.handedOver(ctx, last, origin)
	return since, !over, err
}

// approval returns the last approval of the head of a pull request by somebody who may write
// to the repository and is neither its author nor us; none if there is no such approval, or
// if somebody who counts requests changes. Where the forge does not name the commit, one counts
// that came after our last work.
func (i *Intake) approval(ctx context.Context, pull pullView, since time.Time) (last forge.Review, err error) {
	reviews, err := pull.reviews()
	if err != nil {
		return forge.Review{}, err
	}
	self, err := i.options.Forges[pull.Key.Forge].Self(ctx)
	if err != nil {
		return forge.Review{}, err
	}
	for _, review := range reviews {
		ofHead := review.Commit == pull.HeadCommit || review.Commit == "" && review.At.After(since)
		if review.Verdict != forge.Approve || review.Dismissed || !ofHead || review.At.Before(last.At) ||
			task.SameLogin(review.Author, self) || task.SameLogin(review.Author, pull.Author) || forge.Automated(review.Author) {
			continue
		}
		standing, err := i.options.Steering.Of(ctx, pull.Item, review.Author, nil)
		if err != nil {
			return forge.Review{}, err
		}
		if standing.Writes {
			last = review
		}
	}
	if last.ID == "" {
		return forge.Review{}, nil
	}
	open, err := i.requests(ctx, pull)
	if err != nil || slices.ContainsFunc(open, func(r request) bool { return r.formal }) {
		return forge.Review{}, err
	}
	return last, nil
}
