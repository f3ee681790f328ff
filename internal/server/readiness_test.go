package server

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/task"
)

type writable struct{ Store }

func (writable) TestWrite(context.Context) error { return nil }

// TestReadinessOfADiskThatHangs: a check that hangs is a fault, is made once, and passes
// when it comes back; however many ask.
func TestReadinessOfADiskThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		back, now := make(chan error), time.Now()
		ready := newReadiness(Options{Store: writable{}, Now: func() time.Time { return now }, Metrics: new(metrics.Registry), Checks: []Check{{Name: "data_folder", Test: func(context.Context) error {
			made.Add(1)
			return <-back
		}}}})
		for range 3 {
			if err := ready.err(t.Context()); task.CodeOf(err) != task.NotReady || !errors.Is(err, errHangs) {
				t.Errorf("while it hangs: %v", err)
			}
			now = now.Add(readyFor)
		}
		if made.Load() != 1 {
			t.Errorf("it was made %d times", made.Load())
		}
		back <- errors.New("no space") // it comes back; what it says is of a time long past
		synctest.Wait()
		go func() { back <- nil }()
		if err := ready.err(t.Context()); err != nil {
			t.Errorf("when it is well again: %v", err)
		}
		if err := ready.err(t.Context()); err != nil || made.Load() != 2 {
			t.Errorf("a moment later: %v, made %d times", err, made.Load())
		}
	})
}

type hanging struct {
	Store
	back chan error
}

func (h hanging) TestWrite(context.Context) error { return <-h.back }

// TestReadinessBesideACheckThatHangs: a check that has passed is no fault because another one
// hangs, and one that has failed is told with what it said.
func TestReadinessBesideACheckThatHangs(t *testing.T) {
	t.Parallel()
	full := errors.New("no space")
	for range 50 { // what has come and what has ended are chosen from at random
		synctest.Test(t, func(t *testing.T) {
			back := make(chan error)
			ready := newReadiness(Options{Store: hanging{back: back}, Now: time.Now, Metrics: new(metrics.Registry), Checks: []Check{
				{Name: "data_folder", Test: func(context.Context) error { return nil }},
				{Name: "other_folder", Test: func(context.Context) error { return full }},
			}})
			faults := ready.failed(t.Context())
			if len(faults) != 2 || faults[0] != (Fault{databaseCheck, errHangs}) || faults[1] != (Fault{"other_folder", full}) {
				t.Errorf("while the database hangs: %+v", faults)
			}
			back <- nil
		})
	}
}
