package broker

import (
	"sync"
	"sync/atomic"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// Notifier wakes those who wait for something to happen to a task. It carries no
// news: whoever is woken looks into the database. It rings when the database says
// that something has happened, on whichever server. Its methods may be called by
// any number of goroutines, and the zero value is ready to use.
type Notifier struct {
	tasks, board atomic.Int64 // how many notices there were

	mu      sync.Mutex
	waiting map[task.ID]map[chan struct{}]bool // whether the journal is waited for too
}

// Follow has the notifier ring for every notice, until stop is called.
func (b *Notifier) Follow(notices store.Notices) (stop func()) {
	return notices.Listen(func(notice store.Notice) {
		b.take(notice.Topic)
		switch notice.Topic {
		case store.BellRung, store.TasksChanged, store.WaitsChanged:
			b.ring(task.ID(notice.Subject), false)
		case store.JournalGrew:
			b.ring(task.ID(notice.Subject), true)
		case store.Anything:
			b.ringAll()
		}
	})
}

// take counts a notice.
func (b *Notifier) take(topic store.Topic) {
	switch topic {
	case store.TasksChanged, store.WaitsChanged:
		b.tasks.Add(1)
	case store.BoardChanged, store.BoardChecked:
		b.board.Add(1)
	case store.Anything:
		b.tasks.Add(1)
		b.board.Add(1)
	}
}

// Counts is how often something has happened to tasks, besides what is in their journals,
// and on the board. While a number stays the same, nothing has.
func (b *Notifier) Counts() (tasks, board int64) { return b.tasks.Load(), b.board.Load() }

// everyone is the task of those who listen for all tasks.
const everyone task.ID = ""

// ListenAll is Listen for every task.
func (b *Notifier) ListenAll() (rung <-chan struct{}, stop func()) { return b.Listen(everyone) }

// Listen returns a channel that has a value after every ring for the task; rings
// that come close together are one. New entries in its journal do not ring: they are what
// its own run says. The caller calls stop when it no longer listens.
func (b *Notifier) Listen(id task.ID) (rung <-chan struct{}, stop func()) { return b.listen(id, false) }

// ListenToJournal is Listen, and also for new entries in the journal.
func (b *Notifier) ListenToJournal(id task.ID) (rung <-chan struct{}, stop func()) {
	return b.listen(id, true)
}

func (b *Notifier) listen(id task.ID, journal bool) (rung <-chan struct{}, stop func()) {
	ear := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[task.ID]map[chan struct{}]bool{}
	}
	if b.waiting[id] == nil {
		b.waiting[id] = map[chan struct{}]bool{}
	}
	b.waiting[id][ear] = journal
	return ear, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiting[id], ear)
		if len(b.waiting[id]) == 0 {
			delete(b.waiting, id)
		}
	}
}

// ring wakes those who listen for the task; if only its journal has grown, those who listen
// to that.
func (b *Notifier) ring(id task.ID, journal bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := []task.ID{id, everyone}
	if id == everyone {
		of = of[1:]
	}
	for _, one := range of {
		for ear, toJournal := range b.waiting[one] {
			if toJournal || !journal {
				lifecycle.Signal(ear)
			}
		}
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
