package lifecycle

import "context"

// Mutex is a lock for which one waits no longer than a context lasts. Make it with
// [NewMutex].
type Mutex struct{ held chan struct{} }

// NewMutex returns a mutex that nobody holds.
func NewMutex() Mutex { return Mutex{make(chan struct{}, 1)} }

// Lock waits until the mutex is free and takes it. If the context ends before, the error is
// its cause, and the mutex is not taken.
func (m Mutex) Lock(ctx context.Context) error {
	select {
	case m.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TryLock takes the mutex if it is free, and reports whether it has.
func (m Mutex) TryLock() bool {
	select {
	case m.held <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock frees the mutex for the next.
func (m Mutex) Unlock() { <-m.held }
