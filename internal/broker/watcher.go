package broker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/broker/comments"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// WatchOptions is what a watcher needs. Tasks, Snapshots, Comments and Changes have to
// be set.
type WatchOptions struct {
	Tasks     store.Tasks
	Changes   *items.Feed
	Snapshots *items.Snapshots
	Comments  *comments.Log
	// Wanted looks whether an item still wants its task, and withdraws it if not;
	// see Intake.Look in package intake. Nil means that someone else does.
	Wanted func(ctx context.Context, item task.Key, maxAge time.Duration) error
	// Answered lets a task go on whose run has asked a person something, when there
	// is an answer or there was none for AnswerWithin; see [Controller.Answered]. Nil
	// means that someone else does; zero that there is all the time in the world.
	Answered     func(ctx context.Context, t task.Task) error
	AnswerWithin time.Duration
	// Plan lets a task go on whose plan is approved or to be revised; see
	// [Approvals.Decide]. Nil means that someone else does.
	Plan func(ctx context.Context, t task.Task, seen items.Snapshot) error
	Now  func() time.Time
	Log  *slog.Logger
}

// Watcher looks at the items of all tasks that are running, for what their runs
// have to know: that the task is no longer wanted, and what people said; and at
// those of tasks that wait, paused, for people: their run has asked something, or shows a plan. One
// watcher looks for all of them, and at what others read too: it costs the forge
// nothing extra. An item that cannot be read is looked at again the next time.
type Watcher struct {
	options    WatchOptions
	background lifecycle.Group
	queue      *items.Queue // of items that changed

	mu     sync.Mutex
	looked map[run]time.Time
}

// run is one generation of a task.
type run struct {
	task       task.ID
	generation int64
}

const (
	// atOnce is how many items are read at the same time.
	atOnce = 8
	// boardAge is how old the snapshot of an item on the board may be, of whose changes
	// we hear.
	boardAge = time.Minute
	// reactionsEvery is how often the reactions to a plan are read that was posted within
	// reactionsSoon, and reactionsLater how often after that.
	reactionsEvery = 30 * time.Second
	reactionsSoon  = time.Hour
	reactionsLater = 5 * time.Minute
	// longestHint is the longest pause before an item that changed and could not be
	// read is looked at again.
	longestHint = 30 * time.Second
)

// NewWatcher makes a watcher.
func NewWatcher(options WatchOptions) *Watcher {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Watcher{options: options, queue: items.NewQueue(), looked: map[run]time.Time{}}
}

// Start begins to look at the items that change: every server does. What nobody tells
// of is found by [Watcher.GoThrough], which one server calls. It is called once.
func (w *Watcher) Start(ctx context.Context) {
	unsubscribe := w.options.Changes.Subscribe(w.changed)
	w.background.Start(ctx, func(ctx context.Context) {
		defer unsubscribe()
		w.follow(ctx)
	})
}

// Stop ends what Start began and waits for it.
func (w *Watcher) Stop() { w.background.Stop() }

// changed puts the items that changed into the queue. Where any item of a repository may
// have changed, all tasks are looked at when they are gone through the next time.
func (w *Watcher) changed(change items.Change) {
	w.queue.Add(change.Items...)
	if change.All {
		w.mu.Lock()
		defer w.mu.Unlock()
		clear(w.looked)
	}
}

// follow looks at the items that changed. What cannot be read is looked at again
// soon: nobody may tell us of it a second time.
func (w *Watcher) follow(ctx context.Context) {
	again := time.NewTimer(0)
	defer again.Stop()
	trouble := lifecycle.NewBackoff(longestHint)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.queue.Ready():
		case <-again.C:
		}
		err := w.lookAtChanged(ctx)
		if err == nil || ctx.Err() != nil {
			trouble.Reset()
			continue
		}
		pause := min(trouble.NextBackOff(), longestHint)
		w.options.Log.WarnContext(ctx, "failed to read an item that changed; retrying", "error", err, "again", pause)
		again.Reset(pause)
	}
}

// lookAtChanged looks at what is in the queue, and puts back what cannot be read.
func (w *Watcher) lookAtChanged(ctx context.Context) error {
	tasks := w.running(ctx, w.queue.Take())
	failed := w.lookAtEach(ctx, tasks)
	for i, t := range tasks {
		if failed[i] != nil {
			w.queue.Return(t.Key)
		}
	}
	return errors.Join(failed...)
}

// running returns the tasks of the items that are running or wait for people.
func (w *Watcher) running(ctx context.Context, changed []task.Key) []task.Task {
	var tasks []task.Task
	for _, key := range changed {
		for _, kind := range []task.Type{task.Development, task.Review} {
			t, err := w.options.Tasks.TaskOf(ctx, key, kind)
			switch {
			case err == nil && (t.State == task.Running || t.AwaitsPeople()):
				tasks = append(tasks, t)
			case err != nil && task.CodeOf(err) != task.NotFound && ctx.Err() == nil:
				w.options.Log.ErrorContext(ctx, "failed to look up the task of an item that changed; retrying later", "item", key.String(), "error", err)
			}
		}
	}
	return tasks
}

// GoThrough looks at every item with a task that is running, or waits for people,
// whose snapshot is too old, and at those of tasks that have just begun to.
func (w *Watcher) GoThrough(ctx context.Context) error {
	running, err := w.options.Tasks.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Running, task.Paused}})
	if err != nil {
		return err
	}
	var due []task.Task
	w.mu.Lock()
	still := make(map[run]time.Time, len(running))
	for _, t := range running {
		if t.State == task.Paused && !t.AwaitsPeople() {
			continue
		}
		is := run{t.ID, t.Generation}
		at, known := w.looked[is]
		if known && w.options.Now().Sub(at) < w.every(t) {
			still[is] = at
		} else {
			due = append(due, t)
		}
	}
	w.looked = still
	w.mu.Unlock()
	return w.lookAt(ctx, due)
}

// every is how often a task is looked at. Webhooks do not tell of reactions, by which plans are
// approved. A plan may wait for days, and each look reads the reactions.
func (w *Watcher) every(t task.Task) time.Duration {
	switch age := w.age(t); {
	case !t.AwaitsApproval() || t.Key.Forge == task.Board:
		return age
	case w.options.Now().Sub(t.UpdatedAt) < reactionsSoon:
		return min(age, reactionsEvery)
	default:
		return max(age, reactionsLater)
	}
}

// age is how old the snapshot of a task's item may be.
func (w *Watcher) age(t task.Task) time.Duration {
	if t.Key.Forge == task.Board {
		return boardAge
	}
	return w.options.Snapshots.MaxAge(t.Key)
}

// lookAt looks at several tasks at once, goes on when one fails, and returns all
// that went wrong.
func (w *Watcher) lookAt(ctx context.Context, tasks []task.Task) error {
	return errors.Join(w.lookAtEach(ctx, tasks)...)
}

// lookAtEach is lookAt, with what went wrong for each of the tasks.
func (w *Watcher) lookAtEach(ctx context.Context, tasks []task.Task) []error {
	failed := make([]error, len(tasks))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, t := range tasks {
		group.Go(func() error {
			failed[i] = w.Look(ctx, t)
			if failed[i] == nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.looked[run{t.ID, t.Generation}] = w.options.Now()
			}
			return nil
		})
	}
	_ = group.Wait() // each has put its error into its place
	return failed
}

// Look looks at the item of one task: whether it is still wanted before the
// comments. An item that cannot be read changes nothing; one that is gone is not wanted.
func (w *Watcher) Look(ctx context.Context, t task.Task) error {
	age := w.age(t)
	if w.options.Wanted == nil {
		return w.readComments(ctx, t, age)
	}
	// It is read here, and the others take what was read.
	switch _, err := w.options.Snapshots.Get(ctx, t.Key, age); {
	case task.CodeOf(err) == task.NotFound:
		return errors.Join(w.options.Wanted(ctx, t.Key, age), err)
	case err != nil:
		return err
	}
	// It may fail because of another item, such as the issue of a pull request.
	return errors.Join(w.options.Wanted(ctx, t.Key, age), w.readComments(ctx, t, age))
}

// LookNow is Look at the item as it is now, whenever it was last read.
func (w *Watcher) LookNow(ctx context.Context, t task.Task) error {
	w.options.Snapshots.Changed(t.Key)
	return w.Look(ctx, t)
}

// readComments looks for what people said on the item of a task.
func (w *Watcher) readComments(ctx context.Context, t task.Task, age time.Duration) error {
	seen, err := w.options.Snapshots.Get(ctx, t.Key, age)
	if err != nil {
		return err
	}
	if err := w.options.Comments.Update(ctx, t, seen); err != nil || !t.AwaitsPeople() {
		return err
	}
	if t.AwaitsApproval() && w.options.Plan != nil {
		return w.options.Plan(ctx, t, seen)
	}
	if t.AwaitsApproval() || w.options.Answered == nil {
		return nil
	}
	answered, err := w.options.Comments.Answered(ctx, t)
	if err != nil {
		return err
	}
	if !answered {
		if inVain := w.options.AnswerWithin > 0 && w.options.Now().Sub(t.UpdatedAt) >= w.options.AnswerWithin; !inVain {
			return nil
		}
		// It goes on without an answer. What was read may be older than one that is there.
		if seen, err = w.options.Snapshots.Get(ctx, t.Key, 0); err != nil {
			return err
		}
		if err := w.options.Comments.Update(ctx, t, seen); err != nil {
			return err
		}
	}
	return w.options.Answered(ctx, t)
}
