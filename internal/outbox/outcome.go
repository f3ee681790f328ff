package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// outcome is what becomes of an action.
type outcome struct {
	status store.ActionStatus
	reason task.Reason
	again  time.Duration // if it stays pending
}

// judge decides what becomes of an action after an attempt: the one table from
// errors to outcomes.
func (s *Sender) judge(action store.Action, err error) outcome {
	if err == nil {
		return outcome{status: store.Delivered}
	}
	again := outcome{status: store.Pending, again: max(forge.RetryAfter(err), pauseAfter(action.Attempts))}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return again
	}
	if errors.Is(err, errExpired) || errors.Is(err, errChangesRequested) { // it is decided anew
		return outcome{status: store.Refused, reason: task.ReasonExpired}
	}
	switch code := task.CodeOf(err); code {
	case task.StaleGeneration:
		return outcome{status: store.Refused, reason: task.ReasonStaleGeneration}
	case task.Conflict:
		return outcome{status: store.Refused, reason: task.ReasonForgeConflict}
	case task.Forbidden, task.NotFound, task.Invalid, task.TooLarge, task.Unsupported:
		return outcome{status: store.Refused, reason: whoRefused(err)}
	case task.Internal:
		if action.Attempts >= faultAttempts {
			return outcome{status: store.Refused, reason: task.ReasonAttemptsExhausted}
		}
		return again
	default: // the forge or the database is not to be had, or the credential is bad
		return again
	}
}

// whoRefused tells what a forge has said from what went wrong here, as in the mirror: people are
// shown only the words of a forge.
func whoRefused(err error) task.Reason {
	if _, said := errors.AsType[*forge.Error](err); said {
		return task.ReasonRejectedByForge
	}
	return task.ReasonNotWritten
}

// pauseAfter returns the pause after so many attempts.
func pauseAfter(attempts int) time.Duration {
	pauses := lifecycle.NewBackoff(longestBackoff)
	pause := pauses.NextBackOff()
	for range min(attempts, 20) - 1 {
		pause = pauses.NextBackOff()
	}
	return pause
}
