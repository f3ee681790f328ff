package workspace

import (
	"context"
	"sync"
)

// removals are folders that are removed beside all else, one after the other.
type removals struct {
	mu   sync.Mutex
	last chan struct{} // is closed when all that began are removed; nil if none was begun
}

// begin has a folder removed. Who calls it calls wait later.
func (r *removals) begin(remove func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, done := r.last, make(chan struct{})
	r.last = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		remove()
	}()
}

// wait waits until all that began are removed, or until the context ends.
func (r *removals) wait(ctx context.Context) error {
	select {
	case <-r.done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// done is closed when all that began are removed.
func (r *removals) done() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = make(chan struct{})
		close(r.last)
	}
	return r.last
}
