package transport

import (
	"slices"
	"sync"
	"time"
)

// Limit is how many writes there may be in any stretch of time of that length.
type Limit struct {
	Count int
	Per   time.Duration
}

// schedule gives writes the moments at which they may happen, in the order in
// which they ask, so that every limit holds in every stretch of time.
type schedule struct {
	limits []Limit
	keep   int // of the given moments, as many as the largest limit looks back

	mu    sync.Mutex
	given []time.Time // ascending; some may lie ahead
}

func newSchedule(limits []Limit) *schedule {
	s := &schedule{}
	for _, limit := range limits {
		if limit.Count > 0 && limit.Per > 0 {
			s.limits = append(s.limits, limit)
			s.keep = max(s.keep, limit.Count)
		}
	}
	return s
}

// reserve returns the next free moment and takes it, unless it is further away
// than the longest wait: then ok is false and nothing is taken.
func (s *schedule) reserve(now time.Time, longest time.Duration) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at = now
	if len(s.given) > 0 {
		at = later(at, s.given[len(s.given)-1])
	}
	for _, limit := range s.limits {
		if before := len(s.given) - limit.Count; before >= 0 {
			at = later(at, s.given[before].Add(limit.Per))
		}
	}
	if at.Sub(now) > longest {
		return at, false
	}
	if s.keep > 0 {
		s.given = append(s.given, at)
		s.given = slices.Delete(s.given, 0, max(0, len(s.given)-s.keep))
	}
	return at, true
}

// release gives back a moment that was not used.
func (s *schedule) release(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.given, at.Equal); i >= 0 {
		s.given = slices.Delete(s.given, i, i+1)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
