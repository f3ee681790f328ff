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
//
// An example. Agent A takes generation 3 and its machine is suspended. The lease runs out,
// the task is queued as generation 4, and agent B takes that. A wakes up and reports, pushes
// or ends the run, naming generation 3: each of these is refused with [StaleGeneration] or
// [LeaseLost], because the number is compared while the task's row is locked, in the same
// transaction as the write. So A needs no message to be harmless, and no clocks have to
// agree. What A had put into the outbox and was not sent yet is refused in the same way, but
// for what is true whatever becomes of the run.
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
	Detail     string // what the forge, a tool or the run said about that; empty if the reason says it all
	Hint       string // what can be done about it, where more is known than the fix of the reason
	Priority   int    // larger is sooner
	Attempts   int    // runs begun since the task was last assigned or resumed; see countAttempt
	ReadyAt    time.Time
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Lease      Lease // zero unless the task is running

	// Cause is what it was last assigned for: [ReasonAssigned],
	// [ReasonReviewDue], or a reason of a fix-up, see [Reason.FixUp]. Reason changes with each
	// move, Cause does not.
	Cause Reason
	// Occasion names the one thing that it was last assigned for: the head commit to review, the
	// review to answer, the commits that do not merge, or the commit whose checks failed. Empty
	// for a person's assignment.
	Occasion        string
	AssignedAt      time.Time
	FirstGeneration int64  // the generation that the last assignment began; those before are other work
	Branch          string // that the work goes to; stays the same for the life of the task
	LastAgent       string // that held it last
	Author          string // the agent that wrote what is to be reviewed
	// BlockedBy are the open items that have to be closed first.
	BlockedBy Keys
	// AssignedOn are the items on which the bot was seen since the task was assigned: taking
	// it off one of them is a wish to stop. Only tasks that do not follow from the bot being
	// on their own item have any: what reviewers ask for, and reviews.
	AssignedOn Keys
	// Released says that the bot was seen off the item since the assignment, so
	// that it being on the item is a new assignment.
	Released bool
	// KeptUntil is until when people were told that they can fetch what the task has pushed; zero if they
	// were not.
	KeptUntil time.Time
}

// The roles of items that no role label is on.
const (
	DefaultRole       Role = "CODER"
	DefaultReviewRole Role = "REVIEWER"
)

// LongestDetail is how many bytes are kept of what was said about the state of a task, and of a
// hint.
const LongestDetail = 4000

// Lane is the first thing that decides what is next; smaller is sooner.
type Lane int

// The lanes: reviews that are due, fix-ups of pull requests, everything else.
const (
	ReviewLane Lane = iota
	FixUpLane
	DevelopmentLane
)

// Interrupted reports whether the task is queued because its agent was started again
// in the middle of it. It is handed out before all others, as if it had not been
// interrupted.
func (t *Task) Interrupted() bool { return t.State == Queued && t.Reason == ReasonAgentRestarted }

// Lane returns the lane of the task.
func (t *Task) Lane() Lane {
	switch {
	case t.Type == Review:
		return ReviewLane
	case t.Cause.FixUp():
		return FixUpLane
	default:
		return DevelopmentLane
	}
}

// Lease is an agent's hold on a running task. It ends at ExpiresAt unless the
// agent renews it.
type Lease struct {
	Agent     string
	ExpiresAt time.Time
}

// Held reports whether an agent holds the lease at the given moment.
func (l Lease) Held(at time.Time) bool { return l.Agent != "" && at.Before(l.ExpiresAt) }

// CheckBranch refuses every branch but the one that the task was given: a development
// task has one, and others have none.
func (t *Task) CheckBranch(branch string) error {
	if t.Type != Development {
		return Errorf(Forbidden, "a %s publishes nothing", t.Type)
	}
	if branch == "" || branch != t.Branch {
		return Errorf(Forbidden, "the branch of the task is %q, not %q", t.Branch, branch)
	}
	return nil
}

// WIPRef is where the work in progress of a task is, in the repository that it clones.
const WIPRef = "refs/toryo/wip"

// KeptRefs is where the work in progress of earlier assignments of a task is, each commit under its
// own name. People were told that they can fetch it.
const KeptRefs = "refs/toryo/kept/"

// AwaitsPeople reports whether the task is paused until people say something: the answer to a
// question of its run, or what they think of its plan.
func (t *Task) AwaitsPeople() bool { return t.State == Paused && t.Reason.AwaitsPeople() }

// AwaitsApproval reports whether the task is paused until people approve its plan.
func (t *Task) AwaitsApproval() bool { return t.State == Paused && t.Reason == ReasonAwaitingApproval }

// MostPlans is how many revisions of a plan people are shown. The last one is approved or not:
// comments do not revise it any more.
const MostPlans = 10

// PlanApproval is what a run is told about the approval of its plan.
type PlanApproval struct {
	Required bool `json:"required,omitempty" doc:"Nothing is built before people have approved the plan"`
	Approved int  `json:"approved,omitempty" doc:"The revision of the plan that is approved; 0 for none"`
	Discuss  bool `json:"discuss,omitempty" doc:"People have said something about the plan, by which it has to be revised"`
	// Estimate is what earlier tasks of the repository used, nil if there were none.
	Estimate *Estimate `json:"estimate,omitempty"`
}

// Estimate is what tasks used of models on average.
type Estimate struct {
	Tasks  int   `json:"tasks"`
	Tokens int64 `json:"tokens"`
	Money  int64 `json:"money,omitempty" doc:"In millionths of the currency; 0 if prices are not known"`
}
