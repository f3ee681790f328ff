package task

// Trigger is what makes a task move from one state to another.
type Trigger string

// The triggers.
const (
	Assigned  Trigger = "assigned"  // the bot was assigned, or a review fell due
	Claimed   Trigger = "claimed"   // an agent took the task
	Returned  Trigger = "returned"  // the agent handed the task back, unfinished
	Lost      Trigger = "lost"      // the lease ran out
	PauseSet  Trigger = "paused"    // a person asked for a pause, or a budget ran out
	Resumed   Trigger = "resumed"   // the pause was lifted
	Finished  Trigger = "finished"  // the run did what was asked and verified it
	GaveUp    Trigger = "gave_up"   // the run failed, or the attempts are used up
	Withdrawn Trigger = "withdrawn" // the bot was unassigned, or the item was closed
	Lapsed    Trigger = "lapsed"    // the task was paused for too long
)

// Triggers lists the triggers in the order in which they are shown.
var Triggers = []Trigger{Assigned, Claimed, Returned, Lost, PauseSet, Resumed, Finished, GaveUp, Withdrawn, Lapsed}

// none is the state of a task that does not exist yet.
const none State = ""

// Move is one row of the state machine.
type Move struct {
	From    State // "" for a task that does not exist yet
	Trigger Trigger
	To      State
	Label   Label // what the forge shows after the move, alone of all state labels
	// NextGeneration says that the move begins a new generation: whoever worked
	// on the task before can no longer write for it.
	NextGeneration bool
	Why            string // one line for the documentation
}

// Moves is the state machine: every move that exists. Whatever is not here is an
// illegal move.
//
// Two rules hold for the table and are tested: every move into [Queued] and
// every stop begins a new generation, so that one generation is handed to one
// agent at most; and no move leads out of a terminal state without one.
var Moves = []Move{
	{none, Assigned, Queued, BotLabel, true, "a new task"},
	{Queued, Claimed, Running, ProcessingLabel, false, "an agent takes the task by long-poll"},
	{Queued, PauseSet, Paused, PausedLabel, false, "paused before an agent took it"},
	{Queued, Withdrawn, Stopped, StoppedLabel, true, "unassigned or closed before an agent took it"},
	{Queued, GaveUp, Failed, FailedLabel, false, "the attempts are used up"},
	{Running, Finished, Done, DoneLabel, false, "verified and handed over"},
	{Running, GaveUp, Failed, FailedLabel, false, "the run failed, or the attempts are used up"},
	{Running, PauseSet, Paused, PausedLabel, false, "the run is saved at its next checkpoint"},
	{Running, Withdrawn, Stopped, StoppedLabel, true, "unassigned or closed: the run is cut at once"},
	{Running, Returned, Queued, BotLabel, true, "the agent is shutting down"},
	{Running, Lost, Queued, BotLabel, true, "the agent was not heard of in time"},
	{Paused, Resumed, Queued, BotLabel, true, "goes on where it was, on any agent"},
	{Paused, Withdrawn, Stopped, StoppedLabel, true, "unassigned or closed while paused"},
	{Paused, Lapsed, Stopped, StoppedLabel, true, "paused longer than paused_task_expiry_days"},
	{Stopped, Assigned, Queued, BotLabel, true, "assigned again: a new run"},
	{Done, Assigned, Queued, BotLabel, true, "more work on the same item"},
	{Failed, Assigned, Queued, BotLabel, true, "assigned again, or retried by a person"},
}

// FindMove returns the move that the trigger makes from the given state; use ""
// for a task that does not exist yet. Without such a move it returns an
// [*IllegalMoveError].
func FindMove(from State, trigger Trigger) (Move, error) {
	for _, move := range Moves {
		if move.From == from && move.Trigger == trigger {
			return move, nil
		}
	}
	return Move{}, &IllegalMoveError{From: from, Trigger: trigger}
}

// Apply makes the move on the task: its state, generation and what follows from
// them. The task is unchanged when the move is illegal.
func (t *Task) Apply(trigger Trigger, reason Reason) (Move, error) {
	move, err := FindMove(t.State, trigger)
	if err != nil {
		return Move{}, err
	}
	t.State = move.To
	t.Reason = reason
	if move.NextGeneration {
		t.Generation++
		t.Phase = ""
	}
	t.countAttempt(trigger)
	if move.To != Running {
		t.Lease = Lease{}
	}
	return move, nil
}

// countAttempt keeps the number of runs that may have been the task's own fault.
// A run that was handed back was not, and a person who resumes a task gives it all of its
// attempts again.
func (t *Task) countAttempt(trigger Trigger) {
	switch trigger { //nolint:exhaustive // the others count nothing
	case Assigned, Resumed:
		t.Attempts = 0
	case Claimed:
		t.Attempts++
		t.LastAgent = t.Lease.Agent
	case Returned:
		t.Attempts = max(0, t.Attempts-1)
	}
}
