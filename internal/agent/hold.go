package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// leaseBeats is how many renewals in a row may fail before the lease counts as
// run out by the agent's own clock.
const leaseBeats = 3

// hold is one task in this agent's hands, from hand-out to result: it keeps the
// lease, listens for signals, and brings journal and progress to the server. All
// of its goroutines end in release.
type hold struct {
	assignment wire.Assignment
	held       *wire.RunClient
	log        *slog.Logger
	language   task.Language
	redactor   llm.Redactor

	// cutRun ends the context of the run with a cause; cutHold everything.
	cutRun, cutHold context.CancelCauseFunc
	ended           sync.WaitGroup

	files    *contexts.Journal // nil until the run begins
	reporter *reporter
	inbox    *inbox
	progress *progress
}

// clean takes secrets out of what people are told.
func (h *hold) clean(text string) string {
	if h.redactor == nil {
		return text
	}
	return h.redactor.String(text)
}

// cleanResult takes secrets out of a result, whoever made it.
func (h *hold) cleanResult(result wire.Result) (wire.Result, error) {
	if h.redactor == nil {
		return result, nil
	}
	data, err := json.Marshal(result)
	if err != nil {
		return wire.Result{}, fmt.Errorf("write the result: %w", err)
	}
	var cleaned wire.Result
	if err := json.Unmarshal([]byte(h.clean(string(data))), &cleaned); err != nil {
		return wire.Result{}, fmt.Errorf("read the result: %w", err)
	}
	return cleaned, nil
}

// take begins to hold a task. It returns the context of the run and that of the
// hold, which outlasts it: what is said at the end is said with the latter. The
// run is cut with [ErrStopping] when the given context ends.
func take(ctx context.Context, client *wire.Client, assignment wire.Assignment, log *slog.Logger) (h *hold, run, whole context.Context) {
	held := client.Run(&assignment)
	h = &hold{
		assignment: assignment, held: held, log: log,
		reporter: newReporter(held), inbox: newInbox(), progress: newProgress(held),
	}
	whole, h.cutHold = context.WithCancelCause(context.WithoutCancel(ctx))
	run, h.cutRun = context.WithCancelCause(whole)
	unlink := context.AfterFunc(ctx, func() { h.cutRun(ErrStopping) })
	h.start(func() { h.keepLease(whole, time.Now()) })
	h.start(func() { h.listen(whole) })
	h.start(func() { h.end(h.reporter.run(whole)) })
	h.start(func() { h.end(h.progress.run(whole)) })
	context.AfterFunc(whole, func() { unlink() })
	return h, run, whole
}

func (h *hold) start(what func()) { h.ended.Go(what) }

// release ends everything that belongs to the hold.
func (h *hold) release() {
	h.cutHold(context.Canceled)
	h.ended.Wait()
}

// end ends the run and the hold because of an error that one of their goroutines
// met. Without an error it does nothing.
func (h *hold) end(err error) {
	switch {
	case err == nil:
	case lost(err):
		h.cutHold(ErrLeaseLost)
	default:
		h.cutRun(err)
	}
}

// keepLease renews the lease. The interval counts on this machine's own clock,
// and from when a renewal was sent rather than answered, so that the lease is
// not believed to last longer than the server does.
//
// An example with a renewal every 10 s, which makes a lease of 30 s. A renewal is sent at
// 12:00:00 and answered at 12:00:04. The server counts 30 s from when it handled it, some
// time in between; we count them from 12:00:00. If nothing gets through from then on, the
// run is cut here at 12:00:30, or when the renewal that is on its way then has failed, at most
// 10 s later. What it still writes after the server has handed the task to another
// agent names an older generation and is refused. The two machines compare durations and
// never times of day, so wrong clocks do no harm.
func (h *hold) keepLease(ctx context.Context, renewed time.Time) {
	every := time.Duration(h.assignment.Lease.Every) * time.Millisecond
	if every <= 0 {
		every = defaultRenewal
	}
	lasts := leaseBeats * every
	heard := renewed // when the server last said that it holds the lease, or that it cannot write
	for pause := every; lifecycle.Sleep(ctx, pause) == nil; {
		asked := time.Now()
		once, cancel := context.WithTimeout(ctx, min(every, callTimeout))
		_, err := h.held.Renew(once)
		cancel()
		switch {
		case err == nil:
			renewed, heard, pause = asked, asked, every
			continue
		case ctx.Err() != nil:
			return
		case !passes(err):
			h.log.WarnContext(ctx, "lease lost", "error", err)
			h.cutHold(ErrLeaseLost)
			return
		}
		if task.CodeOf(err) == task.DatabaseDown && asked.Sub(renewed) < longestOutage {
			// The server is there and can write nothing, so nobody else gets the task from
			// it. If another server can, what this run writes from then on is refused.
			heard, pause = asked, every/renewalTries
			continue
		}
		left := lasts - time.Since(heard)
		if left <= 0 {
			h.log.WarnContext(ctx, "lease expired: the server could not be reached", "error", err)
			h.cutHold(ErrLeaseLost)
			return
		}
		pause = min(every/renewalTries, left)
	}
}

const (
	// defaultRenewal is for a server that does not say how often it wants to hear.
	defaultRenewal = 10 * time.Second
	// longestOutage is how long a run goes on whose server has no database.
	longestOutage = 10 * time.Minute
	// renewalTries is how often a failed renewal is tried again in the time of one.
	renewalTries = 8

	// listenFor is how long one request for signals waits.
	listenFor = 30 * time.Second
	// listenSlack is how much later than that its answer may come.
	listenSlack = 15 * time.Second
	// listenAgain is the pause before the server is asked again after it has
	// answered with what is known already.
	listenAgain = time.Second
)

// listen waits for signals and comments and passes them on until the run is asked
// to stop or the context ends.
func (h *hold) listen(ctx context.Context) {
	after := h.inbox.begin(h.assignment)
	paused, growing := false, pauses()
	for ctx.Err() == nil {
		once, cancel := context.WithTimeout(ctx, listenFor+listenSlack)
		signals, err := h.held.Signals(once, after, listenFor)
		cancel()
		if err != nil {
			if lost(err) {
				h.cutHold(ErrLeaseLost)
				return
			}
			if lifecycle.Sleep(ctx, growing.NextBackOff()) != nil {
				return
			}
			continue
		}
		growing.Reset()
		after = h.inbox.add(signals.Comments)
		switch {
		case signals.Stop != nil:
			h.halt(ctx, task.SignalStop, signals.Stop)
			return
		case signals.Pause != nil:
			if !paused {
				h.halt(ctx, task.SignalPause, signals.Pause)
			}
			paused = true
			if lifecycle.Sleep(ctx, listenAgain) != nil {
				return
			}
		}
	}
}

// halt cuts the run because of a signal.
func (h *hold) halt(ctx context.Context, signal task.Signal, asked *wire.Halt) {
	h.log.InfoContext(ctx, "run asked to end", "signal", signal, "reason", asked.Reason)
	halt := &phase.Halt{Signal: signal, Reason: task.Reason(asked.Reason), Since: time.Now()}
	h.inbox.halted(halt)
	h.cutRun(halt)
}
