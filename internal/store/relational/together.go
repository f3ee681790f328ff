package relational

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// mostTogether bounds how many calls one transaction does, and longestTogether how long that
	// may take: it does not end with the context of one of the callers.
	mostTogether    = 64
	longestTogether = 5 * time.Second
)

// together gathers calls that come while another one is in the database, so that one transaction
// does the work of all of them. Each commit waits for the disk, and on PostgreSQL those that send
// notices or add to the same sums wait for each other. A call that comes alone
// waits for no other: it only lets goroutines that can run go first.
type together[In, Out any] struct {
	key     func(In) string // calls with the same key are not done together
	leading chan struct{}   // has room for the one who does what waits

	mu      sync.Mutex
	waiting []*call[In, Out]
}

func newTogether[In, Out any](key func(In) string) *together[In, Out] {
	return &together[In, Out]{key: key, leading: make(chan struct{}, 1)}
}

// transaction does calls and returns a result for each, or fails as a whole. Unless it is patient it
// waits for nothing that others have locked: such a call has to be done alone.
type transaction[In, Out any] func(ctx context.Context, all []In, patient bool) ([]result[Out], error)

// result is what became of a call.
type result[Out any] struct {
	out   Out
	err   error
	alone bool // nothing was done: the call has to be done in a transaction of its own
}

// call is one that waits until it is done.
type call[In, Out any] struct {
	result[Out]

	in   In
	done chan struct{} // closed when the result is there
}

// do does a call, together with others that wait. If they cannot be done together, each is done
// alone, so that none fails because of another one.
func (t *together[In, Out]) do(ctx context.Context, in In, run transaction[In, Out]) (none Out, err error) {
	c := &call[In, Out]{in: in, done: make(chan struct{})}
	if ctx.Err() != nil {
		return none, brokenOff(ctx)
	}
	t.mu.Lock()
	t.waiting = append(t.waiting, c)
	t.mu.Unlock()
	for isDone := false; !isDone; {
		select {
		case <-c.done:
			isDone = true
		case t.leading <- struct{}{}:
			t.lead(ctx, c, run)
		case <-ctx.Done():
			if t.leave(c) {
				return none, brokenOff(ctx)
			}
			<-c.done // another one does it
			isDone = true
		}
	}
	if !c.alone {
		return c.out, c.err
	}
	results, err := run(ctx, []In{in}, true)
	if err != nil {
		return none, err
	}
	return results[0].out, results[0].err
}

// leave lets a call wait no longer, and reports whether it did.
func (t *together[In, Out]) leave(c *call[In, Out]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := len(t.waiting)
	t.waiting = slices.DeleteFunc(t.waiting, func(other *call[In, Out]) bool { return other == c })
	return len(t.waiting) < before
}

// lead does what waits, and lets another one lead. Only a call that does nothing but itself ends with
// its context.
func (t *together[In, Out]) lead(ctx context.Context, own *call[In, Out], run transaction[In, Out]) {
	defer func() { <-t.leading }()
	runtime.Gosched() // those who are about to call, such as all whose calls were just done, mostly come along
	all := t.take()
	if len(all) == 0 {
		return // others have led meanwhile
	}
	ins := make([]In, len(all))
	for i, c := range all {
		ins[i], c.alone = c.in, true
	}
	defer func() {
		_ = recover() // alone, the call that panics does so where it was called
		for _, c := range all {
			close(c.done)
		}
	}()
	if len(all) > 1 || all[0] != own {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), longestTogether)
		defer cancel()
	}
	results, err := run(ctx, ins, false)
	for i, c := range all {
		switch {
		case err == nil:
			c.result = results[i]
		case len(all) == 1 && c == own:
			c.result = result[Out]{err: err}
		case mayBeDone(err):
			c.result = result[Out]{err: notOfCaller(err)}
		}
	}
}

// mayBeDone tests whether a transaction that failed may have been done: a connection that is lost during
// a commit, or a commit that nobody waits for any more, leaves that open. What failed before was not.
func mayBeDone(err error) bool {
	_, atCommit := errors.AsType[*commitError](err)
	code := task.CodeOf(err)
	return atCommit && (code == task.DatabaseDown || code == task.Interrupted)
}

// notOfCaller is the error for callers when the context of the transaction has ended, which is not theirs.
func notOfCaller(err error) error {
	if task.CodeOf(err) != task.Interrupted {
		return err
	}
	return task.Wrap(task.DatabaseDown, err, "the database did not say in time whether it was done")
}

// take takes the calls that can be done together.
func (t *together[In, Out]) take() (all []*call[In, Out]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := map[string]bool{}
	t.waiting = slices.DeleteFunc(t.waiting, func(c *call[In, Out]) bool {
		key := t.key(c.in)
		fits := len(all) < mostTogether && !taken[key]
		if fits {
			taken[key] = true
			all = append(all, c)
		}
		return fits
	})
	return all
}
