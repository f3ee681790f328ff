package agent

import (
	"context"
	"log/slog"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Executor carries out one task. The agent has prepared everything: it executes,
// and says how that went.
//
// The context ends when the run has to: with a [*phase.Halt] as its cause for a
// stop or a pause, with [ErrLeaseLost] when the task is no longer this agent's,
// with [ErrStopping] when the agent is shut down. An executor then cuts what is
// going on at once, saves what it has with a context of its own, and returns the
// cause.
type Executor interface {
	Execute(ctx context.Context, run Run) (wire.Result, error)
}

// Run is one task in the hands of an executor.
type Run struct {
	Assignment wire.Assignment
	Work       phase.Work
	Repository phase.Repository
	Forge      phase.Forge
	Journal    phase.Journal
	// Spending is the budget of the task, kept by the server.
	Spending Spending
	Log      *slog.Logger

	conflicts []string // files in which merges have found conflicts
	// lackedRoom reports whether the disk cannot be written, or could not at some moment of the
	// run; nil means that nobody knows.
	lackedRoom func(context.Context) bool
}

// Spending is leave to call models, one by one.
type Spending interface {
	Reserve(ctx context.Context, spend wire.Spend) (wire.Reservation, error)
	Settle(ctx context.Context, settlement wire.Settlement) error
}

// The causes for which a run's context ends, besides a [*phase.Halt].
var (
	ErrLeaseLost = task.Errorf(task.LeaseLost, "the task is no longer this agent's")
	ErrStopping  = task.Errorf(task.Interrupted, "the agent is shutting down")
)
