package agent

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

const (
	// checkFirst is how soon an agent that is out is checked again, and checkLongest the
	// longest pause between two checks. In between, each is twice the one before.
	checkFirst   = 5 * time.Second
	checkLongest = 10 * time.Minute
	// checkWithin bounds one check. A first image of a large environment is pulled in that.
	checkWithin = 10 * time.Minute
)

// examineWithin bounds the check at the start, which the first task waits for.
const examineWithin = 30 * time.Second

// errNoRoom says that a program has failed while the disk was full.
var errNoRoom = task.Errorf(task.DataDir, "the disk of the agent was full while the program ran")

// UnableError says why this agent can do no task, whatever the task is: its model, its
// sandbox or its disk does not work.
type UnableError struct {
	Reason task.Reason
	// Provider and Model name the model that does not work; empty if it is about the machine.
	Provider, Model string
	// Partial says that others than this task can be done: only its image or the model of its
	// role does not work, or only it needs more room. Then the agent is not out.
	Partial bool
	Err     error
}

// Error implements error.
func (e *UnableError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *UnableError) Unwrap() error { return e.Err }

// Detail says what is missing, without what to do about it.
func (e *UnableError) Detail() string {
	if coded, found := task.AsError(e.Err); found {
		return coded.Message
	}
	return e.Err.Error()
}

// modelReasons are the errors of a model that the next call would meet too.
var modelReasons = map[llm.Kind]task.Reason{
	llm.Unauthorized: task.ReasonKeyRejected, llm.UnknownModel: task.ReasonModelUnknown, llm.QuotaUsedUp: task.ReasonCreditUsedUp,
}

// UnableOf finds in an error why the agent can do no task, or returns nil if it says no such
// thing.
func UnableOf(err error) *UnableError {
	if unable, is := errors.AsType[*UnableError](err); is {
		return unable
	}
	if failed, is := errors.AsType[*llm.Error](err); is && modelReasons[failed.Kind] != "" {
		return &UnableError{Reason: modelReasons[failed.Kind], Provider: failed.Provider, Model: failed.Model, Err: failed}
	}
	unusable, noSandbox := errors.AsType[*sandbox.UnusableError](err)
	// A sandbox that cannot be recorded on a full disk can be had when there is room again, which is
	// looked for sooner than another sandbox.
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	if task.CodeOf(err) == task.DataDir && (full || !noSandbox) {
		return &UnableError{Reason: task.ReasonDiskNotWritable, Err: err}
	}
	if noSandbox {
		return &UnableError{Reason: task.ReasonNoSandbox, Err: unusable.Err}
	}
	return nil
}

// health is whether the model, the sandbox and the disk of an agent work. While they do not, the agent
// is out: it asks for no task, and is checked again and again.
type health struct {
	out toggle

	mutex  sync.Mutex
	unable *UnableError // nil while the agent is not out
	told   bool         // that the server knows how it is
	checks int          // since a run showed that all works
}

// current is why the agent is out, or nil.
func (h *health) current() *UnableError {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.unable
}

// set says why the agent is out; nil means that it is not.
func (h *health) set(unable *UnableError) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.unable, h.told = unable, false
	h.out.set(unable != nil) // under the mutex, so that both always say the same
}

// proved notes that a run has ended for which model and sandbox worked.
func (h *health) proved() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.checks = 0
}

// pause is how long the next check has to wait.
func (h *health) pause(first time.Duration) time.Duration {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	pause := first
	for range h.checks {
		if pause *= 2; pause >= checkLongest {
			return checkLongest
		}
	}
	h.checks++
	return pause
}

func (h *health) isTold() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.told
}

// Examine checks the model, the sandbox and the disk, and tells the server. It is called before the
// agent works, so that no task finds out what does not work.
func (a *Agent) Examine(ctx context.Context) {
	if unable := UnableOf(a.checkOnce(ctx, examineWithin, nil)); unable != nil && !unable.Partial {
		a.takeOut(ctx, unable)
		return
	}
	a.tell(ctx)
}

// checkOnce checks what is in doubt; see [Agent].
func (a *Agent) checkOnce(ctx context.Context, within time.Duration, doubt *UnableError) error {
	if a.Check == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	a.countChecks(1)
	defer a.countChecks(-1)
	return a.Check(ctx, doubt)
}

// lacksRoom reports whether the disk cannot be written.
func (a *Agent) lacksRoom(ctx context.Context) bool {
	unable := UnableOf(a.checkOnce(ctx, examineWithin, &UnableError{Reason: task.ReasonDiskNotWritable, Err: errNoRoom}))
	return unable != nil && unable.Reason == task.ReasonDiskNotWritable
}

// judge says whether a run has ended because of the model, the sandbox or the disk of this agent;
// nil means that it has not. An error of the model can be about this task alone, such as a gateway
// that does not let its text through: it counts if a check, which has nothing of the task in it,
// does not pass either. A sandbox that does not start, or a disk that was too small, although the
// check passes is not the work of the task: another attempt, or another agent, may have one.
func (a *Agent) judge(ctx context.Context, err error) *UnableError {
	unable := UnableOf(err)
	if unable == nil {
		return nil
	}
	// A full disk is looked at again: it may be the workspace of this run that had filled it.
	if already := a.health.current(); already != nil && unable.Reason != task.ReasonDiskNotWritable {
		return already
	}
	checked := a.checkOnce(ctx, checkWithin, unable)
	switch found := UnableOf(checked); {
	case found != nil:
		return found
	case checked != nil:
		return unable // the check could not say otherwise
	}
	a.Log.WarnContext(ctx, "a run met a model, sandbox or disk that does not work, but a check has passed", "reason", unable.Reason, "error", unable)
	if partialReasons[unable.Reason] == "" {
		return nil
	}
	return &UnableError{Reason: unable.Reason, Partial: true, Err: unable.Err}
}

// takeOut has the agent ask for no more tasks until it passes a check.
func (a *Agent) takeOut(ctx context.Context, unable *UnableError) {
	if a.health.current() != nil {
		return
	}
	a.Log.WarnContext(ctx, "this agent takes no tasks until it passes a check", "reason", unable.Reason, "error", unable)
	a.health.set(unable)
	a.tell(ctx)
}

// stayHealthy checks the agent again while it is out, until the context ends.
func (a *Agent) stayHealthy(ctx context.Context) error {
	first := a.CheckAgain
	if first <= 0 {
		first = checkFirst
	}
	for a.health.out.wait(ctx, true) {
		if lifecycle.Sleep(ctx, a.health.pause(first)) != nil {
			return nil //nolint:nilerr // the context ended, which is how the agent is stopped
		}
		a.checkAgain(ctx)
	}
	return nil
}

// checkAgain checks an agent that is out. A check that cannot say how it is, for example
// because the network is down, changes nothing.
func (a *Agent) checkAgain(ctx context.Context) {
	was := a.health.current()
	err := a.checkOnce(ctx, checkWithin, was)
	unable := UnableOf(err)
	switch {
	case ctx.Err() != nil:
		return
	case err == nil, unable != nil && unable.Partial:
		a.Log.InfoContext(ctx, "the agent has passed a check and takes tasks again")
		a.health.set(nil)
	case unable != nil && (unable.Reason != was.Reason || unable.Detail() != was.Detail()):
		a.Log.WarnContext(ctx, "this agent still takes no tasks", "reason", unable.Reason, "error", unable)
		a.health.set(unable)
	}
	if !a.health.isTold() {
		a.tell(ctx)
	}
}

// tell reports the condition of the agent to the server. If that fails, the next check does it,
// or the next time that the agent checks in.
func (a *Agent) tell(ctx context.Context) {
	if err := a.reportCondition(ctx); err != nil && ctx.Err() == nil {
		a.Log.WarnContext(ctx, "failed to report to the server whether this agent can take tasks; retrying", "error", err)
	}
}

// reportCondition reports to the server why this agent takes no tasks, or that it does.
func (a *Agent) reportCondition(ctx context.Context) error {
	a.reporting.Lock() // so that what is reported last is how it is
	defer a.reporting.Unlock()
	unable := a.health.current()
	var err error
	switch {
	case a.pause.isOn():
		err = a.Report(ctx, task.ReasonAgentPaused, a.pausedBy())
	case unable != nil:
		err = a.Report(ctx, unable.Reason, a.clean(unable.Detail()))
	default:
		err = a.Report(ctx, "", "")
	}
	a.health.mutex.Lock()
	defer a.health.mutex.Unlock()
	a.health.told = err == nil && a.health.unable == unable
	return err
}

// clean takes secrets out of what people are told.
func (a *Agent) clean(text string) string {
	if a.Redactor == nil {
		return text
	}
	return a.Redactor.String(text)
}

// partialReasons are what is said of the machine if it is so for one task only.
var partialReasons = map[task.Reason]task.Reason{
	task.ReasonNoSandbox: task.ReasonSandboxNotStarted, task.ReasonDiskNotWritable: task.ReasonTooLittleSpace,
}

// handedBack is the result of a run that ended because the agent can do no task, or not this
// one. Of the latter the server counts the attempts, and needs to know what to say at the last.
func (h *hold) handedBack(result wire.Result, unable *UnableError) wire.Result {
	reason := unable.Reason
	result.Comment = ""
	result = explained(result, unable.Err)
	if unable.Partial {
		reason = cmp.Or(partialReasons[unable.Reason], task.ReasonRoleModel)
		result.Comment = h.clean(failureText(task.Type(h.assignment.TaskType), h.language, unable))
	}
	result.Outcome, result.Reason = task.OutcomeReturned, string(reason)
	return result
}
