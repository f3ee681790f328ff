package llm

import "sync"

// Meter estimates how many tokens a conversation has between exact counts: the
// last exact count plus what was added since, at the bytes per token that this
// very conversation has shown. Source text, Japanese and base64 differ by more
// than a factor of two, so that no fixed ratio would do.
//
// The zero value is ready. It may be used by several goroutines.
type Meter struct {
	mu     sync.Mutex
	size   int     // bytes at the last exact count
	tokens int64   // at the last exact count; 0 before the first
	ratio  float64 // bytes per token of what is added
	steps  int     // from which the ratio was learned
}

const (
	// firstRatio stands in until the first exact count. It is low, so that the
	// guess is high.
	firstRatio = 3.0
	// Whatever the counts say, no text has less or more bytes per token.
	leastRatio, mostRatio = 0.5, 12.0
	// A step smaller than this says little about the ratio.
	leastStep = 256
)

// Observe takes an exact count of tokens for a conversation of this size.
func (m *Meter) Observe(size int, tokens int64) {
	if size <= 0 || tokens <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	step, grown := size-m.size, tokens-m.tokens
	switch {
	case m.tokens == 0:
		m.ratio = bounded(float64(size) / float64(tokens))
	case step >= leastStep && grown > 0, step <= -leastStep && grown < 0:
		// The first count also has tokens in it that no text of ours explains, so
		// that it counts for nothing as soon as there is a step.
		seen := bounded(float64(step) / float64(grown))
		if m.steps > 0 {
			seen = (m.ratio + seen) / 2
		}
		m.ratio = seen
		m.steps++
	}
	m.size, m.tokens = size, tokens
}

// Estimate returns how many tokens a conversation of this size has.
func (m *Meter) Estimate(size int) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tokens == 0 {
		return int64(float64(size)/firstRatio) + 1
	}
	if size < m.size/2 {
		// What went may have been of another kind than what stayed.
		return int64(float64(size)*float64(m.tokens)/float64(m.size)) + 1
	}
	estimate := m.tokens + int64(float64(size-m.size)/m.ratio)
	return max(estimate, int64(float64(size)/mostRatio)+1)
}

// Exact reports whether the estimate rests on an exact count.
func (m *Meter) Exact() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tokens > 0
}

func bounded(ratio float64) float64 { return min(max(ratio, leastRatio), mostRatio) }
