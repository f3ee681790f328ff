package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/review/verdicts"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// StopFunc stops a task that is no longer wanted: the bot was taken off its item,
// or the item was closed. It may be told so again. A task that is running is ended
// in an orderly way, if there is one.
type StopFunc func(ctx context.Context, t task.Task, reason task.Reason) error

// Options is what intake needs. All but Outside, Trust, Language, TakenUp, Merges, Memory, Stop,
// OutboxChanged and Log have to be set.
type Options struct {
	Tasks     store.Tasks
	Outbox    Outbox
	Changes   *items.Feed
	Forges    map[task.Forge]forge.Forge
	Snapshots *items.Snapshots
	Verdicts  verdicts.Reader
	Facts     Facts
	// BranchCommit is the newest commit of a branch, or "" if there is none.
	BranchCommit func(ctx context.Context, in task.Repository, branch string) (string, error)
	// Trust is told which repositories are worked on; nil means nobody is.
	Trust *items.WebhookTrust
	// Scope tells the repositories that are worked on from the others.
	Scope func(of task.Forge, repository string) bool
	// Outside says why a repository is not worked on, and how to change that; nil means that
	// nobody is told of items there.
	Outside func(of task.Forge, repository string) (why, hint string)
	// Bot is our login on a forge.
	Bot      func(ctx context.Context, of task.Forge) (string, error)
	Steering *items.Steering
	Labels   outbox.Labels
	Rules    Rules
	// Language is that of what we write; empty means that of the item.
	Language task.Language
	// TakenUp reports whether the last run of a task has taken up a review or a comment; see
	// Log.TakenUp in package comments. Nil means that no run takes up anything.
	TakenUp func(ctx context.Context, t task.Task, comment task.Comment) (bool, error)
	// Merges tells whether pull requests of ours still merge. Nil means that nobody looks.
	Merges MergesFunc
	// Memory keeps what reviewers ask for; nil means that nothing is learned. Mask masks the secrets of
	// the installation in a text; it has to be set with Memory.
	Memory Memory
	Mask   func(text string) string
	// KeepUnassigned lets tasks go on when the bot is taken off their items.
	KeepUnassigned bool
	Stop           StopFunc // nil means that a task is stopped at once, whatever it does
	Now            func() time.Time
	OutboxChanged  func() // is called when there is something in the outbox
	Log            *slog.Logger
}

// Outbox takes what is to be written to the forges; an [outbox.Sender] is one.
type Outbox interface {
	Put(ctx context.Context, action store.Action) (store.Action, error)
}

const (
	// lookers is how many items are looked at in parallel.
	lookers = 4
	// longestLook bounds looking at one item.
	longestLook = 2 * time.Minute
	// lookAge is how old what a look goes by may be. What we were told of is read anew.
	lookAge = 2 * time.Minute
	// boardAgain is when an item on the board is looked at again that could not be read, and
	// pullAgain when a pull request of ours on another forge is.
	boardAgain = 10 * time.Second
	pullAgain  = time.Minute
)

// Intake finds out what there is to do. It looks at an item when the feed says that
// something happened to it, and when [Intake.Sync] finds it, and
// makes tasks of what it sees. What it does follows from what the forge says now,
// and not from what a message says that happened: looking once more changes
// nothing.
type Intake struct {
	options Options

	queue *items.Queue // of what is to be looked at
	bases *items.Queue // of pull requests of ours that may no longer merge

	mu      sync.Mutex
	due     map[task.Key]time.Time // when an item is worth another look
	unclear map[task.Key]string    // role labels that were logged because they are unclear
	tried   map[task.Key]tried     // open pull requests of ours
	looked  map[task.Key]looked    // pull requests of the board
	lessons lessons                // what is known of pull requests from which something may be learned
	outside outside                // what is known of items that are not worked on
	soon    chan struct{}          // has room for one: a due time has come in

	checkStates map[task.Key]checkState  // of pull requests
	noChecks    map[task.Repository]bool // whose checks we may not read, which was logged
	checked     chan checkedCommit       // that webhooks have named

	background lifecycle.Group
}

// New makes an intake. It does nothing until it is started or told to.
func New(options Options) *Intake {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.OutboxChanged == nil {
		options.OutboxChanged = func() {}
	}
	return &Intake{
		options: options, queue: items.NewQueue(), bases: items.NewQueue(), due: map[task.Key]time.Time{}, unclear: map[task.Key]string{}, tried: map[task.Key]tried{}, looked: map[task.Key]looked{}, lessons: lessons{map[task.Repository]time.Time{}, map[task.Key]time.Time{}, map[task.Forge]bool{}},
		soon: make(chan struct{}, 1), checkStates: map[task.Key]checkState{}, noChecks: map[task.Repository]bool{}, checked: make(chan checkedCommit, maxChecked),
	}
}

// Start begins to look at what the feed of changes names. It does not end with the
// context, whose values are kept, but with Stop. It is called once.
func (i *Intake) Start(ctx context.Context) {
	stop := i.options.Changes.Subscribe(func(change items.Change) {
		if !change.Listed { // else Sync looks at them
			i.queue.Add(change.Items...)
		}
		if change.Pushed {
			i.pushed(change.Repository)
		}
		if change.Checked != "" {
			select {
			case i.checked <- checkedCommit{change.Repository, change.Checked}:
			default: // a sync finds those that have not ended
			}
		}
	})
	run := []func(context.Context){i.remind, i.tryOn, i.followChecks, func(ctx context.Context) {
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

// lookOn looks at what is in the queue until the context ends.
func (i *Intake) lookOn(ctx context.Context) {
	for key, found := i.queue.Next(ctx); found; key, found = i.queue.Next(ctx) {
		if err := i.Look(ctx, key, lookAge); err != nil && ctx.Err() == nil {
			i.options.Log.WarnContext(ctx, "failed to read an item; retrying with the next sync", "item", key.String(), "error", err)
			i.lookAgainAt(key)
		}
	}
}

// lookAgainAt asks for another look at an item that could not be read, if a sync may not: on the board
// it reads an item only if something happens to it, and that a pull request of ours merges again
// it sees only once.
func (i *Intake) lookAgainAt(key task.Key) {
	i.mu.Lock()
	_, ours := i.tried[key]
	i.mu.Unlock()
	switch {
	case key.Forge == task.Board:
		i.lookAt(key, i.options.Now().Add(boardAgain))
	case ours:
		i.lookAt(key, i.options.Now().Add(pullAgain))
	}
}

// lookAt asks for another look at an item at a given time.
func (i *Intake) lookAt(key task.Key, at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if old, found := i.due[key]; !found || at.Before(old) {
		i.due[key] = at
		lifecycle.Signal(i.soon)
	}
}

// remind puts the items into the queue whose time has come.
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

// untilDue puts what is due into the queue, and returns how long it is until there is more.
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
	i.queue.Add(ready...)
	return next
}

// Look looks at an item, as it was no longer than maxAge ago, and does what it asks
// for. An item that cannot be read changes nothing.
func (i *Intake) Look(ctx context.Context, key task.Key, maxAge time.Duration) error {
	if _, configured := i.options.Forges[key.Forge]; !configured {
		return nil
	}
	if !i.options.Scope(key.Forge, key.Repository) {
		i.lookOutside(ctx, key)
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
		err = errors.Join(err, i.ended(ctx, item))
		i.learnFrom(ctx, item)
		return err
	}
	seen := i.view(ctx, item)
	if key.Kind == task.Pull {
		err = errors.Join(err, i.watch(ctx, item), i.changes(ctx, seen))
	}
	if item.HasLabel(i.options.Rules.ReviewLabel) {
		err = errors.Join(err, i.reviews(ctx, seen))
	} else {
		err = errors.Join(err, i.unlabeled(ctx, item))
	}
	if key.Kind == task.Pull && err == nil { // else something may be left to do
		err = i.merge(ctx, seen)
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
	i.mu.Lock()
	delete(i.unclear, item.Key)
	delete(i.checkStates, item.Key)
	i.mu.Unlock()
	i.forget(item.Key)
	if item.State == forge.Merged {
		i.pushed(item.Key.Repo())
	}
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
			i.queue.Add(t.Key)
		}
	}
	return errors.Join(err, listErr)
}

// withdraw ends a task that is no longer wanted.
func (i *Intake) withdraw(ctx context.Context, t task.Task, reason task.Reason) error {
	if i.options.Stop != nil {
		return i.options.Stop(ctx, t, reason)
	}
	i.options.Log.InfoContext(ctx, "task is no longer wanted", "task", t.ID, "item", t.Key.String(), "state", t.State, "reason", reason)
	_, err := i.options.Tasks.Move(ctx, store.Change{
		Task: t.ID, Generation: t.Generation, Trigger: task.Withdrawn, Reason: reason, Effects: i.options.Labels.Effects,
	})
	i.options.OutboxChanged()
	if code := task.CodeOf(err); code == task.StaleGeneration || code == task.IllegalMove {
		i.queue.Add(t.Key) // it moved meanwhile: look again
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
	i.options.OutboxChanged()
	i.options.Log.InfoContext(ctx, "task created", "task", t.ID, "item", t.Key.String(), "type", t.Type, "role", t.Role,
		"reason", t.Reason, "priority", t.Priority, "generation", t.Generation)
	return nil
}

// comment writes a comment of the server's own on an item, in the item's language. The same
// what is the same comment.
func (i *Intake) comment(ctx context.Context, on forge.Item, what string, text func(task.Language) string) error {
	stored, err := i.put(ctx, outbox.Write{Item: on.Key, What: what}, outbox.Comment{Text: text(i.options.Language.OfItem(on.Title, on.Body))})
	if err == nil && stored.Status == store.Pending && stored.Attempts == 0 {
		i.options.Log.InfoContext(ctx, "put a comment for people into the outbox", "item", on.Key.String(), "what", what)
	}
	return err
}

// put puts a write into the outbox. What was put there before is not put again.
func (i *Intake) put(ctx context.Context, write outbox.Write, payload outbox.Payload) (store.Action, error) {
	action, err := outbox.NewAction(write, payload)
	if err != nil {
		return store.Action{}, err
	}
	return i.options.Outbox.Put(ctx, action)
}
