package limit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxCallers is how many callers are remembered; when there are more, those
	// who have been quiet are forgotten.
	maxCallers = 20_000
	quiet      = time.Minute
)

// Rate counts the requests of callers over time, by what tells them apart.
type Rate struct {
	every rate.Limit // 0: any number
	burst int

	mutex   sync.Mutex
	callers map[string]*counted
}

type counted struct {
	limiter *rate.Limiter
	last    time.Time
}

// NewRate lets each caller make so many requests in a second, and most at once. With 0 in
// a second there is no limit.
func NewRate(perSecond float64, most int) *Rate {
	return &Rate{every: rate.Limit(perSecond), burst: max(most, 1), callers: make(map[string]*counted)}
}

// Allow reports whether the caller may make one more request now.
func (a *Rate) Allow(name string, now time.Time) bool {
	if a.every <= 0 {
		return true
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	found := a.callers[name]
	if found == nil {
		a.forget(now)
		found = &counted{limiter: rate.NewLimiter(a.every, a.burst)}
		a.callers[name] = found
	}
	found.last = now
	return found.limiter.AllowN(now, 1)
}

// forget makes room for one more. When everyone is busy it forgets all: then
// some are given more than they should, which is better than running out of
// memory.
func (a *Rate) forget(now time.Time) {
	if len(a.callers) < maxCallers {
		return
	}
	for name, one := range a.callers {
		if now.Sub(one.last) > quiet {
			delete(a.callers, name)
		}
	}
	if len(a.callers) >= maxCallers {
		clear(a.callers)
	}
}
