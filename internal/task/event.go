package task

import (
	"encoding/json"
	"time"
)

// EventKind says what a journal entry records.
type EventKind string

// The kinds of journal entry.
const (
	StateChanged EventKind = "state"   // the task moved; Data is a [StateChange]
	PhaseChanged EventKind = "phase"   // the run entered a phase
	MessageSent  EventKind = "message" // a message to or from the model
	ToolCalled   EventKind = "tool"    // a tool call or its result
	ModelUsed    EventKind = "usage"   // what a call to a model used
	Planned      EventKind = "plan"    // the plan, or a new version of it
	Prepared     EventKind = "receipt" // what environment set-up came to
	Saved        EventKind = "saved"   // work in progress was committed and pushed
	SignalTaken  EventKind = "signal"  // a signal was acted on
	Summed       EventKind = "summary" // what a later run on the item is told
	NoteTaken    EventKind = "note"    // something for people to read
	Requested    EventKind = "request" // what the item said when the task was handed out; Data is a [Requesting]
	Inspected    EventKind = "inspect" // the server found something in what was to be published; Data is an [Inspection]
	PlanApproved EventKind = "approve" // the work may begin by a plan; Data is an [Approval]
	Remembered   EventKind = "memory"  // the run was given notes from past reviews; Data is a [Remembering]
)

// Event is one entry of a task's journal. The run that writes it numbers its
// entries 1, 2, 3… within its generation (Sequence), so that an entry that is
// sent twice is stored once. Position is given by the store: 1, 2, 3… over the
// whole life of the task. There are gaps where entries were removed because of their age.
type Event struct {
	Task       ID
	Generation int64
	Source     EventSource
	Sequence   int64
	Position   int64
	Kind       EventKind
	At         time.Time
	Data       json.RawMessage
}

// EventSource tells the entries that the server writes from the agent's: each
// numbers its own.
type EventSource string

// The sources of events.
const (
	FromServer EventSource = "server"
	FromAgent  EventSource = "agent"
)

// Requesting is the data of a [Requested] event.
type Requesting struct {
	Title string `json:"title"`
	Body  string `json:"body"`
}

// Remembering is the data of a [Remembered] event: the ids of the notes. Their texts are not in the
// journal, so that nothing is left of one that is forgotten.
type Remembering struct {
	Notes []string `json:"notes"`
}

// Approval is the data of a [PlanApproved] event: who lets the work begin by which plan.
type Approval struct {
	Plan int         `json:"plan_revision"`
	By   string      `json:"by,omitempty"` // a login on the forge
	How  ApprovalHow `json:"how"`
}

// ApprovalHow says how a plan was approved.
type ApprovalHow string

// A reaction to the comment with the plan, a comment, an operator (on the pages, on the
// command line or over the API), or nothing: no approval is needed any more.
const (
	ApprovedByReaction ApprovalHow = "reaction"
	ApprovedByComment  ApprovalHow = "comment"
	ApprovedByOperator ApprovalHow = "operator"
	ApprovalNotNeeded  ApprovalHow = "not_needed"
)

// StateChange is the data of a [StateChanged] event.
type StateChange struct {
	Trigger Trigger `json:"trigger"`
	From    State   `json:"from"`
	To      State   `json:"to"`
	Reason  Reason  `json:"reason,omitempty"`
}
