package items

import (
	"context"
	"slices"
	"sync"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/task"
)

// Queue holds items that are worth a look, each once, the oldest first. An item that is
// added while it is being looked at is in the queue again.
type Queue struct {
	ready chan struct{} // has room for one: there is something in the queue

	mu   sync.Mutex
	keys []task.Key
	has  map[task.Key]bool
}

// NewQueue returns an empty queue.
func NewQueue() *Queue { return &Queue{ready: make(chan struct{}, 1), has: map[task.Key]bool{}} }

// Add puts items into the queue that are not there yet. It does not wait.
func (q *Queue) Add(keys ...task.Key) {
	if q.Return(keys...); len(keys) > 0 {
		lifecycle.Signal(q.ready)
	}
}

// Return puts items back that could not be read. Unlike Add it wakes nobody: the caller
// takes them out again after a pause.
func (q *Queue) Return(keys ...task.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		if !q.has[key] {
			q.has[key] = true
			q.keys = append(q.keys, key)
		}
	}
}

// Next waits for an item and takes it out. It is false when the context has ended.
func (q *Queue) Next(ctx context.Context) (key task.Key, found bool) {
	for {
		select {
		case <-ctx.Done():
			return task.Key{}, false
		case <-q.ready:
		}
		if taken := q.take(1); len(taken) > 0 {
			return taken[0], true
		}
	}
}

// Ready has something in it when there may be something in the queue.
func (q *Queue) Ready() <-chan struct{} { return q.ready }

// Take takes out everything, without waiting.
func (q *Queue) Take() []task.Key { return q.take(-1) }

// take takes out as many as there are up to most, or all if that is negative, and leaves a
// signal for the next caller if some stay.
func (q *Queue) take(most int) []task.Key {
	q.mu.Lock()
	defer q.mu.Unlock()
	if most < 0 || most > len(q.keys) {
		most = len(q.keys)
	}
	taken := slices.Clone(q.keys[:most])
	q.keys = q.keys[most:]
	for _, key := range taken {
		delete(q.has, key)
	}
	if len(q.keys) > 0 {
		lifecycle.Signal(q.ready)
	}
	return taken
}
