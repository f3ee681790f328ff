package broker

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// pauseFileEvery is how often we look whether the pause file is there.
	pauseFileEvery = time.Second
	// expiryEvery is how often we look for tasks that were paused for too long.
	expiryEvery = time.Hour
)

// Start begins to see to it that halts come about.
func (h *Controller) Start(ctx context.Context) {
	h.background.Start(ctx, h.keepLooking, h.keepExpiring, h.watchPauseFile)
}

// Stop ends what Start began and waits for it.
func (h *Controller) Stop() { h.background.Stop() }

// PauseAll pauses everything on behalf of a source: runs are halted, and nothing
// is handed out, until every source has taken it back. By is the login of who wants it, or "".
func (h *Controller) PauseAll(ctx context.Context, source, by string) error {
	if h.options.Disabled {
		return errNoPauses()
	}
	first, err := h.options.Store.PauseAll(ctx, store.GeneralPause{Source: source, By: by, At: h.options.Now()})
	if err != nil {
		return err
	}
	if first {
		h.options.Log.InfoContext(ctx, "everything is paused", "source", source, "by", by)
	}
	lifecycle.Signal(h.wake)
	return h.spread(ctx)
}

// ResumeAll takes back what a source wanted, and returns who still wants
// everything to be paused. When nobody does, every task that was paused with
// everything goes on.
func (h *Controller) ResumeAll(ctx context.Context, source string) ([]store.GeneralPause, error) {
	if _, err := h.options.Store.ResumeAll(ctx, source); err != nil {
		return nil, err
	}
	if err := h.spread(ctx); err != nil {
		return nil, err
	}
	return h.options.Store.GeneralPauses(ctx)
}

// spread makes every task follow what is wanted of all.
func (h *Controller) spread(ctx context.Context) error {
	wanted, err := h.options.Store.GeneralPauses(ctx)
	if err != nil {
		return err
	}
	active, err := h.options.Store.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Running, task.Paused}})
	if err != nil {
		return err
	}
	var failed []error
	for _, t := range active {
		switch {
		case len(wanted) > 0 && t.State == task.Running:
			_, err = h.Pause(ctx, t.ID, task.ReasonAllPaused)
		case len(wanted) == 0 && t.State == task.Paused && t.Reason == task.ReasonAllPaused:
			_, err = h.goOn(ctx, t, task.ReasonAllPaused)
		default:
			continue
		}
		failed = append(failed, ignoreConflict(err))
	}
	if len(wanted) == 0 {
		failed = append(failed, h.cancelAll(ctx))
	}
	return errors.Join(failed...)
}

// cancelAll takes back the pauses of everything that have not come about.
func (h *Controller) cancelAll(ctx context.Context) error {
	pending, err := h.options.Store.ListHalts(ctx)
	if err != nil {
		return err
	}
	for _, halt := range pending {
		if halt.Signal != task.SignalPause || halt.Reason != task.ReasonAllPaused {
			continue
		}
		if _, err := h.options.Store.CancelHalt(ctx, halt.Task, halt.Signal, halt.Reason); err != nil {
			return err
		}
	}
	return nil
}

// keepLooking sees to what is pending when something was noted, when its time has
// come, and now and then for what another server has left.
func (h *Controller) keepLooking(ctx context.Context) {
	for {
		next, err := h.Look(ctx)
		if err != nil && ctx.Err() == nil {
			h.options.Log.ErrorContext(ctx, "failed to process pending stops and pauses; retrying", "error", err)
			next = h.options.Now().Add(time.Second)
		}
		timer := time.NewTimer(min(h.options.LookEvery, max(0, next.Sub(h.options.Now()))))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-h.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Look makes everything come about whose time has come, and returns when to look
// again.
func (h *Controller) Look(ctx context.Context) (next time.Time, err error) {
	next = h.options.Now().Add(h.options.LookEvery)
	failed := []error{h.spread(ctx)}
	pending, err := h.options.Store.ListHalts(ctx)
	if err != nil {
		return next, errors.Join(append(failed, err)...)
	}
	for _, halt := range pending {
		t, err := h.options.Store.Task(ctx, halt.Task)
		if err == nil {
			err = h.settle(ctx, halt, t)
		}
		failed = append(failed, err)
		due := halt.At.Add(h.options.Grace)
		if halt.Signal == task.SignalPause {
			due = t.Lease.ExpiresAt
		}
		if t.State == task.Running && !due.After(h.options.Now()) {
			due = h.options.Now().Add(time.Second) // it waits for something else
		}
		if t.State == task.Running && due.Before(next) {
			next = due
		}
	}
	return next, errors.Join(failed...)
}

// keepExpiring stops tasks that were paused for too long.
func (h *Controller) keepExpiring(ctx context.Context) {
	lifecycle.Every(ctx, expiryEvery, func(ctx context.Context) {
		if err := h.Expire(ctx); err != nil && ctx.Err() == nil {
			h.options.Log.ErrorContext(ctx, "failed to stop tasks that were paused for too long; retrying", "error", err)
		}
	})
}

// Expire stops the tasks that were paused for too long.
func (h *Controller) Expire(ctx context.Context) error {
	if h.options.Expiry == 0 {
		return nil
	}
	paused, err := h.options.Store.ListTasks(ctx, store.TaskFilter{States: []task.State{task.Paused}})
	if err != nil {
		return err
	}
	var failed []error
	for _, t := range paused {
		if h.options.Now().Sub(t.UpdatedAt) > h.options.Expiry {
			failed = append(failed, h.lapseUnlessAnswered(ctx, t))
		}
	}
	return errors.Join(failed...)
}

// lapseUnlessAnswered stops a task that was paused for too long. One that waits for people is
// looked at first: they may have said something just now. While its item cannot be read, it waits,
// unless the item is gone or hidden from us.
func (h *Controller) lapseUnlessAnswered(ctx context.Context, t task.Task) error {
	if !t.AwaitsPeople() || h.options.LookFirst == nil {
		return h.lapse(ctx, t)
	}
	hidden := []task.Code{task.NotFound, task.Forbidden, task.Unsupported} // the last: its forge is not configured any more
	if err := h.options.LookFirst(ctx, t); err != nil && !slices.Contains(hidden, task.CodeOf(err)) {
		return err
	}
	is, err := h.options.Store.Task(ctx, t.ID)
	if err != nil || is.State != t.State || is.Reason != t.Reason || is.Generation != t.Generation {
		return err
	}
	return h.lapse(ctx, t)
}

func (h *Controller) lapse(ctx context.Context, t task.Task) error {
	n, in, err := h.notice(ctx, t)
	if err != nil {
		return err
	}
	n.Days = int(h.options.Expiry / (24 * time.Hour))
	_, err = h.move(ctx, store.Change{
		Task: t.ID, Generation: t.Generation, Trigger: task.Lapsed, Reason: task.ReasonPausedTooLong, Effects: h.options.Status.effects(n.Lapsed(in)),
		KeptUntil: h.options.Status.keptUntil(n.Kept),
	})
	return ignoreConflict(err)
}

// watchPauseFile pauses everything while the file is there. A file that cannot be
// looked at changes nothing.
func (h *Controller) watchPauseFile(ctx context.Context) {
	if h.options.PauseFile == "" {
		return
	}
	ticker := time.NewTicker(pauseFileEvery)
	defer ticker.Stop()
	known, was := false, false
	for {
		there, err := exists(h.options.PauseFile)
		if err == nil && (!known || there != was) {
			if err = h.followPauseFile(ctx, there); err == nil {
				known, was = true, there
			}
		}
		if err != nil && ctx.Err() == nil {
			h.options.Log.ErrorContext(ctx, "failed to apply the pause file; retrying", "file", h.options.PauseFile, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (h *Controller) followPauseFile(ctx context.Context, there bool) error {
	if there {
		return h.PauseAll(ctx, h.options.PauseSource, "")
	}
	_, err := h.ResumeAll(ctx, h.options.PauseSource)
	return err
}

func exists(file string) (bool, error) {
	_, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
