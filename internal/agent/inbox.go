package agent

import (
	"sync"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// inbox is what a run was told and has not asked for yet.
type inbox struct {
	mutex    sync.Mutex
	comments []phase.Comment // by position
	last     int64
	halt     *phase.Halt
	told     chan struct{} // closed with the first halt
}

func newInbox() *inbox { return &inbox{told: make(chan struct{})} }

// begin says from which position on comments are new to the run.
func (i *inbox) begin(a wire.Assignment) int64 {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if a.Resume != nil {
		i.last = a.Resume.Comments
		return i.last
	}
	for _, comment := range a.Comments {
		i.last = max(i.last, comment.Position)
	}
	return i.last
}

// add takes comments in, each position once, and returns the last position.
func (i *inbox) add(comments []wire.Comment) int64 {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	for _, comment := range comments {
		if comment.Position > i.last {
			i.comments = append(i.comments, commentOf(comment))
			i.last = comment.Position
		}
	}
	return i.last
}

// after returns the comments after a position.
func (i *inbox) after(position int64) []phase.Comment {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	var found []phase.Comment
	for _, comment := range i.comments {
		if comment.Position > position {
			found = append(found, comment)
		}
	}
	return found
}

// halted notes a halt. Of several the strongest counts.
func (i *inbox) halted(halt *phase.Halt) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.halt == nil {
		close(i.told)
	} else if task.FirstSignal(i.halt.Signal, halt.Signal) == i.halt.Signal {
		return
	}
	i.halt = halt
}

// strongest returns the halt that counts, or nil.
func (i *inbox) strongest() *phase.Halt {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.halt
}
