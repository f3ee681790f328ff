package broker

import (
	"sync"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Notifier wakes those who wait for something to happen to a task. It carries no
// news: whoever is woken looks into the database. It rings when the database says
// that something has happened, on whichever server. Its methods may be called by
// any number of goroutines, and the zero value is ready to use.
type Notifier struct {
	mu      sync.Mutex
	waiting map[task.ID]map[chan struct{}]struct{}
}

// Follow has the notifier ring for every notice, until stop is called.
func (b *Notifier) Follow(notices store.Notices) (stop func()) {
	return notices.Listen(func(notice store.Notice) {
		switch notice.Topic {
		case store.BellRung, store.TasksChanged:
			b.ring(task.ID(notice.Subject))
		case store.Anything:
			b.ringAll()
		}
	})
}

// everyone is the task of those who listen for all tasks.
const everyone task.ID = ""

// ListenAll is Listen for every task.
func (b *Notifier) ListenAll() (rung <-chan struct{}, stop func()) { return b.Listen(everyone) }

// Listen returns a channel that has a value after every ring for the task; rings
// that come close together are one. The caller calls stop when it no longer
// listens.
func (b *Notifier) Listen(id task.ID) (rung <-chan struct{}, stop func()) {
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

// ring wakes those who listen for the task.
func (b *Notifier) ring(id task.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ear := range b.waiting[id] {
		lifecycle.Signal(ear)
	}
	if id == everyone {
		return
	}
	for ear := range b.waiting[everyone] {
		lifecycle.Signal(ear)
	}
}

// ringAll wakes everyone.
func (b *Notifier) ringAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ears := range b.waiting {
		for ear := range ears {
			lifecycle.Signal(ear)
		}
	}
}
