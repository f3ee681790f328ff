package broker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// ControllerOptions is what Controller needs. Store, Sender and Status have to be set.
type ControllerOptions struct {
	Store  RunStore
	Sender *outbox.Sender
	Status *StatusText

	// Grace is how long an agent has to answer a stop; 0 means ten seconds.
	Grace    time.Duration
	Disabled bool // tasks cannot be paused
	// Expiry is how long a task may be paused; 0 means for ever.
	Expiry time.Duration
	// LookFirst looks at the item of a task that waits for people before it is stopped because
	// of Expiry, and lets it go on if they have said something; see [Watcher.LookNow]. Nil means
	// that nobody looks.
	LookFirst func(ctx context.Context, t task.Task) error
	// LookEvery is how often we look for what another server has left; 0 means
	// every fifteen seconds.
	LookEvery time.Duration
	// PauseFile asks for a pause of everything while it exists; "" means none.
	PauseFile string
	// PauseSource is what we call the file among those who want a pause.
	PauseSource string

	Now func() time.Time // nil means the real time
	Log *slog.Logger
}

// Controller stops, pauses and resumes tasks. A halt is noted in the database first
// and then comes about: at once for a task that nobody holds, and for one that an
// agent holds when the agent has saved its work and says so, or when its time is
// over. See docs/signals.md for who wins when several things happen at once.
//
// Its methods may be called by any number of goroutines, on any number of
// servers.
type Controller struct {
	options    ControllerOptions
	background lifecycle.Group
	wake       chan struct{} // has room for one: something was noted
}

// NewController makes Controller. What needs time comes about after Start only.
func NewController(options ControllerOptions) *Controller {
	if options.Grace == 0 {
		options.Grace = 10 * time.Second
	}
	if options.LookEvery == 0 {
		options.LookEvery = 15 * time.Second
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Controller{options: options, wake: make(chan struct{}, 1)}
}

// StopTask stops a task for good and returns it as it is then: stopped, or still
// running if an agent has to end its run first. Asking again is safe. It fails
// with an *task.IllegalMoveError if the task has ended.
func (h *Controller) StopTask(ctx context.Context, id task.ID, reason task.Reason) (task.Task, error) {
	return h.request(ctx, store.Halt{Task: id, Signal: task.SignalStop, Reason: reason, At: h.options.Now()})
}

// Pause pauses a task and returns it as it is then: paused, or still running if
// an agent has to end its run first. It fails with an *task.IllegalMoveError if
// the task has ended.
func (h *Controller) Pause(ctx context.Context, id task.ID, reason task.Reason) (task.Task, error) {
	if h.options.Disabled {
		return task.Task{}, errNoPauses()
	}
	return h.request(ctx, store.Halt{Task: id, Signal: task.SignalPause, Reason: reason, At: h.options.Now()})
}

func (h *Controller) request(ctx context.Context, halt store.Halt) (task.Task, error) {
	t, noted, err := h.options.Store.RequestHalt(ctx, halt)
	if err != nil {
		return task.Task{}, err
	}
	if noted {
		h.options.Log.InfoContext(ctx, "stop or pause requested", "task", halt.Task, "signal", halt.Signal, "reason", halt.Reason, "state", t.State)
	}
	if t.State != task.Running && (noted || t.State == task.Queued) {
		if err := h.settle(ctx, halt, t); err != nil {
			return task.Task{}, err
		}
	}
	if noted {
		lifecycle.Signal(h.wake)
	}
	return h.options.Store.Task(ctx, halt.Task)
}

func errNoPauses() error {
	return task.Errorf(task.Conflict, "tasks cannot be paused here").WithHint("set pause_resume.enabled: true")
}

// Resume lets a paused task go on and returns it as it is then. A pause that is
// pending is taken back, and nothing else: a task that waits for people waits on. It
// fails with an *task.IllegalMoveError if the task is not paused, and with Conflict if it waits
// for the approval of its plan: who approves one has to say which; see [Controller.Approve].
func (h *Controller) Resume(ctx context.Context, id task.ID) (task.Task, error) {
	cancelled, err := h.options.Store.CancelHalt(ctx, id, task.SignalPause, "")
	if err != nil {
		return task.Task{}, err
	}
	t, err := h.options.Store.Task(ctx, id)
	if err != nil || cancelled && (t.State != task.Paused || t.AwaitsPeople()) {
		return t, err
	}
	if t.AwaitsApproval() {
		return task.Task{}, task.Errorf(task.Conflict, "task %s waits for the approval of its plan", id).
			WithHint("read the plan, and approve it on the item, on the page of the task, or with toryo tasks approve %s PLAN, where PLAN is its number", id)
	}
	return h.goOn(ctx, t, "")
}

// goOn queues a paused task again, if it is still paused for the reason, unless that is empty.
func (h *Controller) goOn(ctx context.Context, t task.Task, was task.Reason) (task.Task, error) {
	text := notice.Notice{Paused: h.options.Now().Sub(t.UpdatedAt)}.Resumed(h.options.Status.LanguageOf(ctx, t))
	return h.resume(ctx, t, was, task.ReasonResumed, text)
}

// resume queues a paused task again for a reason, and says so. What it waited for before it was
// paused may be long over, so it is ready now.
func (h *Controller) resume(ctx context.Context, t task.Task, was, reason task.Reason, text string) (task.Task, error) {
	return h.move(ctx, store.Change{
		Task: t.ID, Generation: t.Generation, Trigger: task.Resumed, Reason: reason, Was: was, ReadyAt: h.options.Now(),
		Effects: h.options.Status.effects(text),
	})
}

// Answered lets a task go on whose run has waited for an answer. One that a person has
// paused meanwhile stays paused; see [store.Halts].
func (h *Controller) Answered(ctx context.Context, t task.Task) error {
	_, err := h.goOn(ctx, t, task.ReasonAwaitingAnswer)
	return ignoreConflict(err)
}

// Retry queues a task again that has ended. It is ready now, whatever it waited for when it ended.
func (h *Controller) Retry(ctx context.Context, id task.ID) (task.Task, error) {
	return h.move(ctx, store.Change{
		Task: id, Trigger: task.Assigned, Reason: task.ReasonRetried, ReadyAt: h.options.Now(), Effects: h.options.Status.effects(""),
	})
}

// move moves a task and tells whoever waits.
func (h *Controller) move(ctx context.Context, change store.Change) (task.Task, error) {
	after, err := h.options.Store.Move(ctx, change)
	if err != nil {
		return task.Task{}, err
	}
	h.options.Sender.Wake()
	h.options.Log.InfoContext(ctx, "task state changed", "task", after.ID, "state", after.State, "generation", after.Generation, "reason", after.Reason)
	return after, nil
}

// settle makes a halt come about if its time has come.
func (h *Controller) settle(ctx context.Context, halt store.Halt, t task.Task) error {
	stop := halt.Signal == task.SignalStop
	if stop && !h.mayStop(halt, t) || !stop && !h.mayPause(t) {
		return nil
	}
	pull, opening, err := openedPull(ctx, h.options.Store, t.ID, t.Generation)
	if err != nil {
		return err
	}
	if opening && pull == "" && h.options.Now().Before(halt.At.Add(longestOpening)) {
		return nil // it will be there in a moment, and the comment is to say so
	}
	n, in, err := h.notice(ctx, t)
	if err != nil {
		return err
	}
	n.Reason, n.Unanswered, n.Pull, n.Took = halt.Reason, t.State == task.Running, pull, h.options.Now().Sub(halt.At)
	change := store.Change{Task: t.ID, Generation: t.Generation, Trigger: task.PauseSet, Reason: halt.Reason, Halt: halt.Signal}
	text := n.PausedNow(in)
	if stop {
		change.Trigger, text = task.Withdrawn, n.Stopped(in)
		if unnoticed(t, halt.Reason) {
			text = ""
		}
	}
	if t.State == task.Running && (!stop || !h.overdue(halt)) {
		change.LeaseOver = h.options.Now() // unless it is renewed at the last moment
	}
	change.Effects, change.KeptUntil = h.options.Status.effects(text), h.options.Status.keptUntil(n.Kept)
	_, err = h.move(ctx, change)
	return ignoreConflict(err)
}

// unnoticed reports whether nobody has to be told that a task was stopped: a review that had
// not begun and that the rules of its label withdraw, which may be due again in a moment, or a
// fix-up for checks that pass now, which is said with their commit.
func unnoticed(t task.Task, reason task.Reason) bool {
	if reason == task.ReasonChecksPassed {
		return true
	}
	asked := reason == task.ReasonUnassigned || reason == task.ReasonStopRequested
	return t.Type == task.Review && t.State == task.Queued && !asked
}

// longestOpening is how long a stop waits for a pull request that a sender is
// opening at that moment.
const longestOpening = time.Minute

// Unwanted withdraws a task that its item no longer wants; see [Controller.StopTask].
func (h *Controller) Unwanted(ctx context.Context, t task.Task, reason task.Reason) error {
	_, err := h.StopTask(ctx, t.ID, reason)
	return ignoreConflict(err)
}

// Halted is asked about a task whose lease is over: what is pending for it then
// comes about in place of its loss. See [Expiry].
func (h *Controller) Halted(ctx context.Context, t task.Task) (bool, error) {
	pending, err := h.options.Store.HaltsOf(ctx, t.ID)
	if err != nil || len(pending) == 0 {
		return false, err
	}
	return true, h.settle(ctx, pending[0], t)
}

// mayStop reports whether a task can be stopped without its agent.
func (h *Controller) mayStop(halt store.Halt, t task.Task) bool {
	return t.State != task.Running || h.overdue(halt) || !t.Lease.Held(h.options.Now())
}

// overdue reports whether the agent has had its time to answer a stop.
func (h *Controller) overdue(halt store.Halt) bool {
	return !h.options.Now().Before(halt.At.Add(h.options.Grace))
}

// mayPause reports whether a task can be paused without its agent.
func (h *Controller) mayPause(t task.Task) bool {
	return t.State == task.Queued || t.State == task.Running && !t.Lease.Held(h.options.Now())
}

// ignoreConflict makes nothing of an error that says that someone else was quicker.
func ignoreConflict(err error) error {
	_, illegal := errors.AsType[*task.IllegalMoveError](err)
	switch code := task.CodeOf(err); {
	case illegal, code == task.StaleGeneration, code == task.Conflict, code == task.NotFound:
		return nil
	default:
		return err
	}
}

// notice says what was kept of a task.
func (h *Controller) notice(ctx context.Context, t task.Task) (notice.Notice, task.Language, error) {
	kept, err := lastSaved(ctx, h.options.Store, t)
	return h.options.Status.about(t, kept), h.options.Status.LanguageOf(ctx, t), err
}

// lastSaved is the commit of the work in progress that was saved last in the
// task's life, "" if none was.
func lastSaved(ctx context.Context, from store.Runs, t task.Task) (string, error) {
	saved, err := from.LastEvent(ctx, t.ID, task.Saved)
	if task.CodeOf(err) == task.NotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if saved.Generation < t.FirstGeneration {
		return "", nil
	}
	var entry struct {
		Commit string `json:"commit"`
	}
	if err := json.Unmarshal(saved.Data, &entry); err != nil {
		return "", nil //nolint:nilerr // the agent wrote it; then nothing is known
	}
	return entry.Commit, nil
}
