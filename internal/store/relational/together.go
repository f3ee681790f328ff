package relational

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// mostTogether bounds how many calls one transaction does, and longestTogether how long that
	// may take: it does not end with the context of one of the callers.
	mostTogether    = batch
	longestTogether = 30 * time.Second
)

// together gathers calls that come while another one is in the database, so that one transaction
// does the work of all of them. Each commit waits for the disk, and on PostgreSQL those that send
// notices or add to the same sums wait for each other. A call that comes alone is not delayed.
type together[In, Out any] struct {
	// key, if it is not nil, keeps calls with the same key out of the same transaction.
	key func(In) string

	mu      sync.Mutex
	busy    bool
	waiting []*call[In, Out]
}

// transaction does one call or several and returns a result for each, or fails as a whole. Only
// among several may it say that one has to be done alone.
type transaction[In, Out any] func(ctx context.Context, all []In) ([]result[Out], error)

// result is what became of a call.
type result[Out any] struct {
	out   Out
	err   error
	alone bool // nothing was done: the call has to be done in a transaction of its own
}

// call is one that waits.
type call[In, Out any] struct {
	result[Out]

	in   In
	lead chan []*call[In, Out] // gets the calls that this one has to do, itself first; has room for one
	done chan struct{}         // closed when the result is there
}

// do does a call. If several fail together, each is done alone, so that none fails because of
// another one.
func (t *together[In, Out]) do(ctx context.Context, in In, run transaction[In, Out]) (Out, error) {
	c := &call[In, Out]{in: in, lead: make(chan []*call[In, Out], 1), done: make(chan struct{})}
	t.enter(c)
	select {
	case <-c.done:
	case all := <-c.lead:
		t.run(ctx, all, run)
	case <-ctx.Done():
		if t.leave(c) {
			var none Out
			return none, task.Wrap(task.Interrupted, ctx.Err(), "the call to the database was broken off")
		}
		select { // another one does it, or waits for this one
		case <-c.done:
		case all := <-c.lead:
			t.run(ctx, all, run)
		}
	}
	if c.alone {
		c.result = single(ctx, in, run)
	}
	return c.out, c.err
}

func single[In, Out any](ctx context.Context, in In, run transaction[In, Out]) result[Out] {
	results, err := run(ctx, []In{in})
	if err != nil {
		return result[Out]{err: err}
	}
	return results[0]
}

// enter lets the call wait, or lead if no other does.
func (t *together[In, Out]) enter(c *call[In, Out]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy {
		t.waiting = append(t.waiting, c)
		return
	}
	t.busy = true
	c.lead <- []*call[In, Out]{c}
}

// leave lets a call wait no longer, and reports whether it did.
func (t *together[In, Out]) leave(c *call[In, Out]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := len(t.waiting)
	t.waiting = slices.DeleteFunc(t.waiting, func(other *call[In, Out]) bool { return other == c })
	return len(t.waiting) < before
}

// run does calls, and leaves those that came meanwhile to one of them.
func (t *together[In, Out]) run(ctx context.Context, all []*call[In, Out], run transaction[In, Out]) {
	defer t.next()
	defer func() {
		for _, c := range all {
			close(c.done)
		}
	}()
	if len(all) == 1 {
		all[0].result = single(ctx, all[0].in, run)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestTogether)
	defer cancel()
	ins := make([]In, len(all))
	for i, c := range all {
		ins[i], c.alone = c.in, true
	}
	results, err := run(ctx, ins)
	if err != nil {
		return // each finds out alone what is wrong
	}
	for i, c := range all {
		c.result = results[i]
	}
}

// next makes the first call that waits do all that can be done together.
func (t *together[In, Out]) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all, later []*call[In, Out]
	taken := map[string]bool{}
	for _, c := range t.waiting {
		key := ""
		if t.key != nil {
			key = t.key(c.in)
		}
		if len(all) == mostTogether || key != "" && taken[key] {
			later = append(later, c)
			continue
		}
		taken[key] = true
		all = append(all, c)
	}
	t.waiting, t.busy = later, len(all) > 0
	if t.busy {
		all[0].lead <- all
	}
}
