package broker

import (
	"sync"

	"github.com/toryo-dev/toryo/internal/task"
)

// Bell wakes those who wait for something to happen to a task. It carries no
// news: whoever is woken looks into the database. Its methods may be called by
// any number of goroutines, and the zero value is ready to use.
type Bell struct {
	// Pass, if set, passes a ring on to the other servers, which call Heard.
	Pass func(id task.ID)

	mu      sync.Mutex
	waiting map[task.ID]map[chan struct{}]struct{}
}

// everyone is the task of those who listen for all tasks.
const everyone task.ID = ""

// ListenAll is Listen for every task.
func (b *Bell) ListenAll() (rung <-chan struct{}, stop func()) { return b.Listen(everyone) }

// Listen returns a channel that has a value after every ring for the task; rings
// that come close together are one. The caller calls stop when it no longer
// listens.
func (b *Bell) Listen(id task.ID) (rung <-chan struct{}, stop func()) {
	ear := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[task.ID]map[chan struct{}]struct{}{}
	}
	if b.waiting[id] == nil {
		b.waiting[id] = map[chan struct{}]struct{}{}
	}
	b.waiting[id][ear] = struct{}{}
	return ear, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiting[id], ear)
		if len(b.waiting[id]) == 0 {
			delete(b.waiting, id)
		}
	}
}

// Ring wakes everyone who listens for the task, on every server.
func (b *Bell) Ring(id task.ID) {
	b.Heard(id)
	if b.Pass != nil {
		b.Pass(id)
	}
}

// Heard wakes those who listen on this server.
func (b *Bell) Heard(id task.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ear := range b.waiting[id] {
		signal(ear)
	}
	if id == everyone {
		return
	}
	for ear := range b.waiting[everyone] {
		signal(ear)
	}
}
