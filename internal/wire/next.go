package wire

import "time"

// NextTask is a queued task, and whether it is next.
type NextTask struct {
	Task
	Verdict     string     `json:"verdict" doc:"next, or why it is not next, as a stable code"`
	VerdictText string     `json:"verdict_text" doc:"The same in words"`
	Until       *time.Time `json:"until,omitempty" doc:"When that may change by itself"`
}

// NextTasks is everything that is queued, in the order in which it is decided on.
type NextTasks struct {
	Tasks []NextTask `json:"tasks"`
	Waits []Wait     `json:"waits,omitempty" doc:"What tasks wait for that a person can do something about"`
}

// Wait is tasks that nobody takes, or that are paused, for the same reason.
type Wait struct {
	Reason string     `json:"reason" doc:"Why, as a stable code"`
	Text   string     `json:"text" doc:"The same in words"`
	Fix    string     `json:"fix,omitempty" doc:"What can be done about it"`
	Agent  string     `json:"agent,omitempty" doc:"The agent that the reason is about"`
	Detail string     `json:"detail,omitempty" doc:"What that agent says is missing"`
	Tasks  []WaitTask `json:"tasks"`
}

// WaitTask is a task that waits.
type WaitTask struct {
	Task  string `json:"task"`
	Item  string `json:"item" example:"github:owner/name#12"`
	Title string `json:"title"`
}
