package web

import (
	"context"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
)

// defaultLook is how often the database is asked for news.
const defaultLook = 400 * time.Millisecond

// look returns the revision of what a page shows: a text that changes when the
// page would.
type look func(ctx context.Context) (revision string, err error)

const (
	// lookAnyway is how often the database is asked although nothing is known to have
	// happened: that an agent is silent, for example, is no event.
	lookAnyway = 10 * time.Second
	// lookShare is how many times as long as a look takes there is none after it, so that
	// one on many tasks that change all the time takes a bounded share of a processor.
	lookShare = 9
)

// whenHappened asks the database only when something has happened since, and now and then
// anyway. What it returns is for one goroutine.
func (p *Pages) whenHappened(see look, onBoard bool) look {
	if p.Happened == nil {
		return see
	}
	count := func() [2]int64 {
		tasks, board := p.Happened()
		if !onBoard {
			board = 0
		}
		return [2]int64{tasks, board}
	}
	var last string
	var seen [2]int64
	var ended time.Time
	var took time.Duration
	return func(ctx context.Context) (string, error) {
		if last != "" {
			if count() == seen && time.Since(ended) < lookAnyway {
				return last, nil
			}
			if err := lifecycle.Sleep(ctx, time.Until(ended.Add(lookShare*took))); err != nil {
				return "", err
			}
		}
		is, begun := count(), time.Now()
		revision, err := see(ctx)
		if err != nil {
			return "", err
		}
		last, seen, ended = revision, is, time.Now()
		took = ended.Sub(begun)
		return revision, nil
	}
}

// Wake returns a channel that has a value when it is time to look again. Whoever
// no longer waits calls stop. It is a hint: we look now and then by ourselves.
type Wake func() (woken <-chan struct{}, stop func())

// watchers look at the database on behalf of live pages: once for all readers of
// the same thing, and only while there are any.
type watchers struct {
	every    time.Duration
	stopped  chan struct{}
	stopping sync.Once

	mutex  sync.Mutex
	topics map[string]*topic
}

func newWatchers(every time.Duration) *watchers {
	if every == 0 {
		every = defaultLook
	}
	return &watchers{every: every, stopped: make(chan struct{}), topics: make(map[string]*topic)}
}

// stop tells every reader to go away. The looking ends with the last of them.
func (w *watchers) stop() { w.stopping.Do(func() { close(w.stopped) }) }

// topic is one thing that is looked at.
type topic struct {
	readers int
	cancel  context.CancelFunc

	mutex    sync.Mutex
	revision string
	changed  chan struct{} // closed at the next change
}

func (t *topic) now() (revision string, changed <-chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.revision, t.changed
}

func (t *topic) set(revision string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if revision == t.revision {
		return
	}
	t.revision = revision
	close(t.changed)
	t.changed = make(chan struct{})
}

// join begins to look at something, or joins those who do. Whoever joins leaves.
func (w *watchers) join(ctx context.Context, name string, see look, wake Wake) (joined *topic, leave func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	joined, found := w.topics[name]
	if !found {
		watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
		joined = &topic{cancel: cancel, changed: make(chan struct{})}
		w.topics[name] = joined
		go w.watch(watching, joined, see, wake)
	}
	joined.readers++
	return joined, func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if joined.readers--; joined.readers == 0 {
			joined.cancel()
			delete(w.topics, name)
		}
	}
}

// watch looks until nobody reads any more. A look that fails is repeated: the
// page says that it is not live when the connection breaks, not when one look
// does.
func (w *watchers) watch(ctx context.Context, t *topic, see look, wake Wake) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	var woken <-chan struct{}
	if wake != nil {
		var stop func()
		woken, stop = wake()
		defer stop()
	}
	for {
		if revision, err := see(ctx); err == nil {
			t.set(revision)
		}
		select {
		case <-ctx.Done():
			return
		case <-woken:
		case <-ticker.C:
		}
	}
}
