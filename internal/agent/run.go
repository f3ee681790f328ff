package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// journalPage is how many entries of an earlier run are asked for at once.
const journalPage = 500

// flushWithin is how long the end of a run waits for its journal to be taken.
const flushWithin = time.Minute

// errNotPrepared marks a failure that is this machine's or the server's and not
// the task's: the task goes back for someone else to try.
var errNotPrepared = errors.New("the run could not be prepared")

// perform carries out one task from hand-out to result. It reports whether the
// agent is fit to ask for the next.
func (a *Agent) perform(ctx context.Context, assignment wire.Assignment) (fit bool) {
	log := a.Log.With("task", assignment.TaskID, "generation", assignment.Generation)
	// The agent has no role of its own: it is what the task asks for.
	log.InfoContext(ctx, "task accepted", "role", assignment.RequiredRole, "type", assignment.TaskType,
		"item", fmt.Sprintf("%s:%s#%d", assignment.Forge, assignment.Repository, assignment.Number))
	h, run, whole := take(ctx, a.Client, assignment, log)
	defer h.release()
	h.start(func() { h.haltWhenPaused(whole, &a.pause) })
	h.language, h.redactor = a.Language.OfItem(assignment.Title, assignment.Body), a.Redactor
	a.addRun(assignment)
	defer a.removeRun(assignment)

	result, err := a.execute(run, h)
	unable := a.concern(run, h, err)
	fit = run.Err() != nil || !errors.Is(err, errNotPrepared)
	if errors.Is(context.Cause(whole), ErrLeaseLost) || lost(err) {
		log.WarnContext(ctx, "lease lost; the run was discarded", "error", err)
		h.closeFiles(whole, wire.Result{})
		return true
	}
	result = h.conclude(run, result, err, unable)
	cleaned, unclean := h.cleanResult(result)
	if unclean != nil { // nothing is said rather than too much
		cleaned = wire.Result{Outcome: task.OutcomeFailed, Reason: string(task.ReasonRunFailed)}
		err = errors.Join(err, unclean)
	}
	result = cleaned
	log.InfoContext(ctx, "run ended", "outcome", result.Outcome, "reason", result.Reason, "error", err)
	h.closeFiles(whole, h.deliver(whole, result))
	return fit
}

// concern says whether a run has ended because this agent can do no task, which takes the agent
// out, or not this one; nil means that it has not. A run that is to end anyway says nothing.
func (a *Agent) concern(run context.Context, h *hold, err error) *UnableError {
	if run.Err() != nil || lost(err) {
		return nil //nolint:nilerr // the run was cut, which says nothing about the agent
	}
	unable := a.judge(run, err)
	switch {
	case unable != nil && !unable.Partial && run.Err() == nil:
		a.takeOut(run, unable)
	case err == nil:
		a.health.proved()
	}
	if unable != nil {
		h.log.WarnContext(run, "the task goes back to the queue", "reason", unable.Reason)
	}
	return unable
}

// closeFiles puts the context files of the run where they belong after it. Of a
// run that did not end here they stay, for whoever goes on.
func (h *hold) closeFiles(ctx context.Context, result wire.Result) {
	if h.files == nil {
		return
	}
	var err error
	reason := task.Reason(result.Reason)
	switch result.Outcome {
	case task.OutcomeDone:
		err = h.files.End(task.Done, reason)
	case task.OutcomeFailed:
		err = h.files.End(task.Failed, reason)
	case task.OutcomeStopped:
		err = h.files.End(task.Stopped, reason)
	case task.OutcomePaused:
		err = h.files.Pause(reason)
	default:
		err = h.files.Leave()
	}
	if err != nil {
		h.log.ErrorContext(ctx, "failed to move some context files of the run; retrying", "error", err)
	}
}

// execute prepares everything and lets the executor work. What panics is the
// failure of this run alone.
func (a *Agent) execute(ctx context.Context, h *hold) (result wire.Result, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			h.log.ErrorContext(ctx, "panic in a run", "panic", fault, "stack", string(debug.Stack()))
			err = task.Errorf(task.Internal, "panic in a run")
		}
	}()
	if unable := a.health.current(); unable != nil { // it came when the agent had stopped asking
		return wire.Result{}, unable
	}
	executor, found := a.Executors[task.Type(h.assignment.TaskType)]
	if !found {
		return wire.Result{}, errors.Join(errNotPrepared, task.Errorf(task.Unsupported, "there is no executor for tasks of the type %q", h.assignment.TaskType))
	}
	past, err := h.past(ctx)
	if err != nil {
		return wire.Result{}, errors.Join(errNotPrepared, err)
	}
	work := workOf(h.assignment, past)
	journal, err := a.journal(ctx, h, &work)
	if err != nil {
		return wire.Result{}, errors.Join(errNotPrepared, err)
	}
	repository, tidy, err := steadily(a.Prepare, h.log)(ctx, withSaved(h.assignment, work.Past))
	if err != nil {
		err = errors.Join(errNotPrepared, err)
		h.reportCloneFailure(ctx, err)
		return wire.Result{}, err
	}
	defer func() {
		if failed := tidy(); failed != nil {
			h.log.WarnContext(ctx, "failed to remove the workspace", "error", failed)
		}
	}()
	return executor.Execute(ctx, Run{
		Assignment: h.assignment, Work: work, Repository: repository, Forge: runForge{h}, Journal: journal,
		Spending: spending{h.held}, Log: h.log,
		lackedRoom: func(ctx context.Context) bool { return h.files != nil && h.files.LackedRoom() || a.lacksRoom(ctx) },
	})
}

// reportCloneFailure comments that the project could not be cloned, as set-up does when
// it fails. A run that is to end anyway says nothing, nor does an agent without room.
func (h *hold) reportCloneFailure(ctx context.Context, err error) {
	if ctx.Err() != nil || lost(err) || UnableOf(err) != nil {
		return
	}
	comment := environment.CloneComment(h.language, failureDetail(err))
	if err := (runForge{h}).AddComment(ctx, "clone-failed", comment); err != nil {
		h.log.WarnContext(ctx, "failed to post the comment about the failed clone", "error", err)
	}
}

// journal opens the journal of a run: files on this machine, from which the server
// is told. A run that goes on has its past from both.
func (a *Agent) journal(ctx context.Context, h *hold, work *phase.Work) (phase.Journal, error) {
	if a.Contexts == nil {
		return h.reporter, nil
	}
	var resumes int64
	if h.assignment.Resume != nil {
		resumes = h.assignment.Resume.Generation
	}
	files, err := a.Contexts.Begin(ctx, *work, resumes, h.reporter)
	if err != nil {
		return nil, err
	}
	h.files, work.Past = files, files.Past()
	return files, nil
}

// withSaved is the assignment with the work in progress that the run's past names. The server may
// not have got the entry of the first save before the agent ended, and names no work then.
func withSaved(assignment wire.Assignment, past []task.Event) wire.Assignment {
	if resume := assignment.Resume; resume != nil && resume.WIPRef == "" && phase.HasSaved(past) {
		with := *resume
		with.WIPRef = task.WIPRef
		assignment.Resume = &with
	}
	return assignment
}

// past asks for the journal of the run that goes on.
func (h *hold) past(ctx context.Context) ([]task.Event, error) {
	if h.assignment.Resume == nil {
		return nil, nil
	}
	var past []task.Event
	for position := int64(0); ; {
		page, err := persist(ctx, callTimeout, func(ctx context.Context) (wire.Events, error) {
			return h.held.Journal(ctx, position, journalPage)
		})
		if err != nil {
			return nil, fmt.Errorf("ask for the journal of the earlier run: %w", err)
		}
		for _, event := range page.Events {
			past = append(past, task.Event{
				Task: task.ID(h.assignment.TaskID), Generation: event.Generation, Source: task.EventSource(event.Source), Position: event.Position,
				Kind: task.EventKind(event.Kind), At: event.At, Data: event.Data,
			})
			position = event.Position
		}
		if len(page.Events) == 0 { // a page may be short because its entries are large
			return past, nil
		}
	}
}

// conclude makes the result of a run from what the executor returned and why it
// was cut, if it was.
func (h *hold) conclude(run context.Context, result wire.Result, err error, unable *UnableError) wire.Result {
	if err == nil {
		return result
	}
	cause := context.Cause(run)
	halt := h.inbox.strongest()
	switch {
	case halt != nil && cause != nil:
		result = h.halted(result, halt)
	case errors.Is(cause, ErrStopping):
		result.Outcome, result.Reason = task.OutcomeReturned, string(task.ReasonAgentStopping)
	case unable != nil:
		result = h.handedBack(result, unable)
	case UnableOf(err) == nil && (errors.Is(err, errNotPrepared) || outside(err)):
		result.Outcome, result.Reason = task.OutcomeReturned, string(task.ReasonRunFailed)
		result = explained(result, err)
	case task.CodeOf(err) == task.OverBudget:
		result.Outcome, result.Reason = task.OutcomePaused, string(task.ReasonBudgetExhausted)
	default:
		if result.Outcome == "" {
			result.Outcome, result.Reason = task.OutcomeFailed, string(task.ReasonRunFailed)
		}
		if result.Detail == "" {
			result = explained(result, err)
		}
		if result.Comment == "" {
			result.Comment = h.clean(failureText(task.Type(h.assignment.TaskType), h.language, err))
		}
	}
	return result
}

// halted makes the result of a run that a signal has cut.
func (h *hold) halted(result wire.Result, halt *phase.Halt) wire.Result {
	if halt.Reason == task.ReasonAgentPaused && h.files == nil {
		// Nothing here would let it go on when the pause file is gone.
		result.Outcome, result.Reason = task.OutcomeReturned, string(halt.Reason)
		return result
	}
	result.Outcome, result.Reason = outcomeOf(halt), string(halt.Reason)
	if result.CutAfter == 0 {
		result.CutAfter = max(time.Since(halt.Since).Milliseconds(), 1)
	}
	return result
}

// fails reports whether an error means that the task has failed; see conclude. Of one that may
// be the agent's it is not known yet.
func fails(ctx context.Context, err error) bool {
	return ctx.Err() == nil && UnableOf(err) == nil && !outside(err) && task.CodeOf(err) != task.OverBudget && !lost(err)
}

func outcomeOf(halt *phase.Halt) task.Outcome {
	if halt.Signal == task.SignalStop {
		return task.OutcomeStopped
	}
	return task.OutcomePaused
}

// deliver hands the result over, after the journal, and repeats that until the
// server has it or the lease is lost. It returns the result as the server has decided
// about it, or none if the server does not have it.
func (h *hold) deliver(ctx context.Context, result wire.Result) wire.Result {
	flushing, cancel := context.WithTimeout(ctx, flushWithin)
	if h.files != nil {
		h.files.Pass(flushing)
	}
	if err := h.reporter.flush(flushing); err != nil {
		h.log.WarnContext(ctx, "failed to send the end of the journal to the server", "error", err)
	}
	cancel()
	result.Progress = h.progress.last()
	for {
		ended, err := persist(ctx, callTimeout, func(ctx context.Context) (wire.Ended, error) {
			return h.held.End(ctx, result)
		})
		if task.CodeOf(err) == task.Conflict && (result.Outcome == task.OutcomeDone || result.Outcome == task.OutcomeFailed) && h.waitForSignal(ctx) {
			// The run had ended when it was asked to stop.
			halt := h.inbox.strongest()
			result.Outcome, result.Reason = outcomeOf(halt), string(halt.Reason)
			result.Progress = "" // it says how the run would have ended
			continue
		}
		if task.CodeOf(err) == task.Invalid && result.Detail+result.Hint != "" {
			result.Detail, result.Hint = "", "" // a server of an older version does not know them
			continue
		}
		if errors.Is(err, ErrLeaseLost) {
			ended, err = h.finishLate(ctx, result)
		}
		if err != nil {
			h.log.WarnContext(ctx, "the server rejected the result", "outcome", result.Outcome, "error", err)
			return wire.Result{}
		}
		return decided(result, ended)
	}
}

// decided is a result as the server has decided about it. When the task has gone on
// meanwhile, what the run said counts.
func decided(result wire.Result, ended wire.Ended) wire.Result {
	switch state := task.State(ended.State); {
	case state.Terminal(), state == task.Paused:
		result.Outcome, result.Reason = task.Outcome(ended.State), ended.Reason
	case state == task.Queued: // here or elsewhere
		result.Outcome, result.Reason = task.OutcomeReturned, ended.Reason
	}
	return result
}

// finishLate asks once more: the lease also ends because the result was taken,
// and whoever hears that first must not take it for a loss.
func (h *hold) finishLate(ctx context.Context, result wire.Result) (wire.Ended, error) {
	once, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	return h.held.End(once, result)
}

// waitForSignal waits for the signal because of which the server refuses the result, and
// reports whether it came.
func (h *hold) waitForSignal(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, haltWithin)
	defer cancel()
	select {
	case <-h.inbox.signalled:
		return true
	case <-ctx.Done():
		return false
	}
}
