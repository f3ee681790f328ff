package site

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// boardEvery is how often it is looked whether the board has changed without a notice.
const boardEvery = time.Second

// boardWatch publishes what changes on the board without a notice, and knows whether
// anything has changed there at all: a board on which nothing happens is not read.
type boardWatch struct {
	watch   *board.Watch
	changes *items.Feed
	log     *slog.Logger
	unread  map[string]string // why repositories could not be read the last time, by name

	anything atomic.Bool  // another process may have changed any item
	pulls    atomic.Bool  // other pull requests may be open
	count    atomic.Int64 // of what has happened
}

// listen takes in what happens on the board and to tasks until stop is called.
func (w *boardWatch) listen(notices store.Notices) (stop func()) {
	return notices.Listen(func(notice store.Notice) {
		switch notice.Topic {
		case store.Anything:
			w.anything.Store(true)
			w.pulls.Store(true)
		case store.BoardChanged:
			if key, err := task.ParseKey(notice.Subject); err != nil || key.Kind == task.Pull {
				w.pulls.Store(true)
			}
		case store.TasksChanged:
		default:
			return
		}
		w.count.Add(1)
	})
}

// look publishes what has changed.
func (w *boardWatch) look(ctx context.Context) error {
	if w.anything.Swap(false) {
		if err := w.publishItems(ctx); err != nil {
			w.anything.Store(true)
			return err
		}
	}
	changed := w.pulls.Swap(false)
	pushed, unread, err := w.watch.Pushed(ctx, !changed)
	if err != nil {
		if changed {
			w.pulls.Store(true)
		}
		return err
	}
	w.noteUnread(ctx, unread)
	for _, to := range pushed {
		w.count.Add(1)
		w.changes.Publish(items.Change{Repository: task.Repository{Forge: task.Board, Name: to.Repository}, Items: to.Pulls, Pushed: true})
	}
	return nil
}

// noteUnread logs which repositories cannot be read, once for each reason: it is called every second.
func (w *boardWatch) noteUnread(ctx context.Context, unread map[string]error) {
	reasons := make(map[string]string, len(unread))
	for name, err := range unread {
		if reasons[name] = err.Error(); w.unread[name] != err.Error() {
			w.log.WarnContext(ctx, "failed to look at the branches of a repository on the board; retrying", "repository", name, "error", err)
		}
	}
	w.unread = reasons
}

func (w *boardWatch) publishItems(ctx context.Context) error {
	keys, err := w.watch.Items(ctx)
	for _, key := range keys {
		w.changes.Publish(items.Change{Repository: key.Repo(), Items: []task.Key{key}})
	}
	return err
}

// quietFor is how long the whole board is not gone through when nothing is heard of it: notices
// may be lost on their way.
const quietFor = 10 * time.Minute

// unlessQuiet does something about the whole board, unless nothing has happened there since
// it was last done.
func (w *boardWatch) unlessQuiet(do func(context.Context) error) func(context.Context) error {
	done, last := int64(-1), time.Time{}
	return func(ctx context.Context) error {
		count, begun := w.count.Load(), time.Now()
		if count == done && begun.Sub(last) < quietFor {
			return nil
		}
		err := do(ctx)
		if err == nil {
			done, last = count, begun
		}
		return err
	}
}
