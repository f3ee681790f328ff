package store

import "context"

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
	Clock
	Agents
	Users
	Sessions
	Audit

	// Ping reports whether the database answers.
	Ping(ctx context.Context) error
	// Close ends all connections. No other call may be made after it.
	Close() error
}

// Inspection is what an adapter sees of a database when it looks without changing
// anything.
type Inspection struct {
	Engine string // name and version
	Schema int64  // version of the schema that is there, 0 if none
	Newest int64  // version that this program would bring it to
}
