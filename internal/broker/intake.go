package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Withdraw is told that a task is no longer wanted: the bot was taken off its item,
// or the item was closed. It may be told so again. A task that is running is ended
// in an orderly way, if there is one.
type Withdraw func(ctx context.Context, t task.Task, reason task.Reason) error

// IntakeOptions is what intake needs. All but Trust, Withdraw, Wrote and Log have to
// be set.
type IntakeOptions struct {
	Tasks     store.Tasks
	Notices   store.Notices
	Forges    map[task.Forge]forge.Forge
	Snapshots *Snapshots
	// Trust is told which repositories are worked on; nil means nobody is.
	Trust *WebhookTrust
	// Scope tells the repositories that are worked on from the others.
	Scope func(of task.Forge, repository string) bool
	// Bot is our login on a forge.
	Bot      func(ctx context.Context, of task.Forge) (string, error)
	Steering *Steering
	Labels   Labels
	Rules    Rules
	// TakenUp reports whether the last run of a task has taken a review up; see
	// [Talk.TakenUp]. Nil means that no run takes up reviews.
	TakenUp func(ctx context.Context, t task.Task, review forge.Review) (bool, error)
	// KeepUnassigned lets tasks go on when the bot is taken off their items.
	KeepUnassigned bool
	Withdraw       Withdraw // nil means that a task is stopped at once, whatever it does
	Now            func() time.Time
	Wrote          func() // is called when there is something in the outbox
	Log            *slog.Logger
}

const (
	// lookers is how many items are looked at in parallel.
	lookers = 4
	// longestLook bounds looking at one item.
	longestLook = 2 * time.Minute
)

// Intake finds out what there is to do. It looks at an item when a webhook or the
// board says that something happened to it, and when [Intake.Sync] finds it, and
// makes tasks of what it sees. What it does follows from what the forge says now,
// and not from what a message says that happened: looking once more changes
// nothing.
type Intake struct {
	options IntakeOptions

	mu      sync.Mutex
	hints   []task.Key // to be looked at, oldest first
	waiting map[task.Key]bool
	due     map[task.Key]time.Time // when an item is worth another look

	wake chan struct{} // has room for one
	soon chan struct{} // has room for one: a due time has come in

	background lifecycle.Group
}

// NewIntake makes an intake. It does nothing until it is started or told to.
func NewIntake(options IntakeOptions) *Intake {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Wrote == nil {
		options.Wrote = func() {}
	}
	return &Intake{
		options: options, waiting: map[task.Key]bool{}, due: map[task.Key]time.Time{},
		wake: make(chan struct{}, lookers), soon: make(chan struct{}, 1),
	}
}

// Start begins to look at what hints name. It does not end with the
// context, whose values are kept, but with Stop.
func (i *Intake) Start(ctx context.Context) {
	stop := i.options.Notices.Listen(i.heard)
	run := []func(context.Context){i.remind, func(ctx context.Context) {
		<-ctx.Done()
		stop()
	}}
	for range lookers {
		run = append(run, i.lookOn)
	}
	i.background.Start(ctx, run...)
}

// Stop ends looking and waits until it has ended.
func (i *Intake) Stop() { i.background.Stop() }

// heard takes in what happened on the board.
func (i *Intake) heard(notice store.Notice) {
	if notice.Topic != store.BoardChanged {
		return
	}
	if key, err := task.ParseKey(notice.Subject); err == nil {
		i.options.Snapshots.Changed(key)
		i.Hint(key)
	}
}

// Deliver takes in what a webhook says. It does not wait.
func (i *Intake) Deliver(delivery forge.Delivery) {
	for _, key := range delivery.Items {
		i.Hint(key)
	}
}

// Hint says that an item is worth a look. It does not wait. The caller has told
// the snapshots what has changed.
func (i *Intake) Hint(key task.Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.waiting[key] {
		return
	}
	i.waiting[key] = true
	i.hints = append(i.hints, key)
	signal(i.wake)
}

func (i *Intake) nextHint() (task.Key, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.hints) == 0 {
		return task.Key{}, false
	}
	key := i.hints[0]
	i.hints = i.hints[1:]
	delete(i.waiting, key)
	if len(i.hints) > 0 {
		signal(i.wake)
	}
	return key, true
}

// lookOn looks at what hints name until the context ends.
func (i *Intake) lookOn(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.wake:
		}
		for key, found := i.nextHint(); found && ctx.Err() == nil; key, found = i.nextHint() {
			if err := i.Look(ctx, key, longestLook); err != nil && ctx.Err() == nil {
				i.options.Log.WarnContext(ctx, "cannot look at an item; it is tried again with the next sync", "item", key.String(), "error", err)
			}
		}
	}
}

// lookAt asks for another look at an item at a given time.
func (i *Intake) lookAt(key task.Key, at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if old, found := i.due[key]; !found || at.Before(old) {
		i.due[key] = at
		signal(i.soon)
	}
}

// remind makes hints of the items whose time has come.
func (i *Intake) remind(ctx context.Context) {
	for {
		timer := time.NewTimer(i.untilDue())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-i.soon:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// untilDue hints at what is due, and returns how long it is until there is more.
func (i *Intake) untilDue() time.Duration {
	now := i.options.Now()
	next := time.Hour
	var ready []task.Key
	i.mu.Lock()
	for key, at := range i.due {
		if wait := at.Sub(now); wait > 0 {
			next = min(next, wait)
			continue
		}
		ready = append(ready, key)
		delete(i.due, key)
	}
	i.mu.Unlock()
	for _, key := range ready {
		i.Hint(key)
	}
	return next
}

// Look looks at an item, as it was no longer than maxAge ago, and does what it asks
// for. An item that cannot be read changes nothing.
func (i *Intake) Look(ctx context.Context, key task.Key, maxAge time.Duration) error {
	if _, configured := i.options.Forges[key.Forge]; !configured || !i.options.Scope(key.Forge, key.Repository) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	bot, err := i.options.Bot(ctx, key.Forge)
	if err != nil {
		return fmt.Errorf("read who we are: %w", err)
	}
	item, err := i.read(ctx, key, maxAge)
	if err != nil {
		return err
	}
	err = i.development(ctx, item, bot)
	err = errors.Join(err, i.takenOff(ctx, item, bot, maxAge))
	if item.State != forge.Open {
		return errors.Join(err, i.ended(ctx, item))
	}
	if key.Kind == task.Pull {
		err = errors.Join(err, i.fixUp(ctx, item))
	}
	if item.HasLabel(i.options.Rules.ReviewLabel) {
		err = errors.Join(err, i.reviews(ctx, item))
	}
	return err
}

// read reads an item. One that is not there any more, in a repository that is, is
// as good as closed. Without the repository we know nothing: our right to read it
// may have been taken away.
func (i *Intake) read(ctx context.Context, key task.Key, maxAge time.Duration) (forge.Item, error) {
	snapshot, err := i.options.Snapshots.Get(ctx, key, maxAge)
	if task.CodeOf(err) != task.NotFound {
		return snapshot.Item, err
	}
	if _, missing := i.options.Forges[key.Forge].Repository(ctx, key.Repository); missing != nil {
		return forge.Item{}, err
	}
	return forge.Item{Key: key, State: forge.Closed}, nil
}

// ended does what follows from the end of an item: its review is not wanted any
// more, and what waited for it may go on.
func (i *Intake) ended(ctx context.Context, item forge.Item) error {
	review, err := i.options.Tasks.TaskOf(ctx, item.Key, task.Review)
	switch {
	case err == nil && review.State.Active():
		err = i.withdraw(ctx, review, task.ReasonItemClosed)
	case err == nil && !review.Released:
		err = i.options.Tasks.Release(ctx, review.ID)
	case task.CodeOf(err) == task.NotFound:
		err = nil
	}
	queued, listErr := i.options.Tasks.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Queued, task.Paused}})
	for _, t := range queued {
		if t.BlockedBy.Contains(item.Key) {
			i.Hint(t.Key)
		}
	}
	return errors.Join(err, listErr)
}

// withdraw ends a task that is no longer wanted.
func (i *Intake) withdraw(ctx context.Context, t task.Task, reason task.Reason) error {
	if i.options.Withdraw != nil {
		return i.options.Withdraw(ctx, t, reason)
	}
	i.options.Log.InfoContext(ctx, "a task is no longer wanted", "task", t.ID, "item", t.Key.String(), "state", t.State, "reason", reason)
	_, err := i.options.Tasks.Move(ctx, store.Change{
		Task: t.ID, Generation: t.Generation, Trigger: task.Withdrawn, Reason: reason, Effects: i.options.Labels.Effects,
	})
	i.options.Wrote()
	if code := task.CodeOf(err); code == task.StaleGeneration || code == task.IllegalMove {
		i.Hint(t.Key) // it moved meanwhile: look again
		return nil
	}
	return err
}

// assign makes a task.
func (i *Intake) assign(ctx context.Context, want store.NewTask) error {
	t, queued, err := i.options.Tasks.Assign(ctx, want, i.options.Labels.Effects)
	if err != nil || !queued {
		return err
	}
	i.options.Wrote()
	i.options.Log.InfoContext(ctx, "a new task", "task", t.ID, "item", t.Key.String(), "type", t.Type, "role", t.Role,
		"reason", t.Reason, "priority", t.Priority, "generation", t.Generation)
	return nil
}
