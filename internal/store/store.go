package store

import (
	"context"

	"github.com/toryo-dev/toryo/internal/task"
)

// Store is everything that an adapter implements.
type Store interface {
	Tasks
	Leases
	Events
	Runs
	Refs
	Receipts
	Halts
	CommentLog
	Outbox
	ForgeCache
	Deliveries
	Webhooks
	Notifications
	Spending
	Questions
	Reviews
	Threads
	Turns
	BoardRepositories
	BoardItems
	BoardComments
	BoardReviews
	BoardUsers
	BoardReactions
	BoardStatuses
	Tokens
	Notices
	Elections
	Processes
	Restores
	Clock
	Agents
	Backlogs
	Users
	People
	Shares
	Sessions
	SavedLinks
	Audit
	Retention
	StatisticsStore
	Memory

	// Counts says what the database was asked for through this store so far.
	Counts() Counts
	// Ping reports whether the database answers.
	Ping(ctx context.Context) error
	// TestWrite reports whether the database can be written, by writing.
	TestWrite(ctx context.Context) error
	// Close ends all connections. No other call may be made after it.
	Close() error
}

// Counts is what a database was asked for.
type Counts struct {
	Statements int64
	Rows       int64 // that were read
	Commits    int64 // of transactions that may write
}

// Inspection is what an adapter sees of a database when it looks without changing
// anything.
type Inspection struct {
	Engine string // name and version
	Schema int64  // version of the schema that is there, 0 if none
	Newest int64  // version that this program would bring it to
}

// Optional tells a value that is not there from one that cannot be read.
func Optional[T any](value T, err error) (_ T, found bool, _ error) {
	if task.CodeOf(err) == task.NotFound {
		return value, false, nil
	}
	return value, err == nil, err
}
