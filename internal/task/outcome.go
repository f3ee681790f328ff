package task

// Outcome is how a run ended.
type Outcome string

// The outcomes of runs.
const (
	OutcomeDone     Outcome = "done"
	OutcomeFailed   Outcome = "failed"
	OutcomePaused   Outcome = "paused"   // as it was asked to, or for a reason of its own
	OutcomeReturned Outcome = "returned" // the agent hands the task back
	OutcomeStopped  Outcome = "stopped"  // as it was asked to
)
