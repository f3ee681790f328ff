package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// OnCheckFailure says what follows when checks of a commit of ours fail.
type OnCheckFailure string

// What may follow. The zero value is nothing.
const (
	FixChecks    OnCheckFailure = "fix"
	ReportChecks OnCheckFailure = "report"
	IgnoreChecks OnCheckFailure = "off"
)

// Facts is what was done before, as the database has it.
type Facts interface {
	// Action returns a write by its idempotency key.
	Action(ctx context.Context, idempotencyKey string) (store.Action, error)
	// EventsOf returns entries of a task's journal.
	EventsOf(ctx context.Context, id task.ID, kinds ...task.EventKind) ([]task.Event, error)
}

const (
	// stuckAfter is how long a failed check waits for others that do not end.
	stuckAfter = 10 * time.Minute
	// noChecksAfter is how long a commit without any check is asked about.
	noChecksAfter = 30 * time.Minute
	// checksAgain is how soon after a reading the checks are read again because a webhook
	// tells of them: a workflow with many jobs sends many.
	checksAgain = time.Second
	// soonestChecks and latestChecks bound how long it takes until checks that have not ended
	// are read again without a webhook.
	soonestChecks = 15 * time.Second
	latestChecks  = 10 * time.Minute
	// maxChecked is how many commits wait that webhooks have named.
	maxChecked = 1000
	// busyAgain is when failed checks are looked at again while a task is at work.
	busyAgain = time.Minute
)

// checkState is what is known of the checks of a pull request. It is lost when the process
// ends, which costs a reading.
type checkState struct {
	commit   string
	readAt   time.Time // zero means never
	checks   []forge.Check
	next     time.Time // when they are read again; zero means when a webhook names the commit
	told     bool      // a webhook has named the commit since
	failedAt time.Time // when the first failure was seen
}

// checkedCommit is a commit that a webhook has named.
type checkedCommit struct {
	in     task.Repository
	commit string
}

// followChecks looks at the pull requests whose commits webhooks name. Most commits of a
// repository are not ours: one look into the database tells.
func (i *Intake) followChecks(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case named := <-i.checked:
			if err := i.checksChanged(ctx, named.in, named.commit); err != nil && ctx.Err() == nil {
				i.options.Log.WarnContext(ctx, "failed to find the pull request of a commit whose checks have changed",
					"repository", named.in.String(), "commit", named.commit, "error", err)
			}
		}
	}
}

// checksChanged has the checks of a commit read again, if it is one of ours.
func (i *Intake) checksChanged(ctx context.Context, in task.Repository, commit string) error {
	if i.watchesNoChecks() {
		return nil
	}
	action, found, err := store.Optional(i.options.Facts.Action(ctx, outbox.VerificationKey(in, commit)))
	if err != nil || !found {
		return err
	}
	i.mu.Lock()
	state := i.checkStates[action.Item]
	if state.commit != commit {
		i.mu.Unlock()
		i.queue.Add(action.Item) // the checks of a head that is new to us are read in any case
		return nil
	}
	state.told = true
	i.checkStates[action.Item] = state
	i.mu.Unlock()
	if wait := state.readAt.Add(checksAgain); wait.After(i.options.Now()) {
		i.lookAt(action.Item, wait)
	} else {
		i.queue.Add(action.Item)
	}
	return nil
}

func (i *Intake) watchesNoChecks() bool {
	return i.options.Rules.OnCheckFailure == "" || i.options.Rules.OnCheckFailure == IgnoreChecks
}

// dueChecks lists the pull requests of a repository whose checks are to be read again.
func (i *Intake) dueChecks(in task.Repository) []task.Key {
	now := i.options.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	var due []task.Key
	for key, state := range i.checkStates {
		if key.Repo() == in && !state.next.IsZero() && !state.next.After(now) {
			due = append(due, key)
		}
	}
	return due
}

// forgetChecks forgets what is known of the checks of a pull request.
func (i *Intake) forgetChecks(key task.Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.checkStates, key)
}

// head is the head of a pull request that we have published, with what is known about it.
type head struct {
	pull      forge.Item
	published outbox.PublishedCommit
	last      task.Task // on the pull request
	failed    []forge.Check
	pending   int
	failedAt  time.Time // when the first failure was seen
}

// checks does what follows from the checks of a pull request whose head we have published.
// Those of commits of others are for them.
func (i *Intake) checks(ctx context.Context, pull forge.Item) error {
	if i.watchesNoChecks() || pull.Fork || pull.HeadCommit == "" {
		return nil
	}
	last, _, err := store.Optional(i.options.Tasks.TaskOf(ctx, pull.Key, task.Development))
	if err != nil {
		return err
	}
	if about, is := assignment.ChecksOccasionOf(last); is && last.State == task.Queued && about.Commit != pull.HeadCommit {
		if err := i.withdraw(ctx, last, task.ReasonChecksPassed); err != nil {
			return err
		}
		last.State = task.Stopped
	}
	action, ours, err := store.Optional(i.options.Facts.Action(ctx, outbox.VerificationKey(pull.Key.Repo(), pull.HeadCommit)))
	if err != nil || !ours || action.Item != pull.Key {
		i.forgetChecks(pull.Key)
		return err
	}
	published, err := outbox.Verification(action)
	if err != nil {
		return err
	}
	state, err := i.readChecks(ctx, pull, i.options.Now().Sub(action.DueAt))
	if err != nil {
		return fmt.Errorf("read the checks of %s: %w", pull.HeadCommit, err)
	}
	failed, pending := outcome(state.checks)
	return i.actOn(ctx, head{pull: pull, published: published, last: last, failed: failed, pending: pending, failedAt: state.failedAt})
}

// outcome returns the checks that have failed, and counts those that have not ended. Our own
// are left out.
func outcome(checks []forge.Check) (failed []forge.Check, pending int) {
	for _, check := range checks {
		switch {
		case outbox.OwnStatus(check.Name):
		case check.Failed():
			failed = append(failed, check)
		case check.State == forge.StatusPending:
			pending++
		}
	}
	return failed, pending
}

// readChecks returns what is known of the checks of the head, and reads them if they may
// have changed: the head is new to us, a webhook has named it, or they had not ended and some
// time has passed. Age is how long ago the head was published.
func (i *Intake) readChecks(ctx context.Context, pull forge.Item, age time.Duration) (checkState, error) {
	now := i.options.Now()
	i.mu.Lock()
	state := i.checkStates[pull.Key]
	if state.commit != pull.HeadCommit {
		state = checkState{commit: pull.HeadCommit}
	}
	if known := !state.readAt.IsZero() && !state.told && (state.next.IsZero() || state.next.After(now)); known {
		i.mu.Unlock()
		return state, nil
	}
	state.told = false
	i.checkStates[pull.Key] = state
	i.mu.Unlock()
	checks, err := i.options.Forges[pull.Key.Forge].Checks(ctx, pull.Key.Repository, pull.HeadCommit)
	if code := task.CodeOf(err); code == task.NotFound || code == task.Invalid || code == task.Unsupported {
		checks, err = nil, nil // the forge does not show them, or not yet
	}
	state.readAt, state.checks, state.next = now, checks, i.nextReading(checks, age, now)
	if pull.Key.Forge == task.Board && !state.next.IsZero() {
		state.next = now // it is at hand
	}
	failed, _ := outcome(checks)
	switch {
	case len(failed) == 0:
		state.failedAt = time.Time{}
	case state.failedAt.IsZero():
		state.failedAt = now
	}
	if err != nil {
		state.readAt, state.next = time.Time{}, now.Add(soonestChecks)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	state.told = i.checkStates[pull.Key].told // meanwhile
	i.checkStates[pull.Key] = state
	return state, err
}

// nextReading is when checks are read again that webhooks do not tell of. The longer it takes,
// the less often they are asked for, and those that never end not for ever.
func (i *Intake) nextReading(checks []forge.Check, age time.Duration, now time.Time) time.Time {
	own := 0
	for _, check := range checks {
		if outbox.OwnStatus(check.Name) {
			own++
		}
	}
	_, pending := outcome(checks)
	none := len(checks) == own
	if pending == 0 && !none || none && age > noChecksAfter || age > i.options.Rules.CheckGiveUp {
		return time.Time{}
	}
	return now.Add(min(max(age/4, soonestChecks), latestChecks))
}

// actOn does what follows from the checks of a head of ours.
func (i *Intake) actOn(ctx context.Context, on head) error {
	now := i.options.Now()
	if on.actedOn() {
		return i.passedAgain(ctx, on)
	}
	if len(on.failed) == 0 || on.pull.Draft && !on.published.Draft {
		return nil
	}
	if wait := on.failedAt.Add(stuckAfter); on.pending > 0 && wait.After(now) {
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
	again, err := i.read(ctx, on.pull.Key, 0) // what we go by may be minutes old
	if err != nil {
		return err
	}
	if again.State != forge.Open || again.HeadCommit != on.pull.HeadCommit || again.Base != on.pull.Base || again.Draft != on.pull.Draft {
		i.queue.Add(again.Key)
		return nil
	}
	return i.checksFailed(ctx, on, origin)
}

// actedOn reports whether the failed checks of the head led to a task. One that was withdrawn
// because the pull request was closed does not count.
func (h head) actedOn() bool {
	about, is := assignment.ChecksOccasionOf(h.last)
	return is && about.Commit == h.pull.HeadCommit && (h.last.State != task.Stopped || h.last.Reason != task.ReasonItemClosed)
}

// passedAgain is about a head whose checks failed before, which led to a task. When they all
// pass now, without a change, people are told; a task that nobody has begun is withdrawn.
// Nothing else follows, also when they fail again.
func (i *Intake) passedAgain(ctx context.Context, on head) error {
	if len(on.failed) > 0 || on.pending > 0 {
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
func (i *Intake) checksFailed(ctx context.Context, on head, origin task.Task) error {
	inBase, err := i.failedInBase(ctx, on)
	if err != nil {
		return err
	}
	fresh := slices.DeleteFunc(slices.Clone(on.failed), func(c forge.Check) bool { return inBase[c.Name] })
	commit := on.pull.HeadCommit
	said := notice.Notice{Commit: commit, Checks: noticed(fresh)}
	if len(fresh) == 0 {
		said.Checks = noticed(on.failed)
		return i.comment(ctx, on.pull, "checks_base/"+commit, said.ChecksFailInBase)
	}
	if i.options.Rules.OnCheckFailure == ReportChecks {
		return i.comment(ctx, on.pull, "checks_failed/"+commit, said.ChecksFailed)
	}
	if said.Attempts, err = i.checkRounds(ctx, on.last); err != nil {
		return err
	}
	if said.Attempts >= i.options.Rules.CheckRounds {
		return i.comment(ctx, on.pull, "checks_undecided/"+commit, said.ChecksUndecided)
	}
	about := assignment.ChecksOccasion{At: i.options.Now(), Commit: commit}
	for _, check := range fresh {
		about.Names = append(about.Names, check.Name)
	}
	otherwise := origin.Role
	if otherwise == "" {
		otherwise = i.options.Rules.DefaultRole
	}
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
		checks, err = i.options.Forges[on.pull.Key.Forge].Checks(ctx, on.pull.Key.Repository, commits[try])
		if err != nil && task.CodeOf(err) != task.NotFound && task.CodeOf(err) != task.Invalid {
			return nil, fmt.Errorf("read the checks of the base: %w", err)
		}
		if len(checks) > 0 {
			break
		}
	}
	failed, _ := outcome(checks)
	names := map[string]bool{}
	for _, check := range failed {
		names[check.Name] = true
	}
	return names, nil
}

// checkRounds is how many tasks failed checks have led to in a row, without somebody asking
// for something else in between. Those that nobody began do not count.
func (i *Intake) checkRounds(ctx context.Context, last task.Task) (int, error) {
	if last.ID == "" {
		return 0, nil
	}
	events, err := i.options.Facts.EventsOf(ctx, last.ID, task.StateChanged)
	if err != nil {
		return 0, err
	}
	rounds, current := 0, false
	for _, event := range events {
		var change task.StateChange
		if err := json.Unmarshal(event.Data, &change); err != nil {
			return 0, task.Wrap(task.Internal, err, "the journal of task "+string(last.ID)+" cannot be read")
		}
		switch {
		case change.Trigger == task.Assigned && change.Reason == task.ReasonChecksFailed:
			rounds, current = rounds+1, true
		case change.Trigger == task.Assigned:
			rounds, current = 0, false
		case change.Trigger == task.Claimed:
			current = false
		case change.To == task.Stopped && (current || change.Reason == task.ReasonChecksPassed):
			rounds, current = rounds-1, false
		}
	}
	return rounds, nil
}
