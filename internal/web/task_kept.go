package web

import (
	"context"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// mostKept is of how many tasks the changes are kept.
	mostKept = 100
	// mostDiffs is how many diffs of single files are kept. The page of a file is made again as often as
	// others.
	mostDiffs = 50
	// failureKept is how long changes that could not be read are not tried again.
	failureKept = 30 * time.Second
)

// keptChanges are the changes of tasks that somebody looks at. Many may look at the same page, and it
// is made anew with every answer of the model, so they are read once for each save, whoever asks, and
// kept until more is saved. The zero value is empty.
type keptChanges struct {
	mutex   sync.Mutex
	of      map[task.ID]*keptChange
	diffs   map[diffKey]*taskFile
	reading map[*keptChange]context.CancelFunc
	stopped bool
	readers sync.WaitGroup
}

// diffKey names the diff of a file.
type diffKey struct {
	of         task.ID
	base, head string
	file       ChangedFile
}

// diff is the diff of a file; nil if it is not kept.
func (k *keptChanges) diff(key diffKey) *taskFile {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.diffs[key]
}

func (k *keptChanges) keepDiff(key diffKey, file *taskFile) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.diffs == nil || len(k.diffs) >= mostDiffs {
		k.diffs = make(map[diffKey]*taskFile)
	}
	k.diffs[key] = file
}

// keptChange is what is known of the changes of a task as it was saved.
type keptChange struct {
	work    int64 // the first generation of the work: after a retry it is other work
	saved   string
	before  *Changes      // those of an earlier save of the same work, if they are known
	known   chan struct{} // closed when what follows is
	changes Changes
	err     error
	at      time.Time
}

// isKnown reports whether the changes were read.
func (k *keptChange) isKnown() bool {
	select {
	case <-k.known:
		return true
	default:
		return false
	}
}

// serves reports whether the changes need not be read again for what was saved.
func (k *keptChange) serves(work int64, saved string) bool {
	return k != nil && k.work == work && k.saved == saved && (!k.isKnown() || k.err == nil || time.Since(k.at) < failureKept)
}

// last are the changes of some work that are known, if any are.
func (k *keptChange) last(work int64) *Changes {
	switch {
	case k == nil || k.work != work:
		return nil
	case k.isKnown() && k.err == nil:
		changes := k.changes // or all earlier ones would be kept
		return &changes
	default:
		return k.before
	}
}

// find finds the changes of a task as it was saved, which may not be known yet. They are read for all
// who ask, so that it does not end with the request.
func (k *keptChanges) find(ctx context.Context, of task.Task, saved string, read func(context.Context) (Changes, error)) *keptChange {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	id, work := of.ID, of.FirstGeneration
	if kept := k.of[id]; kept.serves(work, saved) {
		return kept
	}
	made := &keptChange{work: work, saved: saved, before: k.of[id].last(work), known: make(chan struct{})}
	if k.stopped {
		made.err = task.Errorf(task.Unavailable, "the server stops")
		close(made.known)
		return made
	}
	if len(k.of) >= mostKept {
		clear(k.of)
	}
	if k.of == nil {
		k.of, k.reading = make(map[task.ID]*keptChange), make(map[*keptChange]context.CancelFunc)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k.of[id], k.reading[made] = made, cancel
	k.readers.Go(func() {
		made.changes, made.err = read(ctx)
		made.at = time.Now()
		close(made.known)
		cancel()
		k.mutex.Lock()
		defer k.mutex.Unlock()
		delete(k.reading, made)
	})
	return made
}

// stop ends all reading.
func (k *keptChanges) stop() {
	k.mutex.Lock()
	k.stopped = true
	for _, cancel := range k.reading {
		cancel()
	}
	k.mutex.Unlock()
	k.readers.Wait()
}
