package broker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// WatchOptions is what a watcher needs. Tasks, Snapshots, Talk and Notices have to
// be set.
type WatchOptions struct {
	Tasks     store.Tasks
	Notices   store.Notices
	Snapshots *Snapshots
	Talk      *Talk
	// Wanted looks whether an item still wants its task, and withdraws it if not;
	// see [Intake.Look]. Nil means that someone else does.
	Wanted func(ctx context.Context, item task.Key, maxAge time.Duration) error
	// Answered lets a task go on whose run has asked a person something, when there
	// is an answer or there was none for AnswerWithin; see [Halts.Answered]. Nil
	// means that someone else does; zero that there is all the time in the world.
	Answered     func(ctx context.Context, t task.Task) error
	AnswerWithin time.Duration
	Now          func() time.Time
	Log          *slog.Logger
}

// Watcher looks at the items of all tasks that are running, for what their runs
// have to know: that the task is no longer wanted, and what people said; and at
// those of tasks whose run has asked a person something and waits, paused. One
// watcher looks for all of them, and at what others read too: it costs the forge
// nothing extra. An item that cannot be read is looked at again the next time.
type Watcher struct {
	options    WatchOptions
	background lifecycle.Group
	hinted     chan struct{} // has room for one: there are hints

	mu     sync.Mutex
	hints  map[task.Key]bool
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
	// boardAge is how old the snapshot of an item on the board may be: it is at
	// hand, and other processes write to it too.
	boardAge = 2 * time.Second
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
	return &Watcher{options: options, hinted: make(chan struct{}, 1), hints: map[task.Key]bool{}, looked: map[run]time.Time{}}
}

// Start begins to look at what it is told of: every server does. What nobody tells
// of is found by [Watcher.GoThrough], which one server calls.
func (w *Watcher) Start(ctx context.Context) {
	w.background.Start(ctx, func(ctx context.Context) {
		defer w.options.Notices.Listen(w.heard)()
		w.followHints(ctx)
	})
}

// Stop ends what Start began and waits for it.
func (w *Watcher) Stop() { w.background.Stop() }

// heard takes in what happened on the board.
func (w *Watcher) heard(notice store.Notice) {
	if notice.Topic != store.BoardChanged {
		return
	}
	if key, err := task.ParseKey(notice.Subject); err == nil {
		w.Changed(key)
	}
}

// Changed says that something happened to an item, which is looked at right away.
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

// followHints looks at what we are told of. What cannot be read is looked at again
// soon: nobody may tell us of it a second time.
func (w *Watcher) followHints(ctx context.Context) {
	again := time.NewTimer(0)
	defer again.Stop()
	trouble := newBackoff()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.hinted:
		case <-again.C:
		}
		err := w.lookAtHints(ctx)
		if err == nil || ctx.Err() != nil {
			trouble.Reset()
			continue
		}
		pause := min(trouble.NextBackOff(), longestHint)
		w.options.Log.WarnContext(ctx, "an item that changed cannot be looked at; it is tried again", "error", err, "again", pause)
		again.Reset(pause)
	}
}

// lookAtHints looks at what there are hints of, and keeps those that it cannot read.
func (w *Watcher) lookAtHints(ctx context.Context) error {
	w.mu.Lock()
	hints := w.hints
	w.hints = map[task.Key]bool{}
	w.mu.Unlock()
	tasks := w.running(ctx, hints)
	failed := w.lookAtEach(ctx, tasks)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, t := range tasks {
		if failed[i] != nil {
			w.hints[t.Key] = true
		}
	}
	return errors.Join(failed...)
}

// running returns the tasks of the items that are running or wait for an answer.
func (w *Watcher) running(ctx context.Context, items map[task.Key]bool) []task.Task {
	var tasks []task.Task
	for key := range items {
		for _, kind := range []task.Type{task.Development, task.Review} {
			t, err := w.options.Tasks.TaskOf(ctx, key, kind)
			switch {
			case err == nil && (t.State == task.Running || asks(t)):
				tasks = append(tasks, t)
			case err != nil && task.CodeOf(err) != task.NotFound && ctx.Err() == nil:
				w.options.Log.ErrorContext(ctx, "cannot see whether an item that changed has a task; it is looked at later", "item", key.String(), "error", err)
			}
		}
	}
	return tasks
}

// GoThrough looks at every item with a task that is running, or waits for an answer,
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
		if t.State == task.Paused && !asks(t) {
			continue
		}
		is := run{t.ID, t.Generation}
		at, known := w.looked[is]
		if known && w.options.Now().Sub(at) < w.age(t) {
			still[is] = at
		} else {
			due = append(due, t)
		}
	}
	w.looked = still
	w.mu.Unlock()
	return w.lookAt(ctx, due)
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
		return w.hear(ctx, t, age)
	}
	// It is read here, and the others take what was read.
	switch _, err := w.options.Snapshots.Get(ctx, t.Key, age); {
	case task.CodeOf(err) == task.NotFound:
		return errors.Join(w.options.Wanted(ctx, t.Key, age), err)
	case err != nil:
		return err
	}
	// It may fail because of another item, such as the issue of a pull request.
	return errors.Join(w.options.Wanted(ctx, t.Key, age), w.hear(ctx, t, age))
}

// hear looks for what people said on the item of a task.
func (w *Watcher) hear(ctx context.Context, t task.Task, age time.Duration) error {
	seen, err := w.options.Snapshots.Get(ctx, t.Key, age)
	if err != nil {
		return err
	}
	if err := w.options.Talk.Hear(ctx, t, seen); err != nil || !asks(t) || w.options.Answered == nil {
		return err
	}
	answered, err := w.options.Talk.answered(ctx, t)
	inVain := w.options.AnswerWithin > 0 && w.options.Now().Sub(t.UpdatedAt) >= w.options.AnswerWithin
	if err != nil || !answered && !inVain {
		return err
	}
	return w.options.Answered(ctx, t)
}

// asks reports whether the run of a task has asked a person something and waits for
// the answer.
func asks(t task.Task) bool { return t.State == task.Paused && t.Reason == task.ReasonAwaitingAnswer }
