package intake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// A pull request of ours that no longer merges, because its base has changed, leads to a task
// that merges the base into the branch. That a branch is behind its base is no reason for
// anything. Whether it merges is decided by git in a copy of the repository, for the commits
// that both have: when we look at the pull request, when something was pushed to the
// repository or another pull request was merged there, and with each sync.

// Merge is what merging the head of a pull request into its base comes to.
type Merge struct {
	Base, Head string // the commits
	Conflicts  bool
	Own        bool // the head was made by us; it is known where there are conflicts
}

// MergesFunc tells whether a commit, which is the head of a branch, merges into another
// branch. NotFound means that one of them is not there, and Conflict that the branch has
// another commit by now.
type MergesFunc func(ctx context.Context, in task.Repository, base, branch, head string) (Merge, error)

// mergesAge is how long it is taken for true that a pull request merges, unless we hear of a
// push. The mirror of the board costs nothing to ask.
const mergesAge = time.Minute

// tried is an open pull request of ours, and what merging it came to.
type tried struct {
	base, branch, head string
	merge              Merge
	at                 time.Time
	pushes             int // how often something was pushed since it is known
}

func (t tried) same(other tried) bool {
	return t.base == other.base && t.branch == other.branch && t.head == other.head
}

// merges tries whether a pull request of ours merges, unless that is known, and returns it with
// what it came to. What cannot be tried is no conflict: a branch was deleted, or somebody has
// just pushed.
func (i *Intake) merges(ctx context.Context, key task.Key, is tried) (tried, error) {
	i.mu.Lock()
	known, found := i.tried[key]
	i.mu.Unlock()
	if found && known.same(is) && key.Forge != task.Board && i.options.Now().Sub(known.at) < mergesAge {
		return known, nil
	}
	merge, err := i.options.Merges(ctx, key.Repo(), is.base, is.branch, is.head)
	if code := task.CodeOf(err); code == task.NotFound || code == task.Conflict {
		i.options.Log.DebugContext(ctx, "whether a pull request merges is not known", "item", key.String(), "error", err)
		merge, err = Merge{}, nil
	}
	if err != nil {
		return is, fmt.Errorf("find out whether it merges: %w", err)
	}
	is.merge, is.at = merge, i.options.Now()
	return is, nil
}

// pushed has the pull requests of a repository tried again.
func (i *Intake) pushed(in task.Repository) {
	i.bases.Add(i.triedIn(in, true)...)
}

// triedIn lists our open pull requests of a repository. Anew means that what they came to is
// not true any more.
func (i *Intake) triedIn(in task.Repository, anew bool) (keys []task.Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for key, is := range i.tried {
		if key.Repo() != in {
			continue
		}
		if anew {
			is.at = time.Time{}
			is.pushes++
			i.tried[key] = is
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b task.Key) int { return int(a.Number - b.Number) })
	return keys
}

// tryOn tries the pull requests of the queue until the context ends.
func (i *Intake) tryOn(ctx context.Context) {
	for key, found := i.bases.Next(ctx); found; key, found = i.bases.Next(ctx) {
		conflicts, err := i.conflicts(ctx, key)
		if err != nil && ctx.Err() == nil {
			i.options.Log.WarnContext(ctx, "failed to find out whether a pull request merges; retrying with the next sync", "item", key.String(), "error", err)
		}
		if conflicts {
			i.queue.Add(key)
		}
	}
}

// conflicts reports whether a pull request that was tried before has conflicts now, or had
// some then. It asks nothing of the forge's API.
func (i *Intake) conflicts(ctx context.Context, key task.Key) (bool, error) {
	i.mu.Lock()
	is, found := i.tried[key]
	i.mu.Unlock()
	if !found {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	now, err := i.merges(ctx, key, is)
	if err != nil {
		return false, err
	}
	i.keepTried(key, is, now)
	return now.merge.Conflicts || is.merge.Conflicts, nil
}

// keepTried keeps what trying a pull request came to, unless it was closed meanwhile, has another
// head, or something was pushed: then it is tried again.
func (i *Intake) keepTried(key task.Key, was, now tried) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if last, found := i.tried[key]; found && last.same(was) && last.pushes == was.pushes {
		i.tried[key] = now
	}
}

// syncBases looks at the pull requests of a repository that no longer merge, or that merge
// again.
func (i *Intake) syncBases(ctx context.Context, in task.Repository) (failed error) {
	for _, key := range i.triedIn(in, false) {
		conflicts, err := i.conflicts(ctx, key)
		if err == nil && conflicts {
			if err = i.Look(ctx, key, i.age(key)); err != nil {
				i.lookAgainAt(key)
			}
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", key, err))
		}
	}
	return failed
}

// forget forgets a pull request that is closed, or that is not ours.
func (i *Intake) forget(key task.Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.tried, key)
	delete(i.looked, key)
}

// mergeBase makes a task of a pull request of ours that no longer merges: once for each pair
// of commits, and not while other work on it goes on.
func (i *Intake) mergeBase(ctx context.Context, pull forge.Item) error {
	if i.options.Merges == nil || !hasBranches(pull) {
		return nil
	}
	origin, ours, err := i.origin(ctx, pull)
	if err != nil {
		return err
	}
	if others, err := i.ofOthers(ctx, pull, ours); err != nil || others {
		return err
	}
	is := tried{base: pull.Base, branch: pull.Head, head: pull.HeadCommit}
	i.mu.Lock()
	if last, found := i.tried[pull.Key]; found && last.same(is) {
		is = last
	}
	i.tried[pull.Key] = is
	i.mu.Unlock()
	now, err := i.merges(ctx, pull.Key, is)
	if err != nil {
		return err
	}
	i.keepTried(pull.Key, is, now)
	merge := now.merge
	if !merge.Conflicts {
		return nil
	}
	last, _, err := store.Optional(i.options.Tasks.TaskOf(ctx, pull.Key, task.Development))
	if err != nil || last.State.Active() || origin.State.Active() {
		return err
	}
	if over, err := i.handedOver(ctx, last, origin); err != nil || over {
		return err
	}
	return i.assignMerge(ctx, pull, last, merge, cmp.Or(origin.Role, i.options.Rules.DefaultRole))
}

// hasBranches reports whether it is known which branches of the repository a pull request is
// between.
func hasBranches(pull forge.Item) bool {
	return !pull.Fork && pull.Base != "" && pull.Head != "" && pull.HeadCommit != ""
}

// ofOthers reports whether a pull request is the work of others, or was made a draft by them.
// Ours says that its branch is ours.
func (i *Intake) ofOthers(ctx context.Context, pull forge.Item, ours bool) (bool, error) {
	self, err := i.options.Forges[pull.Key.Forge].Self(ctx)
	if err != nil || task.SameLogin(pull.Author, self) || ours && !pull.Draft {
		return false, err
	}
	i.forget(pull.Key)
	return true, nil
}

// assignMerge makes the task that merges the base, unless there was one for these commits, or
// there were too many in a row. Last is the last task of the pull request.
func (i *Intake) assignMerge(ctx context.Context, pull forge.Item, last task.Task, merge Merge, otherwise task.Role) error {
	next, most := conflictOf(last).next(merge), i.options.Rules.ReviewRounds
	if next.round == 0 || most == 0 {
		return nil
	}
	merged, err := i.baseMerges(ctx, last)
	if err != nil {
		return err
	}
	if merged >= mostResets*most {
		return i.comment(ctx, pull, "unmergeable", notice.Notice{Attempts: merged, Branch: pull.Base}.Unmergeable)
	}
	if next.round > 1 {
		decided, err := i.decidedSince(ctx, pull, last.AssignedAt)
		if err != nil {
			return err
		}
		if decided {
			next.round = 1
		}
	}
	if next.round > most {
		return i.comment(ctx, pull, "unmergeable/"+pull.HeadCommit, notice.Notice{Attempts: next.round - 1, Branch: pull.Base}.Unmergeable)
	}
	return i.assignFixUp(ctx, pull, otherwise, task.ReasonBaseConflict, i.occasionAfter(last, next.String()))
}

// mostResets times the rounds that are allowed in a row is how often the base of one pull
// request is merged in all, whoever lets the rounds begin anew.
const mostResets = 3

// baseMerges is how many tasks have merged the base of a pull request, in all.
func (i *Intake) baseMerges(ctx context.Context, last task.Task) (count int, err error) {
	changes, err := i.changesOf(ctx, last)
	for _, change := range changes {
		if change.Trigger == task.Assigned && change.Reason == task.ReasonBaseConflict {
			count++
		}
	}
	return count, err
}

// stateChange is a change of a task's state, and when it was.
type stateChange struct {
	task.StateChange
	at time.Time
}

// changesOf reads how the state of a task has changed, oldest first, without the fix-ups that
// were stopped before anybody began them, such as by closing the pull request. It may be no task.
func (i *Intake) changesOf(ctx context.Context, of task.Task) ([]stateChange, error) {
	if of.ID == "" {
		return nil, nil
	}
	events, err := i.options.Facts.EventsOf(ctx, of.ID, task.StateChanged)
	if err != nil {
		return nil, err
	}
	changes := make([]stateChange, len(events))
	for at, event := range events {
		if err := json.Unmarshal(event.Data, &changes[at].StateChange); err != nil {
			return nil, task.Wrap(task.Internal, err, "the journal of task "+string(of.ID)+" cannot be read")
		}
		changes[at].at = event.At
	}
	return begun(changes), nil
}

// begun leaves out the fix-ups that were stopped before an agent had them. That people have
// assigned the work stays, whatever came of it.
func begun(changes []stateChange) []stateChange {
	kept, queued := make([]stateChange, 0, len(changes)), -1
	for _, change := range changes {
		switch {
		case change.Trigger == task.Assigned && change.Reason != task.ReasonAssigned:
			queued = len(kept)
		case change.Trigger == task.Assigned, change.Trigger == task.Claimed:
			queued = -1
		case change.To == task.Stopped && queued >= 0:
			kept, queued = kept[:queued], -1
			continue
		}
		kept = append(kept, change)
	}
	return kept
}

// conflict is what a task is for that merges the base of a pull request. After is what the
// task before was for, so that reviews which were dealt with are not taken for newer ones:
// they are compared as texts.
//
// For example "2026-11-16T09:30:00Z review 5 base 1f3870be head 9c56cc51 round 2": the second
// time in a row.
type conflict struct {
	after      string
	base, head string
	round      int
	undone     bool // the pull request was closed before it was done
}

func (c conflict) String() string {
	return fmt.Sprintf("%s base %s head %s round %d", c.after, c.base, c.head, c.round)
}

// conflictOf reads what the last task of a pull request was for. If it was for something
// else, rounds begin anew.
func conflictOf(last task.Task) conflict {
	after, rest, is := strings.Cut(last.Occasion, " base ")
	read := conflict{after: after}
	if is && last.Cause == task.ReasonBaseConflict {
		_, _ = fmt.Sscanf(rest, "%s head %s round %d", &read.base, &read.head, &read.round)
		read.undone = closedUnder(last)
	}
	return read
}

// next is what the next task is for. Its round is 0 if there was a task for these commits that
// was not ended by closing the pull request. A person who has pushed since lets us begin anew.
func (c conflict) next(merge Merge) conflict {
	next := conflict{after: c.after, base: merge.Base, head: merge.Head, round: c.round + 1}
	switch {
	case c.base == merge.Base && c.head == merge.Head && c.undone:
		next.round = c.round
	case c.base == merge.Base && c.head == merge.Head:
		next.round = 0
	case c.head != merge.Head && !merge.Own:
		next.round = 1
	}
	return next
}

// decidedSince reports whether somebody who may write has decided about the pull request
// since, and is not us or another program. As with rounds of reviews, the first decision of each
// person counts.
func (i *Intake) decidedSince(ctx context.Context, pull forge.Item, since time.Time) (bool, error) {
	from := i.options.Forges[pull.Key.Forge]
	self, err := from.Self(ctx)
	if err != nil {
		return false, err
	}
	reviews, err := i.options.Verdicts.Of(ctx, from, pull.Key)
	if err != nil {
		return false, err
	}
	before := map[string]bool{}
	for _, review := range slices.SortedStableFunc(slices.Values(reviews), func(a, b forge.Review) int { return a.At.Compare(b.At) }) {
		author := task.FoldLogin(review.Author)
		if review.Verdict == forge.Remark || task.SameLogin(review.Author, self) || forge.Automated(review.Author) || before[author] {
			continue
		}
		before[author] = true
		if !review.At.After(since) {
			continue
		}
		standing, err := i.options.Steering.Of(ctx, pull, review.Author, nil)
		if err != nil || standing.Writes {
			return err == nil, err
		}
	}
	return false, nil
}
