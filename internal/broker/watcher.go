package broker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// WatchOptions is what a watcher needs. Store, Snapshots, Talk, Halts and Own have
// to be set.
type WatchOptions struct {
	Store     RunStore
	Snapshots *Snapshots
	Talk      *Talk
	Halts     *Halts
	Own       func(of task.Forge, login string) bool
	// StopOff says that tasks go on when the bot is unassigned or the item is
	// closed.
	StopOff bool
	// Leads tells whether it is for this server to look by itself; nil means
	// always. What it is told of it looks at in any case.
	Leads func() bool
	// Every is how often the tasks are gone through; 0 means every second. How
	// often the forge is asked about one is for the snapshots to say.
	Every time.Duration
	// Resting is how old the snapshot of an item may be whose task is queued or
	// paused; 0 means ten minutes.
	Resting time.Duration
	Now     func() time.Time
	Log     *slog.Logger
}

// Watcher looks at the items of all tasks that have not ended, for what a run has
// to know: that the bot was unassigned, that the item was closed, what people
// said. One watcher looks for all of them, and it reads what others read too. An
// item that cannot be read is looked at again the next time.
type Watcher struct {
	options WatchOptions
	owner
	hinted chan struct{} // has room for one: there are hints

	mu     sync.Mutex
	hints  map[task.Key]bool
	looked map[task.ID]time.Time
}

// atOnce is how many items are read at the same time.
const atOnce = 8

// NewWatcher makes a watcher. It looks by itself after Start only.
func NewWatcher(options WatchOptions) *Watcher {
	if options.Every == 0 {
		options.Every = time.Second
	}
	if options.Resting == 0 {
		options.Resting = 10 * time.Minute
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Watcher{options: options, hinted: make(chan struct{}, 1), hints: map[task.Key]bool{}, looked: map[task.ID]time.Time{}}
}

// Start begins to look.
func (w *Watcher) Start(ctx context.Context) { w.start(ctx, w.keepLooking, w.followHints) }

// Stop ends what Start began and waits for it.
func (w *Watcher) Stop() { w.stop() }

// Heard, Changed and ChangedAll are told what webhooks say. They
// look at what changed right away.

// Heard says that a webhook of the repository was delivered.
func (w *Watcher) Heard(of task.Forge, name string) { w.options.Snapshots.Heard(of, name) }

// Changed says that something happened to an item.
func (w *Watcher) Changed(key task.Key) {
	w.options.Snapshots.Changed(key)
	w.mu.Lock()
	w.hints[key] = true
	w.mu.Unlock()
	signal(w.hinted)
}

// ChangedAll says that something happened in a repository. Its tasks are looked
// at when they are gone through the next time.
func (w *Watcher) ChangedAll(of task.Forge, name string) {
	w.options.Snapshots.ChangedAll(of, name)
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.looked)
}

// followHints looks at what we are told of.
func (w *Watcher) followHints(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.hinted:
		}
		w.mu.Lock()
		hints := w.hints
		w.hints = map[task.Key]bool{}
		w.mu.Unlock()
		var tasks []task.Task
		for key := range hints {
			for _, kind := range []task.Type{task.Development, task.Review} {
				t, err := w.options.Store.TaskOf(ctx, key, kind)
				if err == nil && t.State.Active() {
					tasks = append(tasks, t)
				} else if err != nil && task.CodeOf(err) != task.NotFound && ctx.Err() == nil {
					w.options.Log.ErrorContext(ctx, "cannot see whether an item that changed has a task; it is looked at later", "item", key.String(), "error", err)
				}
			}
		}
		w.lookAt(ctx, tasks)
	}
}

// keepLooking goes through the tasks.
func (w *Watcher) keepLooking(ctx context.Context) {
	ticker := time.NewTicker(w.options.Every)
	defer ticker.Stop()
	for {
		if w.options.Leads == nil || w.options.Leads() {
			w.goThrough(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (w *Watcher) goThrough(ctx context.Context) {
	active, err := w.options.Store.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Running, task.Paused, task.Queued}})
	if err != nil {
		if ctx.Err() == nil {
			w.options.Log.ErrorContext(ctx, "cannot list the tasks to look at; it is tried again", "error", err)
		}
		return
	}
	var due []task.Task
	w.mu.Lock()
	still := make(map[task.ID]time.Time, len(active))
	for _, t := range active {
		if at, known := w.looked[t.ID]; known && w.options.Now().Sub(at) < w.age(t) {
			still[t.ID] = at
			continue
		}
		due = append(due, t)
	}
	w.looked = still
	w.mu.Unlock()
	w.lookAt(ctx, due)
}

// age is how old the snapshot of a task's item may be.
func (w *Watcher) age(t task.Task) time.Duration {
	age := w.options.Snapshots.MaxAge(t.Key)
	if t.State != task.Running {
		return max(age, w.options.Resting)
	}
	return age
}

// lookAt looks at several tasks at once. Errors are logged: the item is looked at
// again.
func (w *Watcher) lookAt(ctx context.Context, tasks []task.Task) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, t := range tasks {
		group.Go(func() error {
			if err := w.Look(ctx, t); err != nil && ctx.Err() == nil {
				w.options.Log.WarnContext(ctx, "an item cannot be looked at; it is tried again", "task", t.ID, "item", t.Key.String(), "error", err)
				return nil
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.looked[t.ID] = w.options.Now()
			return nil
		})
	}
	_ = group.Wait() // nobody returns an error
}

// Look looks at the item of one task: a stop before the comments.
func (w *Watcher) Look(ctx context.Context, t task.Task) error {
	seen, err := w.options.Snapshots.Get(ctx, t.Key, w.age(t))
	if err != nil {
		return err
	}
	stopped, err := w.stopIfOver(ctx, t, seen)
	if err != nil || stopped || t.State != task.Running {
		return err
	}
	return w.options.Talk.Hear(ctx, t, seen)
}

// stopIfOver stops a task whose item no longer wants it. What was read may be from
// before the task was assigned, so it is read anew before that.
func (w *Watcher) stopIfOver(ctx context.Context, t task.Task, seen Snapshot) (bool, error) {
	reason, err := w.over(ctx, t, seen.Item)
	if err != nil || reason == "" {
		return false, err
	}
	if seen, err = w.options.Snapshots.Get(ctx, t.Key, 0); err != nil {
		return false, err
	}
	if reason, err = w.over(ctx, t, seen.Item); err != nil || reason == "" {
		return false, err
	}
	_, err = w.options.Halts.Withdraw(ctx, t.ID, reason)
	return true, outrun(err)
}

// over tells why an item no longer wants its task; "" if it does. Without the bot
// among the assignees that is so only if the task came from it being there.
func (w *Watcher) over(ctx context.Context, t task.Task, item forge.Item) (task.Reason, error) {
	if w.options.StopOff {
		return "", nil
	}
	if item.State != forge.Open {
		return task.ReasonItemClosed, nil
	}
	assigned := false
	for _, login := range item.Assignees {
		assigned = assigned || w.options.Own(t.Key.Forge, login)
	}
	mark, err := w.options.Store.CommentMark(ctx, t.ID)
	if err != nil {
		return "", err
	}
	if assigned {
		if !mark.Assigned {
			err = w.options.Store.NoteAssigned(ctx, t.ID)
		}
		return "", err
	}
	life, err := w.options.Store.Life(ctx, t.ID)
	if err != nil {
		return "", err
	}
	if mark.Assigned || life.Reason == task.ReasonAssigned {
		return task.ReasonUnassigned, nil
	}
	return "", nil
}
