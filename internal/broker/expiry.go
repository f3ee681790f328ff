package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// expiredAtOnce is how many leases are ended in one go.
const expiredAtOnce = 500

// Expiry ends the runs of agents that were not heard of in time.
type Expiry struct {
	Leases      store.Leases
	Tasks       store.Tasks
	MaxAttempts int
	Labels      outbox.Labels
	// Halted is asked first, with a task whose lease is over: a stop or a pause may
	// be waiting for it, which then is what happens. Nil means never.
	Halted func(ctx context.Context, t task.Task) (done bool, err error)
	// GaveUp is the comment for people when the attempts are used up.
	GaveUp func(ctx context.Context, t task.Task) string
	// Grace is how long leases are left alone after a time in which nobody could look at
	// them, since the database was down or its disk full: the agents could not renew them
	// then either, and do so now. It is longer than the time between two calls of Expire.
	Grace         time.Duration
	Now           func() time.Time
	OutboxChanged func() // is called when there is something in the outbox
	Log           *slog.Logger

	looked, quiet time.Time // the last look, and until when leases are left alone
}

// Expire puts tasks whose lease is over back into the queue, in a new generation,
// and lets those fail that have used up their attempts. It goes on with the next
// when one cannot be moved, and returns all that went wrong.
func (e *Expiry) Expire(ctx context.Context) error {
	now := e.Now()
	if since := now.Sub(e.looked); since > e.Grace || since < 0 { // the clock was set back
		e.quiet = now.Add(e.Grace)
	}
	expired, err := e.Leases.Expired(ctx, now, expiredAtOnce)
	if err != nil {
		return err
	}
	e.looked = now // a look that failed is none
	if now.Before(e.quiet) {
		return nil
	}
	for _, t := range expired {
		if failed := e.end(ctx, t, now, task.ReasonLeaseExpired); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", t.Key, failed))
		}
	}
	if len(expired) > 0 {
		e.OutboxChanged()
	}
	return err
}

// Restarted does the same with tasks whose leases were ended because their agent was
// started again.
func (e *Expiry) Restarted(ctx context.Context, held []task.Task) (err error) {
	for _, t := range held {
		if failed := e.end(ctx, t, e.Now(), task.ReasonAgentRestarted); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", t.Key, failed))
		}
	}
	if len(held) > 0 {
		e.OutboxChanged()
	}
	return err
}

// restartPause is how long a task waits that was lost again with an agent that was started
// again, less than that after it was handed out or came to its phase: such a process may end
// again and again, and must not use up all attempts in seconds.
const restartPause = 30 * time.Second

func (e *Expiry) end(ctx context.Context, t task.Task, now time.Time, why task.Reason) error {
	if e.Halted != nil {
		if done, err := e.Halted(ctx, t); done || err != nil {
			return err
		}
	}
	change := store.Change{
		Task: t.ID, Generation: t.Generation, Trigger: task.Lost, Reason: why,
		Effects: e.Labels.Effects, LeaseOver: now,
	}
	if why == task.ReasonAgentRestarted && t.Attempts > 1 && now.Sub(t.UpdatedAt) < restartPause {
		change.ReadyAt = now.Add(restartPause)
	}
	if t.Attempts >= e.MaxAttempts {
		change.Trigger, change.Reason, change.Effects = task.GaveUp, task.ReasonAttemptsExhausted, e.gaveUp(e.GaveUp(ctx, t))
	}
	_, err := e.Tasks.Move(ctx, change)
	switch task.CodeOf(err) {
	case "":
		e.Log.WarnContext(ctx, "run lost with its agent", "task", t.ID, "item", t.Key.String(), "agent", t.Lease.Agent,
			"attempt", t.Attempts, "reason", change.Reason)
		return nil
	case task.Conflict, task.StaleGeneration, task.IllegalMove:
		return nil // it was renewed, or has ended, at the last moment
	default:
		return err
	}
}

// gaveUp tells people that there will be no further attempt.
func (e *Expiry) gaveUp(text string) store.Effects {
	return func(before, after task.Task) []store.Action {
		return append(e.Labels.Effects(before, after), outbox.CommentAction(after, "attempts", text))
	}
}
