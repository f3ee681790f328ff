package server

import (
	"context"
	"sync"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// expectation is a delivery that somebody waits for.
type expectation struct {
	hook    Webhook
	arrived chan struct{}
	once    sync.Once
}

// Expect tells when a delivery of a forge has arrived that is signed with the secret of the
// hook: whoever has set up a webhook sees by it whether it works. Whoever no longer waits
// calls stop.
//
// A server that takes no webhooks of the forge takes those with this secret until then, and
// does nothing else with them. If it takes those that are signed with another secret, or if
// somebody else waits, that is a Conflict.
func (w *Webhooks) Expect(of task.Forge, hook Webhook) (arrived <-chan struct{}, stop func(), err error) {
	if taken, is := w.Forges[of]; is && taken.Secret != hook.Secret {
		return nil, nil, task.Errorf(task.Conflict, "the running server knows another secret for webhooks of %s", of).
			WithHint("start the server again, so that it reads the configuration")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.expected[of] != nil {
		return nil, nil, task.Errorf(task.Conflict, "a webhook of %s is being tried already", of).WithHint("try again in a minute")
	}
	if w.expected == nil {
		w.expected = make(map[task.Forge]*expectation)
	}
	one := &expectation{hook: hook, arrived: make(chan struct{})}
	w.expected[of] = one
	return one.arrived, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.expected[of] == one {
			delete(w.expected, of)
		}
	}, nil
}

// expecting is what is waited for from a forge, or nil.
func (w *Webhooks) expecting(of task.Forge) *expectation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.expected[of]
}

// hookOf says how deliveries of a forge are read.
func (w *Webhooks) hookOf(of task.Forge) Webhook {
	if hook, taken := w.Forges[of]; taken {
		return hook
	}
	if one := w.expecting(of); one != nil {
		return one.hook
	}
	return Webhook{}
}

// take deals with a delivery whose signature is right, and tells whoever waits for one.
func (w *Webhooks) take(ctx context.Context, of task.Forge, delivery forge.Delivery, digest string) error {
	if _, taken := w.Forges[of]; taken {
		if err := w.handle(ctx, delivery, digest); err != nil {
			return err
		}
	}
	if one := w.expecting(of); one != nil {
		one.once.Do(func() { close(one.arrived) })
	}
	return nil
}
