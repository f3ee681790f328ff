package store

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// Backlog is how much has not been done yet.
type Backlog struct {
	Tasks map[task.State]int64 // that have not ended; a state without tasks is left out
	// QueuedSince is since when the task waits that has waited longest of those that could be
	// handed out: they are not blocked by another, and their time has come. It is zero if there
	// is none.
	QueuedSince time.Time
	// Writes are the actions that are to be delivered and have not failed, and Retried those
	// that have and are tried again.
	Writes, Retried int64
}

// Backlogs tells how much has not been done yet.
type Backlogs interface {
	// Backlog counts at the given moment. It reads no more than what has not been done.
	Backlog(ctx context.Context, now time.Time) (Backlog, error)
}
