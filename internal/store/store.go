package store

import "context"

// Store is everything that an adapter implements.
type Store interface {
	Tasks
	Leases
	Events
	Outbox
	ForgeCache
	Questions
	Reviews
	Threads
	BoardRepositories
	BoardItems
	BoardComments
	BoardReviews
	Tokens

	// Ping reports whether the database answers.
	Ping(ctx context.Context) error
	// Close ends all connections. No other call may be made after it.
	Close() error
}
