package agent

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// callTimeout bounds a request that the server answers at once.
	callTimeout = 30 * time.Second
	// pullTimeout bounds a request that waits for the forge.
	pullTimeout = 3 * time.Minute

	// mostFaults is how often the server may have a fault of its own with one call.
	mostFaults = 30

	firstPause   = 250 * time.Millisecond
	longestPause = 15 * time.Second
)

// passes says whether the error is one that passes by itself: nobody answered,
// the answer was cut off, or the server has trouble of its own.
func passes(err error) bool {
	switch task.CodeOf(err) {
	case task.Unavailable, task.DatabaseDown, task.NotReady, task.Interrupted, task.Internal, task.TooMany:
		return true
	default:
		return false
	}
}

// lost says whether the error means that the run is over for this agent.
func lost(err error) bool {
	switch task.CodeOf(err) {
	case task.LeaseLost, task.StaleGeneration:
		return true
	default:
		return false
	}
}

func pauses() *backoff.ExponentialBackOff {
	growing := backoff.NewExponentialBackOff()
	growing.InitialInterval, growing.MaxInterval = firstPause, longestPause
	return growing
}

// persist makes a call to the server again and again until it succeeds, fails for
// good, or the context ends. Only what is safe to repeat may be called so. The
// context's cause is returned when it ends. A server that has a fault of its own
// every time is not asked without end.
func persist[T any](ctx context.Context, timeout time.Duration, call func(context.Context) (T, error)) (T, error) {
	faults := 0
	return persistOn(ctx, timeout, func(err error) bool {
		if task.CodeOf(err) == task.Internal {
			faults++
		}
		return passes(err) && faults < mostFaults
	}, call)
}

// persistOn is persist for the errors of which again says so.
func persistOn[T any](ctx context.Context, timeout time.Duration, again func(error) bool, call func(context.Context) (T, error)) (T, error) {
	return backoff.Retry(ctx, func() (T, error) {
		once, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		result, err := call(once)
		if err != nil && !again(err) {
			err = backoff.Permanent(err)
		}
		return result, err
	}, backoff.WithBackOff(pauses()), backoff.WithMaxElapsedTime(0))
}

// outside says whether the error is about something that is neither this run's
// doing nor this machine's, and that passes.
func outside(err error) bool { return passes(err) && task.CodeOf(err) != task.Internal }
