package task

import "slices"

// State is where a task stands. A task is in exactly one state, and the forge
// shows it as exactly one label.
type State string

// The states.
const (
	Queued  State = "queued"  // waits for an agent
	Running State = "running" // an agent holds a lease on it
	Paused  State = "paused"  // saved; goes back into the queue when resumed
	Stopped State = "stopped" // ended by a person; cannot be resumed
	Done    State = "done"    // ended well
	Failed  State = "failed"  // ended badly
)

// States lists the states in the order in which they are shown.
var States = []State{Queued, Running, Paused, Stopped, Done, Failed}

// Valid reports whether the state is one that exists.
func (s State) Valid() bool { return slices.Contains(States, s) }

// Terminal reports whether the state ends its generation: only a new generation
// leads out of it.
func (s State) Terminal() bool { return s == Stopped || s == Done || s == Failed }

// Succeeded reports whether a task in this state may be announced as done. It is
// the only place that decides so.
func (s State) Succeeded() bool { return s == Done }

// Active reports whether work on the task is under way or will go on by itself
// or when resumed.
func (s State) Active() bool { return s == Queued || s == Running || s == Paused }
