package agent

import (
	"cmp"
	"slices"
	"sync"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// inbox is what a run was told and has not asked for yet.
type inbox struct {
	mutex     sync.Mutex
	comments  []task.CommentEntry // by position
	last      int64
	halt      *phase.Halt
	signalled chan struct{} // closed with the first halt
}

func newInbox() *inbox { return &inbox{signalled: make(chan struct{})} }

// begin says from which position on comments are new to the run. After the first time it is the
// last one that was taken in.
func (i *inbox) begin(a wire.Assignment) int64 {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if a.Resume != nil {
		i.last = max(i.last, a.Resume.Comments)
		return i.last
	}
	for _, comment := range a.Comments {
		i.last = max(i.last, comment.Position)
	}
	return i.last
}

// add takes comments in, each position once, and returns the last position.
func (i *inbox) add(comments []task.CommentEntry) int64 {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	for _, comment := range comments {
		if comment.Position > i.last {
			i.comments = append(i.comments, comment)
			i.last = comment.Position
		}
	}
	return i.last
}

// after returns what became of comments after a position: of each comment once, as it
// is now, by the position of the last change. A run that has taken up some of them has
// then taken up all that come before, and with the last of them everything that there is.
func (i *inbox) after(position int64) []task.CommentEntry {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	type version struct {
		kind    task.CommentKind
		id      string
		refused bool // of that only the record is told
	}
	var found []task.CommentEntry
	var first []task.CommentEntry
	at := map[version]int{}
	for _, comment := range i.comments {
		if comment.Position <= position {
			continue
		}
		of := version{comment.Kind, comment.ID, comment.Refused != ""}
		place, known := at[of]
		if !known {
			at[of] = len(found)
			found, first = append(found, comment), append(first, comment)
			continue
		}
		found[place] = since(first[place], comment)
	}
	found = slices.DeleteFunc(found, func(c task.CommentEntry) bool { return c.Change == "" })
	slices.SortFunc(found, func(a, b task.CommentEntry) int { return cmp.Compare(a.Position, b.Position) })
	if len(found) > 0 {
		// What was written and taken back has nothing to tell, so the last one passes it.
		found[len(found)-1].Position = i.comments[len(i.comments)-1].Position
	}
	return found
}

// since is the last of several versions of a comment for a run that was told of none of
// them. Its change is empty if there is nothing to tell.
func since(first, last task.CommentEntry) task.CommentEntry {
	was := first.Before
	if first.Change == task.CommentDeleted {
		was = first.Body
	}
	net := task.Net(first.Change, last.Change)
	switch {
	case net == task.CommentEdited && last.Body == was && last.Refused == "":
		net = ""
	case net == task.CommentDeleted:
		last.Body = was
	}
	last.Change, last.Before = net, ""
	if net == task.CommentEdited {
		last.Before = was
	}
	return last
}

// halted notes a halt. Of several the strongest counts.
func (i *inbox) halted(halt *phase.Halt) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.halt == nil {
		close(i.signalled)
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
