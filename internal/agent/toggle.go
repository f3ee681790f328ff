package agent

import (
	"context"
	"errors"
	"sync"
)

// errNotAsking ends a request for a task when the agent is to take none.
var errNotAsking = errors.New("the agent takes no tasks")

// toggle is a reason for which the agent takes no tasks, which comes and goes.
type toggle struct {
	mutex   sync.Mutex
	on      bool
	changed chan struct{} // closed at the next change; nil if nobody waits for it
}

// set says whether it is on, and reports whether that is a change.
func (t *toggle) set(on bool) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.on == on {
		return false
	}
	t.on = on
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
	return true
}

// isOn reports whether it is on.
func (t *toggle) isOn() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.on
}

// wait waits until it is on or off as given, and reports whether the context did
// not end before.
func (t *toggle) wait(ctx context.Context, on bool) bool {
	for {
		t.mutex.Lock()
		if t.on == on {
			t.mutex.Unlock()
			return ctx.Err() == nil
		}
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mutex.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// whileOff is a context that also ends, with [errNotAsking] as its cause, when it
// is on. It has to be ended.
func (t *toggle) whileOff(ctx context.Context) (off context.Context, end func()) {
	off, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		if t.wait(off, true) {
			cancel(errNotAsking)
		}
	})
	return off, func() {
		cancel(nil)
		watching.Wait()
	}
}
