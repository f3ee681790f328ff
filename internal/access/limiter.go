package access

import (
	"maps"
	"sync"
	"time"
)

// The first failures are free, since people mistype. Then each doubles the wait,
// up to a bound that keeps the owner of an account from being locked out for long
// by someone else.
const (
	freeFailures  = 5
	firstWait     = 2 * time.Second
	longestWait   = 5 * time.Minute
	forgetFailure = 30 * time.Minute
	mostNames     = 10_000
)

// Limiter slows down who fails again and again. It counts in this process only:
// with n servers someone gets n times the tries. The zero value is ready.
type Limiter struct {
	mutex    sync.Mutex
	failures map[string]failures
}

type failures struct {
	count int
	last  time.Time
}

func (f failures) until() time.Time {
	if f.count <= freeFailures {
		return time.Time{}
	}
	wait := longestWait
	if more := f.count - freeFailures - 1; more < 10 {
		wait = min(wait, firstWait<<more)
	}
	return f.last.Add(wait)
}

// Wait returns how long the one that waits longest of the names has to wait.
func (l *Limiter) Wait(now time.Time, names ...string) time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	longest := time.Duration(0)
	for _, name := range names {
		longest = max(longest, l.failures[name].until().Sub(now))
	}
	return longest
}

// Failed counts a failure for each name.
func (l *Limiter) Failed(now time.Time, names ...string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.failures == nil {
		l.failures = make(map[string]failures)
	}
	if len(l.failures) > mostNames {
		maps.DeleteFunc(l.failures, func(_ string, f failures) bool { return now.After(f.until()) })
	}
	for _, name := range names {
		f := l.failures[name]
		if now.Sub(f.last) > forgetFailure {
			f.count = 0
		}
		l.failures[name] = failures{f.count + 1, now}
	}
}

// Forget clears the failures of a name.
func (l *Limiter) Forget(name string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.failures, name)
}
