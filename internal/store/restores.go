package store

import "context"

// Fenced is what was done to a database that was restored from a backup.
type Fenced struct {
	// Generation is the least that a generation has which begins from now on, of all tasks
	// that were in the backup.
	Generation int64
	Requeued   int // tasks that were running, and are queued
	Active     int // tasks that have not ended, these among them
}

// Restores makes a database that was restored from a backup fit to go on with. The servers and
// agents of the time after the backup may be alive, and may have written to forges.
type Restores interface {
	// Fence ends everything that was under way, in one transaction:
	//
	//   - No generation that was handed out after the backup is handed out again: those that
	//     begin are far greater, and greater than after an earlier restore. A queued task is in
	//     such a generation at once, with its pending actions. A paused one gets it when it is
	//     resumed, one that has ended when it is assigned again.
	//   - Running tasks are queued, with ReasonRestored; the attempt does not count.
	//   - The journal of each task that has not ended has a state entry with ReasonRestored:
	//     an agent drops what it has beyond the journal of the server.
	//   - Pending actions are free, and Take says of them, and of all later ones of such
	//     generations, that the forge may have them already.
	//   - Turns that were being answered are unanswered.
	//   - Sessions, enrolments, elections and kept answers of forges are gone, and so are the
	//     pauses of everything that files of servers asked for, and the pending pauses that
	//     follow from pauses of everything or of agents. What people have asked of a task stays.
	//
	// Doing it again does the same again, and harms nothing.
	Fence(ctx context.Context, effects Effects) (Fenced, error)
}
