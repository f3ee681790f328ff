package store

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// NewTask is what intake knows of a task that it wants done.
type NewTask struct {
	Key      task.Key
	Type     task.Type
	Role     task.Role
	Title    string
	URL      string
	Priority int
	ReadyAt  time.Time // not handed out before; zero means at once
	Reason   task.Reason
	// Occasion is the one thing that the task is for; see [task.Task]. The same
	// occasion does not queue a task twice. Without one, that of the assignment
	// before is kept.
	Occasion string
	Branch   string // kept from the first assignment that names one
	Author   string
	// BlockedBy are open items that have to be closed first.
	BlockedBy task.Keys
	// AssignedOn are items that the bot is on now; see [task.Task].
	AssignedOn task.Keys
}

// Description is what an item says of its task and may say differently later.
type Description struct {
	Role      task.Role
	Title     string
	URL       string
	Priority  int
	BlockedBy task.Keys
}

// Effects returns the forge writes that go with a move, given the task before
// and after it. They are put into the outbox in the same transaction, so that a
// crash can lose neither. It must not do anything else, and may be called again
// when the transaction has to be repeated. A task that is new has no state and
// generation 0 before. Nil means none.
type Effects func(before, after task.Task) []Action

// Change is a request to move a task.
type Change struct {
	Task task.ID
	// Generation is the one that the caller works in. If the task has another
	// by now the change is refused as stale. Zero means any: for what a person
	// or the server decides.
	Generation int64
	Trigger    task.Trigger
	Reason     task.Reason
	// Detail is what the forge, a tool or the run said about the reason, and Hint what can be
	// done about it. They are cut after [task.LongestDetail] bytes, and are gone with the next move.
	Detail, Hint string
	Effects      Effects
	// ReadyAt is when a task that goes back into the queue may be handed out
	// again; zero leaves it as it is.
	ReadyAt time.Time
	// KeptUntil is until when people are told that they can fetch the work of a task that ends with the
	// change; zero if they are not. An earlier promise for later stays.
	KeptUntil time.Time
	// LeaseOver, unless zero, is the moment at which the task's lease must be over;
	// Conflict if it is held, because it was renewed.
	LeaseOver time.Time
	// Was, unless empty, is the reason that the task must still have; Conflict if it
	// has another.
	Was task.Reason
	// Halt, unless empty, says that the change is what a halt with this signal leads to:
	// Conflict if it is not pending any more, because it was taken back, or, of a pause,
	// because one for another reason has taken its place.
	Halt task.Signal
}

// TaskFilter narrows a listing. Zero fields do not narrow.
type TaskFilter struct {
	States       []task.State
	Reasons      []task.Reason
	Forge        task.Forge
	Repository   string
	Type         task.Type
	UpdatedSince time.Time // only tasks that changed at or after this moment
	SeenOn       bool      // only those with items on which the bot was seen
	Unreleased   bool      // only those whose item the bot was not seen off since
	OccasionEnd  string    // only those whose occasion ends with this
	After        task.ID   // only those that come after it in the listing
	Before       task.ID   // only those that are older than it
	IDStart      string    // only those whose id begins with this
	Repositories []string  // only those of one of these, whatever the case of the letters
	Number       int64     // only those of items with this number
	Newest       bool      // the newest first, not the oldest; not with After
	LastChanged  bool      // those that changed last first; not with After or Newest
	Limit        int       // 0 means all
}

// Tasks keeps tasks and moves them along the state machine. There is one task
// per item and type.
type Tasks interface { //nolint:interfacebloat // all that is done to one kind of record
	// Assign makes the task, or, if the item has one of this type that has
	// ended, queues it again in a new generation. If the task is active already,
	// or was assigned for the same occasion before, nothing changes and queued is
	// false.
	Assign(ctx context.Context, want NewTask, effects Effects) (t task.Task, queued bool, err error)
	// Move applies a trigger to a task and returns it as it is afterwards. It
	// fails with NotFound, StaleGeneration or an *task.IllegalMoveError, and
	// then nothing has changed. A move that begins a new generation also refuses
	// the writes of older ones that wait in the outbox, except those that a
	// sender has taken. Each move is an event in the task's journal, in the
	// generation that the move leads to. Claiming goes through Leases; here it is
	// Invalid.
	Move(ctx context.Context, change Change) (task.Task, error)
	// Describe brings a task that has not ended up to date with its item. It is
	// no move. A task that has ended stays as it is.
	Describe(ctx context.Context, id task.ID, as Description) error
	// Release notes that the bot is not on the item of the task.
	Release(ctx context.Context, id task.ID) error
	// SeenOn notes on which items the bot was seen since the task was assigned.
	SeenOn(ctx context.Context, id task.ID, items task.Keys) error
	// SetOccasion changes what a run is for, as far as that is known better now; it fails
	// with StaleGeneration if the run is over.
	SetOccasion(ctx context.Context, id task.ID, generation int64, occasion string) error
	// SetPhase records the phase of the run; it fails with StaleGeneration if
	// the run is over.
	SetPhase(ctx context.Context, id task.ID, generation int64, phase task.Phase) error
	// Task returns one task.
	Task(ctx context.Context, id task.ID) (task.Task, error)
	// TaskOf returns the task of an item.
	TaskOf(ctx context.Context, key task.Key, kind task.Type) (task.Task, error)
	// TaskOfBranch returns the development task whose work goes to the branch, the
	// oldest if there are several.
	TaskOfBranch(ctx context.Context, forge task.Forge, repository, branch string) (task.Task, error)
	// ListTasks returns the tasks that pass the filter.
	ListTasks(ctx context.Context, filter TaskFilter) ([]task.Task, error)
	// CountTasks returns how many tasks pass the filter, by their states. Its limit does not
	// matter.
	CountTasks(ctx context.Context, filter TaskFilter) (map[task.State]int, error)
}

// Claim is one agent's wish for one queued task.
type Claim struct {
	Task       task.ID
	Generation int64
	Agent      string
	TokenHash  []byte // of the lease's token; see package access
	// Process names the process of the agent, for EndLeases; empty if it is not known.
	Process   string
	ExpiresAt time.Time
}

// Queue is what there is to hand out at a moment.
type Queue struct {
	// Ready are queued tasks whose time has come: by lane, then the highest
	// priority, then the longest assigned.
	Ready     []task.Task
	Running   []task.Task
	NextReady time.Time // when the time of another one comes; zero if there is none
}

// Held is what is put into the outbox for the holder of a lease.
type Held struct {
	Task       task.ID
	Generation int64
	TokenHash  []byte
	Actions    []Action
}

// Leases hands tasks to agents. Whoever decides what is next reads the
// queue, chooses, and claims; if another server was quicker the claim
// yields nothing for that task and the next one is chosen.
type Leases interface {
	// Queue returns what is queued and what is running, as of one moment. While
	// everything is paused, nothing is ready. Of each
	// repository no more ready tasks are returned than perRepository, the first
	// ones that nothing blocks; 0 means all, with those that are blocked.
	Queue(ctx context.Context, now time.Time, perRepository int) (Queue, error)
	// HandOut reads the queue as Queue does, claims what choose makes of it, and
	// returns what Claim does. No other hand-out comes between the two, in any
	// process: so limits on what runs together hold. Choose may be asked several
	// times and must do nothing but decide. NextReady may be from a moment before.
	// If nothing is ready but blocked tasks, or nothing is left after another server
	// has handed out, choose is asked about a queue with NextReady and nothing else,
	// not even what runs; nothing is claimed then.
	HandOut(ctx context.Context, now time.Time, perRepository int, choose func(Queue) []Claim, effects Effects) ([]task.Task, error)
	// Claim makes each of the tasks running, held by its agent, and returns
	// those for which that succeeded, in the order given. A task that is no
	// longer queued in that generation, or that another caller is claiming at
	// this moment, is left out. Of any number of callers in any number of
	// processes, one at most is given a task's generation.
	Claim(ctx context.Context, claims []Claim, effects Effects) ([]task.Task, error)
	// Renew extends a lease, and never shortens it. It fails with LeaseLost if the
	// task is not running in that generation under that token.
	Renew(ctx context.Context, id task.ID, generation int64, tokenHash []byte, until time.Time) error
	// Holds reports, as nil or LeaseLost, whether the token holds the task's lease in
	// that generation. A lease that has run out is held until somebody ends it: while a
	// full disk lets nobody renew or end leases, runs go on.
	Holds(ctx context.Context, id task.ID, generation int64, tokenHash []byte) error
	// PutHeld puts actions into the outbox while the token holds the task's lease. It fails with
	// LeaseLost if it does not; nothing is put then.
	PutHeld(ctx context.Context, held Held) error
	// EndLeases makes the leases that were claimed for the processes run out, and
	// returns the tasks, which are running still: for processes that have ended. Of
	// those tokens none holds a task any more.
	EndLeases(ctx context.Context, processes []string) ([]task.Task, error)
	// Expired returns running tasks whose lease is no longer held at the given
	// moment, longest ago first.
	Expired(ctx context.Context, now time.Time, limit int) ([]task.Task, error)
}

// MaxEventBytes is how many bytes of data a page of a journal has, unless its first entry has more.
// Agents write the entries, and may be hostile.
const MaxEventBytes = 16 << 20

// Events keeps the journals of all tasks.
type Events interface {
	// Append stores events and gives each its position. An event whose task,
	// generation, source and sequence are there already is left as it is, so
	// that a sender may repeat what it is not sure of. Sequence 0 asks for the
	// next one of the source, and such an event is always new: the server's own
	// entries are numbered so, since moves put entries of the server there too.
	// It returns how many were new. All events of one call belong to one task;
	// NotFound if there is none, StaleGeneration if one of them is of a generation
	// that is over: nothing is stored then.
	Append(ctx context.Context, events []task.Event) (added int, err error)
	// EventsAfter returns events of a task whose position is greater than the
	// given one, in order. With a limit it returns no more of them than [MaxEventBytes]
	// either, but always one: who wants the rest asks until there is none.
	EventsAfter(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error)
	// EventsBefore returns the last events of a task, so many at most, whose position is less
	// than the given one, in order. Like EventsAfter it returns no more of them than
	// [MaxEventBytes], but always one: fewer than asked for does not mean that there are none
	// before them.
	EventsBefore(ctx context.Context, id task.ID, position int64, limit int) ([]task.Event, error)
	// LastFrom returns the last entry that a source has written, in any
	// generation, or NotFound.
	LastFrom(ctx context.Context, id task.ID, source task.EventSource) (task.Event, error)
	// EventsOf returns all events of a task that are of the given kinds, in order.
	EventsOf(ctx context.Context, id task.ID, kinds ...task.EventKind) ([]task.Event, error)
	// EventsOfAfter returns events of the given kinds as EventsAfter returns those of all: so many
	// at most after a position, and no more than [MaxEventBytes].
	EventsOfAfter(ctx context.Context, id task.ID, position int64, limit int, kinds ...task.EventKind) ([]task.Event, error)
	// LastPosition returns the position of the newest event of a task, 0 if it has
	// none.
	LastPosition(ctx context.Context, id task.ID) (int64, error)
	// LastSequence returns the greatest sequence stored of a source in a
	// generation, 0 if none: where a sender that starts again goes on.
	LastSequence(ctx context.Context, id task.ID, generation int64, source task.EventSource) (int64, error)
}
