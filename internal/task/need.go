package task

import "time"

// NeedKind says what kind of thing waits for a person.
type NeedKind string

// The kinds of what waits for a person.
const (
	NeedServer   NeedKind = "server"   // the server cannot use something that it needs
	NeedPause    NeedKind = "pause"    // everything is paused
	NeedTasks    NeedKind = "tasks"    // nobody takes tasks, or the bot lacks a right
	NeedAnswer   NeedKind = "answer"   // a run has asked a question
	NeedApproval NeedKind = "approval" // a plan waits to be approved
	NeedFailure  NeedKind = "failure"  // a task has failed
	NeedAgent    NeedKind = "agent"    // an agent is offline, or takes no tasks
	NeedBudget   NeedKind = "budget"   // the budget is used up, or nearly
)

// NeedKinds lists the kinds in the order in which they are shown: first what keeps everything
// waiting.
var NeedKinds = []NeedKind{NeedServer, NeedPause, NeedTasks, NeedAnswer, NeedApproval, NeedFailure, NeedAgent, NeedBudget}

// Need is something that waits for a person. What is said of it in words is in
// messages.Need.
type Need struct {
	// Key is the same as long as the same thing waits, and no other need has it: who tells
	// people of needs tells of each key once. It begins with the kind and a slash.
	Key    string
	Kind   NeedKind
	Reason Reason    // why, as a stable code; empty for what keeps nothing waiting yet
	Since  time.Time // zero if that is not known
	// Task is the one that it is about; nil if it is about no single one.
	Task *Task
	// Tasks is how many tasks wait for it; 0 if none does, or if it is about one.
	Tasks int
	// OfTasks is whether the reason is that of its tasks, so that a list of tasks can be narrowed
	// to it. Else it is the reason for which nobody takes them.
	OfTasks bool
	// Subject is the name of the agent, of what the server cannot use, or who paused
	// everything.
	Subject string
	// By is the login of the person who paused everything, if it was one.
	By string
	// Detail is what the run asks, what the forge or a tool said, or what the agent lacks. It
	// is a text of others.
	Detail string
	// Hint is what can be done, where more is known than the fix of the reason; a text of
	// others.
	Hint string
	// Percent is how much of the budget is used.
	Percent int
}
