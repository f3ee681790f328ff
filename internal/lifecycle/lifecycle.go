// Package lifecycle runs functions in the background, from a start to a stop, and waits no
// longer than a context lasts.
package lifecycle

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Group runs functions in the background until it is stopped. The zero value is ready to
// use. A service has one, and calls its Start and Stop from its own.
type Group struct {
	mu      sync.Mutex
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Start calls each function in a goroutine of its own. Their context has the values of ctx
// but does not end with it: it ends with Stop. Only the first call does something, and none
// after Stop.
func (g *Group) Start(ctx context.Context, all ...func(context.Context)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cancel != nil {
		return
	}
	ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, run := range all {
		g.running.Go(func() { run(ctx) })
	}
}

// Stop ends the context of the functions and waits until they have returned. It may be
// called again, and without a Start before it.
func (g *Group) Stop() {
	g.mu.Lock()
	if g.cancel == nil {
		g.cancel = func() {}
	}
	g.cancel()
	g.mu.Unlock()
	g.running.Wait()
}

// Every calls do at once and then at each interval, until the context ends.
func Every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		do(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Sleep waits for that long. When the context ends before, it returns at once, with the
// cause of that.
func Sleep(ctx context.Context, howLong time.Duration) error {
	if ctx.Err() != nil || howLong <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(howLong)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Signal puts something into a channel with room for one, unless there is something in it
// already. Whoever receives it has not missed what was signalled before.
func Signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// NewBackoff returns random pauses that begin at about a second and double, up to about
// the longest: each is between half and one and a half times as long.
func NewBackoff(longest time.Duration) *backoff.ExponentialBackOff {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval = time.Second
	pauses.Multiplier = 2
	pauses.MaxInterval = longest
	return pauses
}
