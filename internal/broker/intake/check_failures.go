package intake

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// actOn does what follows from the checks of a head of ours.
func (i *Intake) actOn(ctx context.Context, on head) error {
	now := i.options.Now()
	if on.actedOn() {
		return i.passedAgain(ctx, on)
	}
	if len(on.failed) == 0 || on.settled() {
		return nil
	}
	if wait := on.state.failedAt.Add(stuckAfter); on.pending > 0 && wait.After(now) {
		i.lookAt(on.pull.Key, wait)
		return nil
	}
	origin, _, err := i.origin(ctx, on.pull)
	if err != nil {
		return err
	}
	if on.last.State.Active() || origin.State.Active() {
		i.lookAt(on.pull.Key, now.Add(busyAgain))
		return nil
	}
	if over, err := i.handedOver(ctx, on.last, origin); err != nil || over {
		return err
	}
	if changed, err := i.changed(ctx, on.pull); err != nil || changed {
		return err
	}
	inBase, err := i.failedInBase(ctx, on)
	if err != nil {
		i.options.Log.WarnContext(ctx, "failed to read the checks of the base", "item", on.pull.Key.String(), "error", err)
		i.lookAt(on.pull.Key, now.Add(busyAgain))
		return nil
	}
	return i.checksFailed(ctx, on, origin, inBase)
}

// settled reports whether nothing follows from failed checks: people have made a draft of the
// pull request, or all was done.
func (h head) settled() bool {
	return h.pull.Draft && !h.published.Draft || h.state.settled != "" && h.state.settled == h.pull.Base
}

// changed reports whether a pull request is not as we go by, which may be minutes old. It is
// looked at again then.
func (i *Intake) changed(ctx context.Context, pull forge.Item) (bool, error) {
	again, err := i.read(ctx, pull.Key, 0)
	if err != nil {
		return false, err
	}
	changed := again.State != forge.Open || again.HeadCommit != pull.HeadCommit || again.Base != pull.Base || again.Draft != pull.Draft
	if changed {
		i.queue.Add(pull.Key)
	}
	return changed, nil
}

// actedOn reports whether the failed checks of the head led to a task. One that was withdrawn
// because the pull request was closed does not count.
func (h head) actedOn() bool {
	about, is := assignment.ChecksOccasionOf(h.last)
	return is && about.Commit == h.pull.HeadCommit && !closedUnder(h.last)
}

// passedAgain is about a head whose checks failed before, which led to a task. When they all
// pass now, without a change, people are told; a task that nobody has begun is withdrawn, and
// one that goes on is not interrupted. Nothing else follows, also when they fail again.
func (i *Intake) passedAgain(ctx context.Context, on head) error {
	if len(on.failed) > 0 || on.pending > 0 || on.passed == 0 || on.last.State.Active() && on.last.State != task.Queued {
		return nil
	}
	if on.last.State == task.Queued {
		if err := i.withdraw(ctx, on.last, task.ReasonChecksPassed); err != nil {
			return err
		}
	}
	return i.comment(ctx, on.pull, outbox.ChecksPassed(on.pull.HeadCommit), notice.Notice{Commit: on.pull.HeadCommit}.ChecksPassed)
}

// checksFailed is about a head of which checks failed and that nobody works on.
func (i *Intake) checksFailed(ctx context.Context, on head, origin task.Task, inBase map[string]bool) (err error) {
	fresh := slices.DeleteFunc(slices.Clone(on.failed), func(c forge.Check) bool { return inBase[c.Name] })
	commit := on.pull.HeadCommit
	said := notice.Notice{Commit: commit, Checks: noticed(fresh)}
	tell := func(what string, text func(task.Language) string) error {
		err := i.comment(ctx, on.pull, what+"/"+commit, text)
		if err == nil {
			i.update(on, func(state *checkState) { state.settled = on.pull.Base })
		}
		return err
	}
	if len(fresh) == 0 {
		said.Checks = noticed(on.failed)
		return tell("checks_base", said.ChecksFailInBase)
	}
	broken := slices.ContainsFunc(fresh, func(c forge.Check) bool { return !c.Canceled })
	if i.options.Rules.OnCheckFailure == ReportChecks || !broken {
		return tell("checks_failed", said.ChecksFailed)
	}
	if said.Attempts, err = i.checkRounds(ctx, on.last); err != nil {
		return err
	}
	if said.Attempts >= i.options.Rules.CheckRounds {
		return tell("checks_undecided", said.ChecksUndecided)
	}
	about := assignment.ChecksOccasion{At: on.published.At, Commit: commit}
	for _, check := range fresh {
		about.Names = append(about.Names, check.Name)
	}
	otherwise := cmp.Or(origin.Role, i.options.Rules.DefaultRole)
	if about.String() <= on.last.Occasion { // such as that of a task that was withdrawn
		about.At = i.options.Now()
	}
	i.update(on, func(state *checkState) {
		if state.next.IsZero() { // they may pass before an agent has the task
			state.next = i.nextReading(on.age, true)
		}
	})
	return i.assignFixUp(ctx, on.pull, otherwise, task.ReasonChecksFailed, about.String())
}

func noticed(checks []forge.Check) []notice.Check {
	var all []notice.Check
	for _, check := range checks {
		all = append(all, notice.Check{Name: check.Name, URL: check.URL})
	}
	return all
}

// failedInBase returns the names of the checks that fail in the base too: at the commit that
// the work stands on or, if nothing was checked there, or the pull request is to be merged
// into another branch by now, at the newest commit of the base branch.
func (i *Intake) failedInBase(ctx context.Context, on head) (map[string]bool, error) {
	var commits []string
	if on.published.Base != "" && on.published.BaseBranch == on.pull.Base {
		commits = append(commits, on.published.Base)
	}
	var checks []forge.Check
	for try := range 2 {
		if try == len(commits) {
			newest, err := i.options.BranchCommit(ctx, on.pull.Key.Repo(), on.pull.Base)
			if err != nil {
				return nil, fmt.Errorf("find the base: %w", err)
			}
			if newest == "" {
				break
			}
			commits = append(commits, newest)
		}
		var err error
		if checks, err = i.checksOf(ctx, on.pull.Key.Repo(), commits[try]); err != nil {
			return nil, err
		}
		if len(checks) > 0 {
			break
		}
	}
	names := map[string]bool{}
	for _, check := range outcomeOf(checks).failed {
		names[check.Name] = true
	}
	return names, nil
}

// checkRounds is how many tasks failed checks have led to since a person last assigned the
// work to us. Those that checks have ended which passed do not count, and reviews, which may be
// our own, do not begin anew.
func (i *Intake) checkRounds(ctx context.Context, last task.Task) (int, error) {
	changes, err := i.changesOf(ctx, last)
	rounds := 0
	for _, change := range changes {
		switch {
		case change.Trigger == task.Assigned && change.Reason == task.ReasonChecksFailed:
			rounds++
		case change.Trigger == task.Assigned && change.Reason == task.ReasonAssigned:
			rounds = 0
		case change.To == task.Stopped && change.Reason == task.ReasonChecksPassed:
			rounds--
		}
	}
	return rounds, err
}
