package task

import "time"

// Type says what kind of work a task is.
type Type string

// The types of task.
const (
	Development Type = "development"
	Review      Type = "review"
)

// Types lists the types.
var Types = []Type{Development, Review}

// Valid reports whether the type is one that exists.
func (t Type) Valid() bool { return t == Development || t == Review }

// Role is what the role label of an item asks of an agent, for example
// "BACKENDCODER". An agent has no role of its own: it takes on the task's.
type Role string

// ID identifies a task for its whole life, over all of its generations.
type ID string

// Task is one piece of work on one item of a forge.
//
// A task is one row for its whole life. Each time it is put into the queue a new
// generation begins, and a generation is handed to one agent at most: it is the
// fencing token that every write for the task has to name.
type Task struct {
	ID         ID
	Key        Key
	Type       Type
	Role       Role
	Title      string
	URL        string
	State      State
	Generation int64
	Phase      Phase  // of the run of this generation; empty before it begins
	Reason     Reason // why the task is in this state
	Priority   int    // larger is sooner
	Attempts   int    // runs begun since the task was last assigned
	ReadyAt    time.Time
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Lease      Lease // zero unless the task is running
}

// Lease is an agent's hold on a running task. It ends at ExpiresAt unless the
// agent renews it.
type Lease struct {
	Agent     string
	ExpiresAt time.Time
}

// Held reports whether an agent holds the lease at the given moment.
func (l Lease) Held(at time.Time) bool { return l.Agent != "" && at.Before(l.ExpiresAt) }
