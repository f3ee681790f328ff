package transport

import (
	"context"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
)

// Clock is the time as the transport sees it.
type Clock interface {
	Now() time.Time
	// Wait returns nil after the given time, or the context's error when that
	// ends first.
	Wait(ctx context.Context, d time.Duration) error
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Wait(ctx context.Context, d time.Duration) error {
	return lifecycle.Sleep(ctx, d)
}
