package review

import (
	"context"
	"sync"
)

// queues lets one goroutine of this process at a time answer in a thread, in the
// order in which they came. Processes are kept apart by the store.
type queues struct {
	mu   sync.Mutex
	last map[string]chan struct{} // closed when the last that came has left
}

// enter waits for everyone who came before and returns what lets the next one in.
func (q *queues) enter(ctx context.Context, thread string, stop <-chan struct{}) (leave func(), err error) {
	q.mu.Lock()
	if q.last == nil {
		q.last = map[string]chan struct{}{}
	}
	before, mine := q.last[thread], make(chan struct{})
	q.last[thread] = mine
	q.mu.Unlock()
	leave = func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.last[thread] == mine {
			delete(q.last, thread)
		}
		close(mine)
	}
	if before == nil {
		return leave, nil
	}
	select {
	case <-before:
		return leave, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-stop:
		err = errStopping
	}
	// Whoever comes next still has to wait for those before us.
	go func() {
		<-before
		leave()
	}()
	return nil, err
}
