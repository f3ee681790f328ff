package store

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// RunReport is entries of the journal that an agent sends.
type RunReport struct {
	Task       task.ID
	Generation int64
	Events     []task.Event // in order, numbered by the agent without gaps
	Phase      task.Phase   // that the run has entered with them; empty if none
}

// RunEnd is how an agent ends its run.
type RunEnd struct {
	Task       task.ID
	Generation int64
	TokenHash  []byte // of the lease's token
	Outcome    string // what the agent says
	// Decide says which move is made of it, given the task and the halts that are
	// pending, while nobody else can change either, and which entries of the server go
	// into the journal with the end. Task and generation of the change that it returns
	// are of no account. Its error refuses the end. It may be asked again when the
	// transaction has to be repeated, and must do nothing but decide. The change names no halt,
	// and the store numbers the entries.
	Decide func(t task.Task, pending []Halt) (Change, []task.Event, error)
}

// EndedRun is a run that its agent has ended.
type EndedRun struct {
	Outcome string
	State   task.State // that the task came to by it
}

// Runs keeps what agents do with the tasks that they hold.
type Runs interface {
	// Report appends entries of the agent to the journal and returns the greatest
	// sequence that is stored then. Entries that are there already are left as
	// they are. It fails with StaleGeneration if the run is over, with Invalid if
	// the entries are not in order, and with Conflict if an entry before them is
	// missing; nothing is stored then.
	Report(ctx context.Context, report RunReport) (acknowledged int64, err error)
	// EndRun ends a run and remembers how. It fails with LeaseLost if the task is
	// not running in that generation under that token.
	EndRun(ctx context.Context, end RunEnd) (task.Task, error)
	// EndedRun tells how the run of that token ended, or NotFound if its agent did
	// not end it.
	EndedRun(ctx context.Context, id task.ID, generation int64, tokenHash []byte) (EndedRun, error)
	// LastEvent returns the last entry of a kind in the task's journal, or
	// NotFound.
	LastEvent(ctx context.Context, id task.ID, kind task.EventKind) (task.Event, error)
	// RunActions returns the writes of a kind that the runs of a task have put into the
	// outbox in the generations from first to last, whatever became of them, oldest first.
	RunActions(ctx context.Context, id task.ID, first, last int64, kind string) ([]Action, error)
}

// Halt is a stop or a pause that is wanted of a task and has not come about.
type Halt struct {
	Task   task.ID
	Signal task.Signal // stop or pause
	Reason task.Reason
	At     time.Time // when it was asked for
}

// GeneralPause is a pause of everything. It is in force while there is one from
// any source.
type GeneralPause struct {
	Source string // who asks for it
	By     string // the login of the person who did, if it was one
	At     time.Time
}

// Halts keeps the halts that are pending. A halt belongs to a task, not to a run:
// it outlasts the loss of an agent. Whatever ends the task, and a new assignment,
// removes its halts; so does a pause, or the end of one, with a pending pause. Only a
// person's pause stays pending while the task waits for an answer, and takes over when the
// task would go on with the answer: it is paused for ReasonPauseRequested then.
type Halts interface {
	// RequestHalt notes that a halt is wanted and returns the task as it is. A
	// halt with the same signal that is pending stays as it is: noted is false
	// then. But a pause for ReasonPauseRequested takes the place of a pause of
	// everything or of an agent, be it pending or the one that the task is in: those
	// end by themselves, and this one only when a person says so. It fails with NotFound,
	// and with an *task.IllegalMoveError if the task has ended.
	RequestHalt(ctx context.Context, halt Halt) (t task.Task, noted bool, err error)
	// CancelHalt removes a halt, if it is for the reason unless that is empty, and
	// reports whether it was pending.
	CancelHalt(ctx context.Context, id task.ID, signal task.Signal, reason task.Reason) (bool, error)
	// HaltsOf returns what is pending for a task, a stop first.
	HaltsOf(ctx context.Context, id task.ID) ([]Halt, error)
	// ListHalts returns everything that is pending, oldest first.
	ListHalts(ctx context.Context) ([]Halt, error)

	// PauseAll notes that a source wants everything paused. While any source does,
	// no task is handed out: Queue, HandOut and Claim find none. First is false if the
	// source wanted it already.
	PauseAll(ctx context.Context, pause GeneralPause) (first bool, err error)
	// ResumeAll takes back what a source wanted, and reports whether it did.
	ResumeAll(ctx context.Context, source string) (bool, error)
	// GeneralPauses returns who wants everything paused, oldest first.
	GeneralPauses(ctx context.Context) ([]GeneralPause, error)
}
