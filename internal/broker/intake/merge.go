package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/messages"
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
	// failedMergeLook is the same as firstMergeLook where a check has failed: somebody may
	// run it again.
	failedMergeLook = 10 * time.Minute
	// mergeWithin is how long a merge may wait for the forge. After that it is decided anew
	// whether to merge.
	mergeWithin = 2 * time.Minute
	// maxMergeAttempts bounds the attempts for one approval.
	maxMergeAttempts = 100
)

// mergeAgain is how long after an attempt to merge there is another one.
var mergeAgain = []time.Duration{time.Minute, 5 * time.Minute, 20 * time.Minute}

// merge merges a pull request of ours that people have approved and whose checks have
// succeeded, if the configuration wants that. What else has to be so is the forge's to know:
// its rules are not passed by. If the forge refuses, people are told why, once for a head
// commit; a further approval is another attempt. Without checks by others nothing is merged.
func (i *Intake) merge(ctx context.Context, pull pullView) error {
	approval, err := i.mayMerge(ctx, pull)
	if err != nil || approval.ID == "" {
		return err
	}
	checks, err := i.options.Forges[pull.Key.Forge].Checks(ctx, pull.Key.Repository, pull.HeadCommit)
	if err != nil {
		return i.hidden(ctx, pull.Key.Repo(), err)
	}
	state := stateOf(checks)
	if state == forge.StatusSuccess {
		return i.mergeIfStill(ctx, pull.Item)
	}
	// Not every forge tells when a check ends, or is run again. What takes long is looked at
	// less often.
	soonest := firstMergeLook
	if state != forge.StatusPending {
		soonest = failedMergeLook
	}
	wait := i.options.Now().Sub(approval.At) / 2
	i.lookAt(pull.Key, i.options.Now().Add(min(max(wait, soonest), lastMergeLook)))
	return nil
}

// mayMerge returns the approval by which a pull request may be merged as soon as its checks
// have succeeded, or none.
func (i *Intake) mayMerge(ctx context.Context, pull pullView) (forge.Review, error) {
	if !i.options.Rules.Merge || pull.Draft || pull.HeadCommit == "" {
		return forge.Review{}, nil
	}
	origin, ours, err := i.ours(ctx, pull.Item)
	if err != nil || !ours {
		return forge.Review{}, err
	}
	idle, err := i.idle(ctx, pull.Item, origin)
	if err != nil || !idle {
		return forge.Review{}, err
	}
	return i.approval(ctx, pull)
}

// mergeIfStill has a pull request merged whose checks have succeeded, if it may be merged by
// what there is now. Somebody may have requested changes since this look has read the reviews
// and the comments, which was before it read the checks.
func (i *Intake) mergeIfStill(ctx context.Context, before forge.Item) error {
	now, err := i.viewNow(ctx, before.Key)
	if err != nil {
		return err
	}
	approval, err := i.mayMerge(ctx, now)
	if err != nil {
		return err
	}
	if approval.ID == "" || now.State != forge.Open || now.HeadCommit != before.HeadCommit {
		i.queue.Add(before.Key) // something else follows from that
		return nil
	}
	return i.tryMerge(ctx, now, approval)
}

// tryMerge has a pull request merged that may be. When an attempt came to nothing because the
// forge was not to be had in time, or had a conflict, which may be over soon, there is another
// one after a while. An example: the forge has not computed yet whether the branch can be
// merged, and says Conflict. A minute later it is asked again, then after 5 and 20 minutes.
func (i *Intake) tryMerge(ctx context.Context, pull pullView, approval forge.Review) error {
	reviews, err := pull.reviews()
	if err != nil {
		return err
	}
	now, conflicts := i.options.Now(), 0
	payload := outbox.MergePull{Head: pull.HeadCommit, Until: now.Add(mergeWithin), Requests: requestsIn(reviews)}
	for attempt := range maxMergeAttempts {
		what := fmt.Sprintf("merge/%s/%s/%d/%d", pull.HeadCommit, approval.ID, approval.At.Unix(), attempt)
		stored, err := i.put(ctx, outbox.Write{Item: pull.Key, What: what}, payload)
		if err != nil || stored.Status != store.Refused {
			return err
		}
		if stored.Reason != task.ReasonExpired {
			conflicts++
		}
		if stored.Reason == task.ReasonRejectedByForge || stored.Reason == task.ReasonNotWritten || conflicts > len(mergeAgain) {
			return i.comment(ctx, pull.Item, "not_merged/"+pull.HeadCommit, whyNotMerged(pull.HeadCommit, stored))
		}
		var tried outbox.MergePull
		if err := json.Unmarshal(stored.Payload, &tried); err != nil {
			return task.Wrap(task.Internal, err, "an attempt to merge cannot be read")
		}
		again := tried.Until.Add(mergeAgain[min(attempt, len(mergeAgain)-1)] - mergeWithin)
		if again.After(now) {
			i.lookAt(pull.Key, again)
			return nil
		}
	}
	return nil
}

// whyNotMerged is the comment about a merge that was refused. What went wrong here is in the log:
// it may name what is nobody's business on a forge, such as paths of the server.
func whyNotMerged(commit string, refused store.Action) func(task.Language) string {
	return func(in task.Language) string {
		why := notice.Notice{Commit: commit, Detail: refused.LastError}
		if refused.Reason == task.ReasonNotWritten || refused.Reason == task.ReasonAttemptsExhausted {
			why.Detail = messages.Reason(in, refused.Reason)
		}
		return why.NotMerged(in)
	}
}

// requestsIn names the reviews that request changes.
func requestsIn(reviews []forge.Review) (ids []string) {
	for _, review := range reviews {
		if review.Verdict == forge.RequestChanges {
			ids = append(ids, review.ID)
		}
	}
	return ids
}

// stateOf is what checks say together. Our own are not enough: somebody else has to have
// checked the commit. Until then they say nothing, which is pending. When there are more than
// are read, we do not know what the others say.
func stateOf(checks []forge.Check) forge.StatusState {
	if len(checks) >= forge.MaxChecks {
		return forge.StatusError
	}
	pending, others := false, false
	for _, check := range checks {
		if check.Failed() {
			return check.State
		}
		pending = pending || check.State != forge.StatusSuccess
		others = others || !outbox.OwnStatus(check.Name)
	}
	if pending || !others {
		return forge.StatusPending
	}
	return forge.StatusSuccess
}

// idle reports whether nobody works on a pull request for us, and people have not taken the
// work from us.
func (i *Intake) idle(ctx context.Context, pull forge.Item, origin task.Task) (bool, error) {
	last, _, err := store.Optional(i.options.Tasks.TaskOf(ctx, pull.Key, task.Development))
	if err != nil {
		return false, err
	}
	review, _, err := store.Optional(i.options.Tasks.TaskOf(ctx, pull.Key, task.Review))
	if err != nil || last.State.Active() || review.State.Active() || origin.State.Active() {
		return false, err
	}
	over, err := i.handedOver(ctx, last, origin)
	return err == nil && !over, err
}

// approval returns the last approval of the head of a pull request by somebody who may write
// to the repository and is neither its author nor us; none if there is no such approval, or
// if somebody who counts requests changes, or somebody who may write has asked for some in a
// comment since. Where the forge does not name the commit, one counts
// that came after we have published the head: we do not know when others have pushed theirs.
func (i *Intake) approval(ctx context.Context, pull pullView) (forge.Review, error) {
	last, err := i.lastApproval(ctx, pull)
	if err != nil || last.ID == "" {
		return forge.Review{}, err
	}
	approved := last.At.UTC().Format(time.RFC3339)
	open, err := i.requests(ctx, pull, func(r request) bool { return r.occasion() <= approved }) // comments: those since
	if err != nil || slices.ContainsFunc(open, func(r request) bool { return r.formal || r.writes || r.unclear }) {
		return forge.Review{}, err
	}
	return last, nil
}

// lastApproval is approval, whatever others ask for.
func (i *Intake) lastApproval(ctx context.Context, pull pullView) (last forge.Review, err error) {
	reviews, err := pull.reviews()
	if err != nil {
		return forge.Review{}, err
	}
	self, err := i.options.Forges[pull.Key.Forge].Self(ctx)
	if err != nil {
		return forge.Review{}, err
	}
	published, ours, err := store.Optional(i.options.Facts.Action(ctx, outbox.VerificationKey(pull.Key.Repo(), pull.HeadCommit)))
	if err != nil {
		return forge.Review{}, err
	}
	ours = ours && published.Item == pull.Key
	for _, review := range reviews {
		ofHead := review.Commit == pull.HeadCommit || review.Commit == "" && ours && review.At.After(published.DueAt)
		if !approves(review, pull.Item, self) || !ofHead || review.At.Before(last.At) {
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
	return last, nil
}

// approves reports whether a review is an approval by a person who is neither the author of the
// pull request nor us.
func approves(review forge.Review, pull forge.Item, self string) bool {
	return review.Verdict == forge.Approve && !review.Dismissed && !task.SameLogin(review.Author, self) && !task.SameLogin(review.Author, pull.Author) && !forge.Automated(review.Author)
}
