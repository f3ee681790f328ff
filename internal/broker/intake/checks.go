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
	// moreChecksUntil is how long after a commit was published further checks may appear.
	moreChecksUntil = 30 * time.Minute
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
	settled  string    // the base with which all was done that follows from this reading
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
	last      task.Task     // on the pull request
	age       time.Duration // since it was published
	state     checkState
	outcome
}

// outcome is what checks say together. Our own are left out.
type outcome struct {
	failed  []forge.Check
	pending int
	passed  int
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
		return i.outdated(ctx, last, about)
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
	if published.At.IsZero() {
		published.At = action.DueAt // an older version has published it
	}
	on := head{pull: pull, published: published, last: last, age: i.options.Now().Sub(published.At)}
	if on.state, err = i.readChecks(ctx, on); err != nil {
		i.options.Log.WarnContext(ctx, "failed to read the checks of a commit", "item", pull.Key.String(), "commit", pull.HeadCommit, "error", err)
		return nil
	}
	on.outcome = outcomeOf(on.state.checks)
	return i.actOn(ctx, on)
}

// outdated withdraws a fix-up that nobody has begun if it is for an older head. What we go by
// may be older than the task: so the head is read again.
func (i *Intake) outdated(ctx context.Context, last task.Task, about assignment.ChecksOccasion) error {
	pull, err := i.read(ctx, last.Key, 0)
	if err != nil || pull.State != forge.Open {
		return err
	}
	if about.Commit == pull.HeadCommit {
		i.queue.Add(last.Key)
		return nil
	}
	i.lookAt(last.Key, i.options.Now().Add(busyAgain)) // the other head has checks too
	return i.withdraw(ctx, last, task.ReasonChecksPassed)
}

func outcomeOf(checks []forge.Check) (all outcome) {
	for _, check := range checks {
		switch {
		case outbox.OwnStatus(check.Name):
		case check.Failed():
			all.failed = append(all.failed, check)
		case check.State == forge.StatusPending:
			all.pending++
		default:
			all.passed++
		}
	}
	return all
}

// hidden logs that we may not read checks of a repository, once. Other errors are returned.
func (i *Intake) hidden(ctx context.Context, in task.Repository, err error) error {
	if task.CodeOf(err) != task.Forbidden {
		return err
	}
	i.mu.Lock()
	known := i.noChecks[in]
	i.noChecks[in] = true
	i.mu.Unlock()
	if !known {
		i.options.Log.WarnContext(ctx, "checks of a repository may not be read; those that are hidden are not watched", "repository", in.String(), "error", err)
	}
	return nil
}

// checksOf reads the checks of a commit. It is no error if the forge does not show them, or
// not yet.
func (i *Intake) checksOf(ctx context.Context, in task.Repository, commit string) ([]forge.Check, error) {
	checks, err := i.options.Forges[in.Forge].Checks(ctx, in.Name, commit)
	if code := task.CodeOf(err); code == task.NotFound || code == task.Invalid || code == task.Unsupported {
		return nil, nil
	}
	return checks, i.hidden(ctx, in, err)
}

// readChecks returns what is known of the checks of the head, and reads them if they may
// have changed: the head is new to us, a webhook has named it, or they had not ended and some
// time has passed.
func (i *Intake) readChecks(ctx context.Context, on head) (checkState, error) {
	now, pull := i.options.Now(), on.pull
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
	checks, err := i.checksOf(ctx, pull.Key.Repo(), pull.HeadCommit)
	are := outcomeOf(checks)
	state.readAt, state.checks, state.settled = now, checks, ""
	state.next = i.nextReading(on.age, are.pending > 0 || on.actedOn() && on.last.State == task.Queued)
	if pull.Key.Forge == task.Board && !state.next.IsZero() {
		state.next = now // it is at hand
	}
	switch {
	case len(are.failed) == 0:
		state.failedAt = time.Time{}
	case state.failedAt.IsZero():
		state.failedAt = now
	}
	if err != nil {
		state.readAt, state.next = time.Time{}, now.Add(soonestChecks)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	meanwhile := i.checkStates[pull.Key]
	if meanwhile.commit != state.commit {
		return state, err // there is another head, or it was closed
	}
	if meanwhile.readAt.After(now) {
		return meanwhile, nil // a reading that began later was quicker
	}
	state.told = meanwhile.told
	i.checkStates[pull.Key] = state
	return state, err
}

// nextReading is when checks are read again that webhooks do not tell of. The longer it takes,
// the less often they are asked for, and those that never end not for ever. Soon after a head
// was published, more checks may appear when the first have ended.
func (i *Intake) nextReading(age time.Duration, open bool) time.Time {
	if !open && age > moreChecksUntil || age > i.options.Rules.CheckGiveUp {
		return time.Time{}
	}
	return i.options.Now().Add(min(max(age/4, soonestChecks), latestChecks))
}

// update changes what is known of the checks of a head, unless they were read again since.
func (i *Intake) update(on head, change func(*checkState)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if state := i.checkStates[on.pull.Key]; state.commit == on.state.commit && state.readAt.Equal(on.state.readAt) {
		change(&state)
		i.checkStates[on.pull.Key] = state
	}
}

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
	return is && about.Commit == h.pull.HeadCommit && (h.last.State != task.Stopped || h.last.Reason != task.ReasonItemClosed)
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
	otherwise := origin.Role
	if otherwise == "" {
		otherwise = i.options.Rules.DefaultRole
	}
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
// work to us. Those that nobody began do not count, and reviews, which may be our own, do not
// begin anew.
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
		case change.Trigger == task.Assigned && change.Reason == task.ReasonAssigned:
			rounds, current = 0, false
		case change.Trigger == task.Claimed:
			current = false
		case change.To == task.Stopped && (current || change.Reason == task.ReasonChecksPassed):
			rounds, current = rounds-1, false
		}
	}
	return rounds, nil
}
