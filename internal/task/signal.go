package task

import "slices"

// Signal is something that reaches a run from outside while it works.
type Signal string

// The signals. Where several arrive together the first of [Signals] wins: a
// stop beats a pause, and a pause beats new comments.
const (
	SignalStop     Signal = "stop"
	SignalPause    Signal = "pause"
	SignalComments Signal = "comments"
)

// Signals lists the signals in the order in which a checkpoint looks at them.
var Signals = []Signal{SignalStop, SignalPause, SignalComments}

// FirstSignal returns the signal that a checkpoint acts on when these have
// arrived, or "" when none has.
func FirstSignal(arrived ...Signal) Signal {
	for _, signal := range Signals {
		if slices.Contains(arrived, signal) {
			return signal
		}
	}
	return ""
}
