package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// sightingsEvery is how often it is written down which agents were heard of: all
// at once, so that many waiting agents cost the database little.
const sightingsEvery = 10 * time.Second

// sightingStore is what sightings are written to.
type sightingStore interface {
	AgentsSeen(ctx context.Context, seen map[string]time.Time) error
}

// sightings collects when agents were heard of.
type sightings struct {
	store sightingStore
	log   *slog.Logger
	now   func() time.Time

	mutex sync.Mutex
	seen  map[string]time.Time // by the id of the token
}

func (s *sightings) note(token string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.seen == nil {
		s.seen = make(map[string]time.Time)
	}
	s.seen[token] = s.now()
}

// run writes down what was collected until the context ends, and a last time
// then.
func (s *sightings) run(ctx context.Context) {
	ticker := time.NewTicker(sightingsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.write(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
			s.write(last)
			cancel()
			return
		}
	}
}

func (s *sightings) write(ctx context.Context) {
	s.mutex.Lock()
	seen := s.seen
	s.seen = nil
	s.mutex.Unlock()
	if len(seen) == 0 {
		return
	}
	if err := s.store.AgentsSeen(ctx, seen); err != nil {
		s.log.WarnContext(ctx, "failed to record when agents were last seen", "error", err)
	}
}
