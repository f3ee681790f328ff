package broker

import (
	"context"
	"sync"
)

// owner runs goroutines in the background and stops them.
type owner struct {
	mu      sync.Mutex
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// start runs what is given until stop is called. It does so once.
func (o *owner) start(ctx context.Context, all ...func(context.Context)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cancel != nil {
		return
	}
	ctx, o.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, run := range all {
		o.running.Go(func() { run(ctx) })
	}
}

// stop ends what runs and waits for it.
func (o *owner) stop() {
	o.mu.Lock()
	if o.cancel == nil {
		o.cancel = func() {}
	}
	o.cancel()
	o.mu.Unlock()
	o.running.Wait()
}
