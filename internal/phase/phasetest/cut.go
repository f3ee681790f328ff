package phasetest

import "fmt"

// Cut is a moment at which a process goes away, once: right after an entry of the journal.
type Cut struct {
	Entry int // its number; 0 for never
	// Lost says that the machine goes too, and that what was not synced is lost: the entry and
	// those right before it that are followed.
	Lost bool
}

// String names it.
func (c Cut) String() string {
	if c.Lost {
		return fmt.Sprint(c.Entry, "-lost")
	}
	return fmt.Sprint(c.Entry)
}

// CutAt makes the process of a run go away.
func (w *World) CutAt(cut Cut) { w.cutAt = cut }

// Cuts are the moments at which a run like this one can be cut off, from an entry on: after
// each step entries, and both ways after each entry that is followed.
func (w *World) Cuts(from, step int) []Cut {
	var cuts []Cut
	for entry := from; entry <= len(w.events); entry++ {
		if w.followed[entry] {
			cuts = append(cuts, Cut{Entry: entry, Lost: true})
		}
		if w.followed[entry] || (entry-from)%step == 0 {
			cuts = append(cuts, Cut{Entry: entry})
		}
	}
	return cuts
}

// Durable reports whether no entry can be lost any more.
func (w *World) Durable() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.followed[len(w.events)]
}

// cut makes the process go away now. The caller holds the lock.
func (w *World) cut() {
	for w.cutAt.Lost && w.followed[len(w.events)] {
		w.events = w.events[:len(w.events)-1]
	}
	w.cutAt = Cut{}
	w.crash()
}
