package server

import (
	"context"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// readyTimeout is how long a check may take.
	readyTimeout = 2 * time.Second
	// readyFor is how long the answer of a check holds: whoever asks, and nobody has to
	// show a token for that, causes one write in this time at most.
	readyFor = time.Second
)

const databaseCheck = "database"

// Check tests something without which a server cannot do its work.
type Check struct {
	Name string // a key of messages: readiness.NAME
	Test func(ctx context.Context) error
}

// Fault is a check that failed.
type Fault struct {
	Name string
	Err  error
}

// readiness tells whether requests should be sent to a server.
type readiness struct {
	checks []Check
	now    func() time.Time

	mu      sync.Mutex
	asked   time.Time
	faults  []Fault
	running []chan error // by check: what is being made, and then its result
}

// newReadiness tests the database and what else the options name. Each check is a metric too.
func newReadiness(options Options) *readiness {
	made := &readiness{now: options.Now, checks: append([]Check{{Name: databaseCheck, Test: options.Store.TestWrite}}, options.Checks...)}
	made.running = make([]chan error, len(made.checks))
	for _, check := range made.checks {
		options.Metrics.Gauge("toryo_ready", "Whether what the server needs can be used and written: 1 or 0.", func() float64 {
			for _, fault := range made.failed(context.Background()) {
				if fault.Name == check.Name {
					return 0
				}
			}
			return 1
		}, metrics.Label{Name: "check", Value: check.Name})
	}
	return made
}

// Faults are the checks that fail, as of a moment ago.
func (s *Server) Faults(ctx context.Context) []Fault { return s.readiness.failed(ctx) }

func (r *readiness) failed(ctx context.Context) []Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); r.asked.IsZero() || now.Before(r.asked) || now.Sub(r.asked) >= readyFor {
		r.faults = r.test(context.WithoutCancel(ctx)) // the next one who asks has the answer too
		r.asked = r.now()
	}
	return r.faults
}

// test makes the checks at the same time. One that does not come back in time, such as a
// write to a disk that hangs, has failed, and is not made again before it has come back.
func (r *readiness) test(ctx context.Context) (faults []Fault) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for i, check := range r.checks {
		select {
		case <-r.running[i]: // of an earlier test, which did not come back in time
			r.running[i] = nil
		default:
		}
		if r.running[i] == nil {
			ended := make(chan error, 1)
			r.running[i] = ended
			go func() { ended <- check.Test(ctx) }()
		}
	}
	for i, check := range r.checks {
		if err := r.await(ctx, i); err != nil {
			faults = append(faults, Fault{check.Name, err})
		}
	}
	return faults
}

// await is the result of a check, which has to come before the context ends. One that has come
// by then counts, also when another check has used up the time.
func (r *readiness) await(ctx context.Context, check int) error {
	ended := r.running[check]
	select {
	case err := <-ended:
		r.running[check] = nil
		return err
	case <-ctx.Done():
	}
	select { // of two that were ready, the one above has chosen at random
	case err := <-ended:
		r.running[check] = nil
		return err
	default:
		return errHangs
	}
}

var errHangs = task.Errorf(task.Unavailable, "it did not answer in %s", readyTimeout)

// err is the first fault as an error for anybody. What exactly is wrong is for the log.
func (r *readiness) err(ctx context.Context) error {
	faults := r.failed(ctx)
	if len(faults) == 0 {
		return nil
	}
	first, code := faults[0], task.NotReady
	if first.Name == databaseCheck {
		code = task.DatabaseDown
	}
	return task.Wrap(code, first.Err, messages.Text(task.English, "readiness."+first.Name))
}
