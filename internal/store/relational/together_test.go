package relational

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/toryo-dev/toryo/internal/task"
)

// togetherTest calls together, and keeps what its transactions were called for.
type togetherTest struct {
	together[int, int]

	mu    sync.Mutex
	calls [][]int
	gate  chan struct{} // holds the first transaction up
}

func newTogetherTest() *togetherTest { return &togetherTest{gate: make(chan struct{})} }

// double doubles numbers. With -1 among others it fails, and -2 has to be done alone.
func (x *togetherTest) double(ctx context.Context, all []int) ([]result[int], error) {
	x.mu.Lock()
	x.calls = append(x.calls, slices.Sorted(slices.Values(all)))
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
		case n == -1:
			return nil, errors.New("minus one")
		case n == -2 && len(all) > 1:
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
			ctx := t.Context()
			if given := contexts[n]; given != nil {
				ctx = given
			}
			out, err := x.do(ctx, n, x.double)
			mu.Lock()
			defer mu.Unlock()
			outs[n], errs[n] = out, err
		})
	}
	call(100)
	synctest.Wait()
	for _, n := range numbers {
		call(n)
		synctest.Wait()
	}
	close(x.gate)
	all.Wait()
	return outs, errs
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
		calls   [][]int
		wrong   []int
	}{
		{"alone", nil, nil, [][]int{{100}}, nil},
		{"what waits is done together", nil, []int{1, 2, 3}, [][]int{{100}, {1, 2, 3}}, nil},
		{"one that fails does not make others fail", nil, []int{1, -1, 3}, [][]int{{100}, {-1, 1, 3}, {-1}, {1}, {3}}, []int{-1}},
		{"one has to be done alone", nil, []int{1, -2, 3}, [][]int{{100}, {-2, 1, 3}, {-2}}, nil},
		{"the same key", func(n int) string { return []string{"even", "odd"}[n%2] }, []int{1, 2, 3, 4, 5}, [][]int{{100}, {1, 2}, {3, 4}, {5}}, nil},
		{"no more than can be", nil, many, [][]int{{100}, many[:mostTogether], many[mostTogether:]}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x := newTogetherTest()
				x.key = c.key
				outs, errs := x.at(t, nil, c.numbers...)
				for n, err := range errs {
					if (err != nil) != slices.Contains(c.wrong, n) || err == nil && outs[n] != 2*n {
						t.Errorf("%d: %d, %v", n, outs[n], err)
					}
				}
				alone := x.calls[min(2, len(x.calls)):]
				if len(c.wrong) > 0 {
					slices.SortFunc(alone, slices.Compare[[]int]) // they go on at the same time
				}
				if !slices.EqualFunc(x.calls, c.calls, slices.Equal[[]int]) {
					t.Errorf("transactions for %v, want %v", x.calls, c.calls)
				}
				if x.busy || len(x.waiting) > 0 {
					t.Error("somebody is left")
				}
			})
		})
	}
}

// TestCallersThatLeave: who waits can leave. Who has the calls of others to do, does them.
func TestCallersThatLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newTogetherTest()
		ended, end := context.WithCancel(t.Context())
		end()
		outs, errs := x.at(t, map[int]context.Context{1: ended}, 1, 2, 3)
		if task.CodeOf(errs[1]) != task.Interrupted || errs[2] != nil || errs[3] != nil || outs[3] != 6 {
			t.Errorf("%v, %v", outs, errs)
		}
		if want := [][]int{{100}, {2, 3}}; !slices.EqualFunc(x.calls, want, slices.Equal[[]int]) {
			t.Errorf("transactions for %v, want %v", x.calls, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		x := newTogetherTest()
		leads, end := context.WithCancel(t.Context())
		leader := &call[int, int]{in: 1, lead: make(chan []*call[int, int], 1), done: make(chan struct{})}
		other := &call[int, int]{in: 2, done: make(chan struct{})}
		close(x.gate)
		end()
		x.run(leads, []*call[int, int]{leader, other}, x.double)
		<-other.done
		if other.alone || other.err != nil || other.out != 4 {
			t.Errorf("the other call: %+v", other.result)
		}
	})
}
