package intake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/forge"
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

// LookAtChecks looks at the pull requests on a forge whose checks are to be read again. It
// goes on when one cannot be read, and returns all that went wrong.
func (i *Intake) LookAtChecks(ctx context.Context, of task.Forge) (failed error) {
	for _, key := range i.dueChecks(func(in task.Repository) bool { return in.Forge == of }) {
		if err := i.Look(ctx, key, i.age(key)); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", key, err))
		}
	}
	return failed
}

// dueChecks lists the pull requests whose checks are to be read again.
func (i *Intake) dueChecks(in func(task.Repository) bool) []task.Key {
	now := i.options.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	var due []task.Key
	for key, state := range i.checkStates {
		if in(key.Repo()) && !state.next.IsZero() && !state.next.After(now) {
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

// forgetOutOfScope makes room: nobody tells of the end of pull requests in repositories that
// are not worked on any more. If all are worked on, all are read once more. The mutex is held.
func (i *Intake) forgetOutOfScope() {
	maps.DeleteFunc(i.checkStates, func(key task.Key, _ checkState) bool { return !i.options.Scope(key.Forge, key.Repository) })
	if len(i.checkStates) >= mostRemembered {
		clear(i.checkStates)
	}
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

// remember keeps what is known of the checks of a pull request.
func (i *Intake) remember(pull task.Key, state checkState) {
	if len(i.checkStates) >= mostRemembered {
		i.forgetOutOfScope()
	}
	i.checkStates[pull] = state
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
	i.remember(pull.Key, state)
	i.mu.Unlock()
	checks, err := i.checksOf(ctx, pull.Key.Repo(), pull.HeadCommit)
	are := outcomeOf(checks)
	state.readAt, state.checks, state.settled = now, checks, ""
	state.next = i.nextReading(on.age, are.pending > 0 || on.actedOn() && on.last.State == task.Queued)
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
