package wire

import "time"

// NextTask is a queued task, and whether it is next.
type NextTask struct {
	Task
	Verdict     string     `json:"verdict" doc:"next, or why it is not next, as a stable code"`
	VerdictText string     `json:"verdict_text" doc:"The same in words"`
	Priority    int        `json:"priority" doc:"By its labels; larger is sooner"`
	Cause       string     `json:"cause" doc:"Why it was assigned"`
	AssignedAt  time.Time  `json:"assigned_at"`
	Until       *time.Time `json:"until,omitempty" doc:"When that may change by itself"`
	BlockedBy   []string   `json:"blocked_by,omitempty" doc:"Open items that have to be closed first"`
}

// NextTasks is everything that is queued, in the order in which it is decided on.
type NextTasks struct {
	Tasks []NextTask `json:"tasks"`
}
