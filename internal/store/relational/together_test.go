package relational

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// togetherTest calls together, and keeps what its transactions were called for.
type togetherTest struct {
	*together[int, int]

	mu    sync.Mutex
	calls []string
	gate  chan struct{} // holds the first transaction up
}

func newTogetherTest(key func(int) string) *togetherTest {
	if key == nil {
		key = func(n int) string { return fmt.Sprint(n) }
	}
	return &togetherTest{together: newTogether[int, int](key), gate: make(chan struct{})}
}

// What special numbers do in a transaction that is not their own.
const (
	fails  = -1
	locked = -2
	lost   = -3
	panics = -4
	late   = -5
	away   = -6
)

// double doubles numbers.
func (x *togetherTest) double(ctx context.Context, all []int, patient bool) ([]result[int], error) {
	x.mu.Lock()
	name := fmt.Sprint(slices.Sorted(slices.Values(all)))
	if patient {
		name += " alone"
	}
	x.calls = append(x.calls, name)
	first := len(x.calls) == 1
	x.mu.Unlock()
	if first {
		<-x.gate
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	results := make([]result[int], len(all))
	for i, n := range all {
		switch {
		case n == fails:
			return nil, errors.New("minus one")
		case n == lost:
			return nil, task.Wrap(task.DatabaseDown, &commitError{errors.New("broken pipe")}, "the connection is lost")
		case n == late:
			return nil, task.Wrap(task.Interrupted, &commitError{context.DeadlineExceeded}, "nobody waits any more")
		case n == away && !patient:
			return nil, task.Errorf(task.DatabaseDown, "there is no connection")
		case n == panics && !patient:
			panic("minus four")
		case n == locked && !patient:
			results[i].alone = true
		default:
			results[i].out = 2 * n
		}
	}
	return results, nil
}

// at calls for each number at the same time, while an earlier call, for 100, is in its transaction.
func (x *togetherTest) at(t *testing.T, contexts map[int]context.Context, numbers ...int) (outs map[int]int, errs map[int]error) {
	t.Helper()
	outs, errs = map[int]int{}, map[int]error{}
	var mu sync.Mutex
	var all sync.WaitGroup
	call := func(n int) {
		all.Go(func() {
			out, err := x.do(cmp.Or(contexts[n], t.Context()), n, x.double)
			mu.Lock()
			defer mu.Unlock()
			outs[n], errs[n] = out, err
		})
		synctest.Wait()
	}
	call(100)
	for _, n := range numbers {
		call(n)
	}
	if contexts == nil {
		close(x.gate)
	}
	all.Wait()
	return outs, errs
}

// TestCallsAtOnce: calls that come at the same moment are done together, also if nothing was under way. It
// is about one processor, which goes on with the first of them as long as that has something to do.
//
//nolint:paralleltest // it changes how many processors there are
func TestCallsAtOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const calls = 10
	x := newTogetherTest(nil)
	close(x.gate)
	var all sync.WaitGroup
	for n := range calls {
		all.Go(func() {
			if out, err := x.do(t.Context(), n, x.double); out != 2*n || err != nil {
				t.Errorf("%d becomes %d: %v", n, out, err)
			}
		})
	}
	all.Wait()
	if len(x.calls) > calls/2 {
		t.Errorf("%d calls are %d transactions: %s", calls, len(x.calls), x.calls)
	}
}

func TestTogether(t *testing.T) {
	t.Parallel()
	many := make([]int, mostTogether+2)
	for i := range many {
		many[i] = i
	}
	for _, c := range []struct {
		name    string
		key     func(int) string
		numbers []int
		calls   []string // after the first one
		wrong   []int
	}{
		{"one call", nil, nil, nil, nil},
		{"what waits is done together", nil, []int{1, 2, 3}, []string{"[1 2 3]"}, nil},
		{"one that fails does not make others fail", nil, []int{1, fails, 3}, []string{"[-1 1 3]", "[-1] alone", "[1] alone", "[3] alone"}, []int{fails}},
		{"one that panics does not make others panic", nil, []int{1, panics}, []string{"[-4 1]", "[-4] alone", "[1] alone"}, nil},
		{"one is locked", nil, []int{1, locked, 3}, []string{"[-2 1 3]", "[-2] alone"}, nil},
		{"only one, and it is locked", nil, []int{locked}, []string{"[-2]", "[-2] alone"}, nil},
		{"only one, and it fails", nil, []int{fails}, []string{"[-1]"}, []int{fails}},
		{"what may have been done is not done again", nil, []int{1, lost}, []string{"[-3 1]"}, []int{1, lost}},
		{"a commit that takes too long", nil, []int{1, late}, []string{"[-5 1]"}, []int{1, late}},
		{"what failed before its commit is done again", nil, []int{1, away}, []string{"[-6 1]", "[-6] alone", "[1] alone"}, nil},
		{"the same key", func(n int) string { return []string{"even", "odd"}[n%2] }, []int{1, 2, 3, 4, 5}, []string{"[1 2]", "[3 4]", "[5]"}, nil},
		{"no more than can be", nil, many, []string{fmt.Sprint(many[:mostTogether]), fmt.Sprint(many[mostTogether:])}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x := newTogetherTest(c.key)
				outs, errs := x.at(t, nil, c.numbers...)
				for n, err := range errs {
					if task.CodeOf(err) == task.Interrupted {
						t.Errorf("%d: no context has ended: %v", n, err)
					}
					if (err != nil) != slices.Contains(c.wrong, n) || err == nil && outs[n] != 2*n {
						t.Errorf("%d: %d, %v", n, outs[n], err)
					}
				}
				if c.wrong != nil || len(x.calls) > 2 && c.key == nil && len(c.numbers) < mostTogether {
					slices.Sort(x.calls[2:]) // these go on at the same time
				}
				if !slices.Equal(x.calls[1:], c.calls) {
					t.Errorf("transactions for %q, want %q", x.calls[1:], c.calls)
				}
				if len(x.leading) > 0 || len(x.waiting) > 0 {
					t.Error("somebody is left")
				}
			})
		})
	}
}

// TestCallersThatLeave: who waits can leave, and others are done without it.
func TestCallersThatLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newTogetherTest(nil)
		ended, end := context.WithCancel(t.Context())
		end()
		soon, endSoon := context.WithTimeout(t.Context(), time.Second)
		defer endSoon()
		go func() {
			<-soon.Done()
			synctest.Wait()
			close(x.gate)
		}()
		outs, errs := x.at(t, map[int]context.Context{1: soon, 4: ended}, 1, 2, 3, 4)
		if task.CodeOf(errs[1]) != task.Interrupted || task.CodeOf(errs[4]) != task.Interrupted || errs[2] != nil || errs[3] != nil || outs[3] != 6 {
			t.Errorf("%v, %v", outs, errs)
		}
		if want := []string{"[100]", "[2 3]"}; !slices.Equal(x.calls, want) {
			t.Errorf("transactions for %q, want %q", x.calls, want)
		}
	})
}

// TestWhoLeadsAndLeaves: a call that does others, and whose context ends, does them all the same.
func TestWhoLeadsAndLeaves(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	x := newTogetherTest(nil)
	close(x.gate)
	others := []*call[int, int]{{in: 1, done: make(chan struct{})}, {in: 2, done: make(chan struct{})}}
	x.waiting = slices.Clone(others)
	x.leading <- struct{}{}
	x.lead(ended, nil, x.double)
	for _, other := range others {
		<-other.done
		if other.alone || other.err != nil || other.out != 2*other.in {
			t.Errorf("%d: %+v", other.in, other.result)
		}
	}
}

// A commit that nobody waited for may have been done, which what goes before it cannot.
func TestACommitThatWasBrokenOffMayBeDone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &Store{}
	if err := s.explain(ctx, &commitError{context.Canceled}); !mayBeDone(err) || task.CodeOf(err) != task.Interrupted {
		t.Errorf("a commit: %v", err)
	}
	if err := s.explain(ctx, context.Canceled); mayBeDone(err) || task.CodeOf(err) != task.Interrupted {
		t.Errorf("before the commit: %v", err)
	}
}
