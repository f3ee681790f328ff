package store

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Amount is tokens and money together. Money is in millionths of the currency
// that the prices are in.
type Amount struct {
	Tokens int64
	Money  int64
}

// Call is a call to a model that is about to be made.
type Call struct {
	Task       task.ID // for whom; empty if for no task
	Generation int64
	At         time.Time // its day, in UTC, is the day that it is charged to
	Most       Amount    // it uses no more than this
}

// Admit decides whether a call may be made, by what its task has spent in all
// and what everyone has spent on its day. Its error refuses the call.
type Admit func(ofTask, ofDay Amount) error

// Spending keeps what calls to models use. What is spent includes the calls that
// are reserved and not settled, each with the most that it may use: a call whose
// agent died counts in full.
type Spending interface {
	// ReserveSpend asks admit, and notes the call with the most that it may use.
	// No other reservation and no settlement for the same day or task comes
	// between the two, in any process. The error of admit is returned as it is,
	// and nothing is noted then. Admit may be asked several times and must do
	// nothing but decide. A task that is not there is NotFound.
	ReserveSpend(ctx context.Context, call Call, admit Admit) (id string, err error)
	// SettleSpend replaces what is noted of a call by what it used. To settle
	// twice is to settle with the later amount. NotFound for a call that is not
	// known, or no longer.
	SettleSpend(ctx context.Context, id string, used Amount) error
	// Spent returns what the task has spent in all, and what everyone has spent
	// on the day of the given moment.
	Spent(ctx context.Context, id task.ID, at time.Time) (ofTask, ofDay Amount, err error)
	// SpentFor returns the task that a call was reserved for, "" if for none;
	// NotFound as for SettleSpend.
	SpentFor(ctx context.Context, id string) (task.ID, error)
}
