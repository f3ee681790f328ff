package agent

import (
	"context"
	"time"
)

// CheckPause is the pause before the next check, which is counted then.
func (a *Agent) CheckPause(first time.Duration) time.Duration { return a.health.pause(first) }

// Reap removes leftover sandboxes.
func (a *Agent) Reap(ctx context.Context) { a.reap(ctx) }

// TriedAgain reports whether a review that failed so is handed back to be tried again.
func TriedAgain(ctx context.Context, err error) bool { return outside(reasonOf(ctx, err)) }
