package store

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// OpenPullKind is the kind of the action that opens a pull request. When one is delivered for the
// task of an issue, that is counted.
const OpenPullKind = "open_pull"

// RunResult is how a run ended, as it is counted.
type RunResult string

// The results of runs.
const (
	RunDone     RunResult = "done"
	RunFailed   RunResult = "failed"
	RunStopped  RunResult = "stopped"  // by a person
	RunPaused   RunResult = "paused"   // also to wait for an answer
	RunReturned RunResult = "returned" // the agent handed it back, or was not heard of any more
)

// RunResults lists the results in the order in which they are shown.
var RunResults = []RunResult{RunDone, RunFailed, RunStopped, RunPaused, RunReturned}

// AttemptResult is what became of a first attempt: the first run of the development task of an issue
// that was done or failed.
type AttemptResult string

// The results of first attempts.
const (
	AttemptRight     AttemptResult = "right"
	AttemptCorrected AttemptResult = "corrected" // done, and changes were requested or checks failed later
	AttemptFailed    AttemptResult = "failed"
)

// AttemptResults lists the results in the order in which they are shown.
var AttemptResults = []AttemptResult{AttemptRight, AttemptCorrected, AttemptFailed}

// MostRounds is the number of review rounds from which on they are counted together.
const MostRounds = 3

// StatisticsFilter says what is counted.
type StatisticsFilter struct {
	From, To   time.Time // without To itself
	Forge      task.Forge
	Repository string // with its forge, if that is not empty; empty means all
	// Repositories is of how many repositories the costs are told, those with the highest. The others
	// are told together. 0 means all.
	Repositories int
}

// Statistics is what was counted. A day is one in UTC, and its time the beginning. Days on which there
// was nothing are left out.
type Statistics struct {
	Runs     []RunCount
	Attempts []AttemptCount
	// Pulls are the times from assignments to pull requests, by the day on which the pull request was
	// opened, and Waits those from when a task could be handed out until an agent took it, by the day
	// on which it did.
	Pulls, Waits Spread
	Rounds       []RoundCount
	RoundSums    []RoundSum
	Costs        []Cost
	Busy         []BusyDay
}

// RunCount is how many runs have ended on a day in the same way.
type RunCount struct {
	Day    time.Time
	Result RunResult
	Runs   int64
}

// AttemptCount is what became of first attempts that have ended on a day.
type AttemptCount struct {
	Day    time.Time
	Result AttemptResult
	Tasks  int64
}

// Spread is how times are spread: on each day, and on all together.
type Spread struct {
	Days  []DaySpread
	Total DaySpread // without a day
}

// DaySpread is how the times of a day are spread. Half of them are no longer than the median, and nine
// of ten no longer than P90. Times are kept to within a fortieth.
type DaySpread struct {
	Day         time.Time
	Count       int64
	Median, P90 time.Duration
}

// RoundCount is for how many pull requests that were opened on a day changes were requested so often,
// up to now. Rounds is [MostRounds] for those with more too.
type RoundCount struct {
	Day    time.Time
	Rounds int
	Pulls  int64
}

// RoundSum is how often changes were requested, up to now, for all pull requests that were opened on a day.
type RoundSum struct {
	Day    time.Time
	Rounds int64
}

// Cost is what calls to models of a day have cost. A call that is not settled counts as in [Spending].
type Cost struct {
	Day        time.Time
	Forge      task.Forge
	Repository string // empty for calls that belong to no task, and for the others
	Others     bool   // all repositories that are not told of by themselves
	Amount
}

// BusyDay is for how long agents have worked on tasks on a day, all together.
type BusyDay struct {
	Day  time.Time
	Time time.Duration
}

// RepositoryName is a repository on a forge.
type RepositoryName struct {
	Forge task.Forge
	Name  string
}

// StatisticsStore counts what has happened. What it counts is written with the moves of tasks, with the
// delivery of pull requests and with the calls to models, and kept for longer than these.
type StatisticsStore interface {
	// Statistics counts as of one moment. How much it reads depends on the number of days, not on how
	// much happened.
	Statistics(ctx context.Context, filter StatisticsFilter) (Statistics, error)
	// TaskRepositories returns the repositories that have tasks, sorted. It does not read all tasks.
	TaskRepositories(ctx context.Context, limit int) ([]RepositoryName, error)
}
