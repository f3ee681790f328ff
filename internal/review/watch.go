package review

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// watchFor is how long after its review a pull request is looked at.
	watchFor = 14 * 24 * time.Hour
	// lookAnyway is how often the threads are read of a pull request that seems
	// not to have changed: a comment on a line does not show in it on every forge.
	lookAnyway = 10 * time.Minute
	// settling is how long after a moment that a forge writes down something else
	// can happen in what it calls the same moment.
	settling = 3 * time.Second
	// atOnce is how many pull requests one looks at together.
	atOnce = 4
)

// watch is the goroutine that answers replies on forges.
type watch struct {
	queue *items.Queue
	seen  map[task.Key]look // only the goroutine uses it

	background lifecycle.Group
}

// look is when the threads of a pull request were read, and how new it was then.
type look struct{ at, updated time.Time }

// StartWatching looks at reviewed pull requests, every so often and when they change,
// until StopWatching.
func (s *Service) StartWatching(ctx context.Context, changes *items.Feed, every time.Duration) {
	w := &watch{queue: items.NewQueue(), seen: map[task.Key]look{}}
	s.mu.Lock()
	s.watching = w
	s.mu.Unlock()
	unsubscribe := changes.Subscribe(w.changed)
	w.background.Start(ctx, func(ctx context.Context) {
		defer unsubscribe()
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.queue.Ready():
				s.lookAtChanged(ctx, w)
			case <-ticker.C:
				s.lookAtRecent(ctx, w)
			}
		}
	})
}

// StopWatching ends what StartWatching began and waits for it. What is being
// answered is for [Service.Stop] to end.
func (s *Service) StopWatching() {
	s.mu.Lock()
	w := s.watching
	s.watching = nil
	s.mu.Unlock()
	if w != nil {
		w.background.Stop()
	}
}

// changed puts the pull requests that changed into the queue.
func (w *watch) changed(change items.Change) {
	for _, key := range change.Items {
		if key.Kind == task.Pull {
			w.queue.Add(key)
		}
	}
}

func (s *Service) lookAtChanged(ctx context.Context, w *watch) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, pull := range w.queue.Take() {
		group.Go(func() error { s.lookAt(ctx, pull, false); return nil })
	}
	_ = group.Wait() // none returns an error
}

// lookAt looks at a pull request and reports whether that went well.
func (s *Service) lookAt(ctx context.Context, pull task.Key, again bool) bool {
	if ctx.Err() != nil {
		return false
	}
	err := s.LookAtPull(ctx, pull, again)
	if err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "failed to answer all replies to a review; retrying", "pull", pull.String(), "error", err)
	}
	return err == nil
}

// lookAtRecent looks at open pull requests that were reviewed lately and have
// changed since the last look.
func (s *Service) lookAtRecent(ctx context.Context, w *watch) {
	pulls, err := s.Store.ReviewedPulls(ctx, s.Now().Add(-watchFor))
	if err != nil {
		s.Log.WarnContext(ctx, "failed to list reviewed pull requests", "error", err)
		return
	}
	var mu sync.Mutex
	seen := map[task.Key]look{}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, pull := range pulls {
		last := w.seen[pull]
		group.Go(func() error {
			now := s.lookIfChanged(ctx, pull, last)
			mu.Lock()
			defer mu.Unlock()
			seen[pull] = now
			return nil
		})
	}
	_ = group.Wait() // none returns an error
	w.seen = seen
}

// lookIfChanged looks at a pull request if there may be something new, and returns
// what the last look was then.
func (s *Service) lookIfChanged(ctx context.Context, pull task.Key, last look) look {
	snapshot, err := s.Pulls.Get(ctx, pull, s.Pulls.MaxAge(pull))
	if err != nil || snapshot.Item.State != forge.Open {
		return last
	}
	updated := snapshot.Item.UpdatedAt
	if updated.Equal(last.updated) && s.Now().Sub(last.at) < lookAnyway || !s.lookAt(ctx, pull, true) {
		return last
	}
	if snapshot.ReadAt.Sub(updated) < settling {
		updated = time.Time{} // more may happen in the same moment
	}
	return look{s.Now(), updated}
}
