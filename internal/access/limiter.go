package access

import (
	"crypto/sha256"
	"maps"
	"math"
	"sync"
	"time"
)

// After the failures that are free each doubles the wait, up to a bound that keeps
// the owner of an account from being locked out for long by someone else.
const (
	firstWait     = 2 * time.Second
	longestWait   = 5 * time.Minute
	forgetFailure = 30 * time.Minute
	mostNames     = 10_000
)

// Limiter slows down who fails again and again. It counts in this process only:
// with n servers someone gets n times the tries.
type Limiter struct {
	// Free is how many failures have no consequence, since people mistype.
	Free int

	mutex    sync.Mutex
	failures map[[32]byte]failures
}

type failures struct {
	count int
	last  time.Time
}

func (l *Limiter) until(f failures) time.Time {
	if f.count <= l.Free {
		return time.Time{}
	}
	wait := longestWait
	if more := f.count - l.Free - 1; more < 10 {
		wait = min(wait, firstWait<<more)
	}
	return f.last.Add(wait)
}

// Wait returns how long the name has to wait, 0 if it need not.
func (l *Limiter) Wait(now time.Time, name string) time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return max(0, l.until(l.failures[keyOf(name)]).Sub(now))
}

// Failed counts a failure.
func (l *Limiter) Failed(now time.Time, name string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.failures == nil {
		l.failures = make(map[[32]byte]failures)
	}
	if len(l.failures) >= mostNames {
		maps.DeleteFunc(l.failures, func(_ [32]byte, f failures) bool { return now.After(l.until(f)) })
	}
	if len(l.failures) >= mostNames {
		l.forgetFewest()
	}
	f := l.failures[keyOf(name)]
	if now.Sub(f.last) > forgetFailure {
		f.count = 0
	}
	l.failures[keyOf(name)] = failures{f.count + 1, now}
}

// forgetFewest makes room when everyone has to wait: whoever failed least often is
// forgotten. To forget all would let someone end the wait of one name by failing with
// many others.
func (l *Limiter) forgetFewest() {
	fewest := math.MaxInt
	for _, f := range l.failures {
		fewest = min(fewest, f.count)
	}
	maps.DeleteFunc(l.failures, func(_ [32]byte, f failures) bool { return f.count == fewest })
}

// keyOf has the same size for every name, however long that is.
func keyOf(name string) [32]byte { return sha256.Sum256([]byte(name)) }

// Forget clears the failures of a name.
func (l *Limiter) Forget(name string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.failures, keyOf(name))
}
