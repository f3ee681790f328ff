package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/broker/comments"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/notice"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// RunResult is what an agent says at the end of its run.
type RunResult struct {
	Outcome  task.Outcome
	Reason   task.Reason
	Comment  string        // what people are told; "" leaves it to the server
	Detail   string        // what went wrong, or what is asked: what the forge, a tool or the program said
	Hint     string        // what can be done about it
	Summary  string        // for a later run
	Progress string        // the progress comment as it is to stay; "" leaves it as it is
	Kept     string        // commit of the work in progress
	CutAfter time.Duration // from the signal's arrival at the agent to the end of the work
}

// Finish ends a run. What becomes of the task is decided while nobody else can
// change it: see docs/signals.md. A run that has ended this way already is told
// so again; otherwise it fails with LeaseLost when the run is over, and with
// Conflict when a pending stop does not allow the outcome.
func (r *Runs) Finish(ctx context.Context, held Lease, result RunResult) (task.Task, error) {
	pull, opened, err := r.awaitOpening(ctx, held)
	if err != nil {
		return task.Task{}, err
	}
	if r.options.Comments != nil && (result.Outcome == task.OutcomeDone || result.Outcome == task.OutcomeFailed) {
		r.options.Comments.LookOnce(ctx, held.Task)
	}
	late, err := comments.Late(ctx, r.options.Store, held.Task)
	if err != nil {
		return task.Task{}, err
	}
	rejected, err := r.rejected(ctx, held, result.Outcome)
	if err != nil {
		return task.Task{}, err
	}
	in := r.options.Status.LanguageOf(ctx, held.Task)
	attested, err := r.attested(ctx, held, in)
	if err != nil {
		return task.Task{}, err
	}
	before := 0
	if result.Outcome == task.OutcomeReturned {
		if before, err = inARow(ctx, r.options.Store, held.ID, result.Reason); err != nil {
			return task.Task{}, err
		}
	}
	ending := ending{Runs: r, held: held, result: result, pull: pull, opened: opened, late: late, attested: attested, rejected: rejected, in: in, before: before}
	after, err := r.options.Store.EndRun(ctx, store.RunEnd{
		Task: held.ID, Generation: held.Generation, TokenHash: held.TokenHash, Outcome: string(result.Outcome), Decide: ending.decide,
	})
	if task.CodeOf(err) == task.LeaseLost {
		return r.endedAlready(ctx, held, result.Outcome, err)
	}
	if err != nil {
		return task.Task{}, err
	}
	r.options.Sender.Wake()
	r.options.Log.InfoContext(ctx, "run ended", "task", held.ID, "generation", held.Generation,
		"outcome", result.Outcome, "state", after.State, "reason", after.Reason)
	return after, nil
}

// ending is the end of a run, and what is known about it.
type ending struct {
	*Runs

	held     Lease
	result   RunResult
	pull     string // address of the pull request
	opened   bool   // the pull request
	late     []notice.Late
	attested string     // what is said about the receipt
	rejected *rejection // what the forge did not accept, if that is why the run failed
	in       task.Language
	before   int // how many runs in a row before it were handed back for the same reason
}

// decide says what becomes of the task, what people are told, and with which entries the journal
// of the run ends.
func (e ending) decide(t task.Task, pending []store.Halt) (store.Change, []task.Event, error) {
	decided, err := decide(e.result, pending, e.opened)
	if err != nil {
		return store.Change{}, nil, err
	}
	decided = e.countAttempt(t, decided)
	rejected := e.rejected
	if decided.trigger != task.GaveUp {
		rejected = nil // it is not why the run ended: somebody has stopped it
	}
	result := e.result
	if rejected != nil {
		decided.reason = rejected.Reason
		result.Comment = rejected.message(e.options.Status.about(t, result.Kept), e.in)
		result.Detail, result.Hint = rejected.forgeSaid(), ""
	}
	result.Detail = textfmt.Clip(textfmt.Plain(textfmt.StripEscapes(result.Detail)), task.LongestDetail)
	events, err := e.events(rejected, detailNote(decided, result))
	if err != nil {
		return store.Change{}, nil, err
	}
	text := e.comment(t, result, decided, e.pull, e.in)
	if t := decided.trigger; t == task.Finished || t == task.GaveUp {
		text = joined(joined(text, e.attested), notice.Notice{Late: e.late}.TooLate(e.in))
	}
	change := store.Change{
		Trigger: decided.trigger, Reason: decided.reason, Effects: e.effects(e.held, text, result.Progress),
		KeptUntil: e.options.Status.keptUntil(result.Kept),
	}
	if decided.explained() {
		change.Detail, change.Hint = result.Detail, result.Hint
	}
	if decided.trigger == task.Lost {
		change.ReadyAt = e.options.Now().Add(pauseAfter(decided.reason, t.Attempts))
		change.Effects = sayWhyItWaits(change.Effects, e.in)
	}
	// What passes by itself may take its time: a provider that is down, a repository that cannot be
	// cloned. Without a pause the task would be handed out again and again, and its journal grow.
	if decided.trigger == task.Returned && decided.reason == task.ReasonRunFailed && e.before > 0 {
		change.ReadyAt = e.options.Now().Add(laterEachTime(e.before, longestForRight))
	}
	return change, events, nil
}

// explained reports whether what the run says is about the state that the task comes to, not
// about one that it would have come to.
func (d decision) explained() bool { return d.halt == nil && d.trigger != task.Finished }

// detailNote is what the journal has to say about why a run has failed; "" if nothing more is
// known than the reason.
func detailNote(decided decision, result RunResult) string {
	if decided.trigger != task.GaveUp && (decided.trigger != task.Returned || decided.reason != task.ReasonRunFailed) {
		return ""
	}
	return result.Detail
}

// events are the entries with which the journal of the run ends: why its work was not handed
// over, or what else went wrong, and what a later run is told.
func (e ending) events(rejected *rejection, failed string) ([]task.Event, error) {
	var events []task.Event
	if rejected != nil {
		failed = rejected.message(notice.Notice{}, e.in)
	}
	if failed != "" {
		why, err := e.noteOf(e.held, failed)
		if err != nil {
			return nil, err
		}
		events = append(events, why)
	}
	if e.result.Summary != "" {
		summary, err := e.noteOf(e.held, e.result.Summary)
		if err != nil {
			return nil, err
		}
		summary.Kind = task.Summed
		events = append(events, summary)
	}
	return events, nil
}

// joined puts two texts together, of which each may be empty.
func joined(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "\n\n" + second
}

// effects are the forge writes that go with the end of a run. The last text of the
// progress comment is one of them: what the run has put before is refused when the
// task is in its next generation. The run may not know how it ended, so the text gets the
// heading of the state.
func (r *Runs) effects(held Lease, comment, progress string) store.Effects {
	usual := r.options.Status.effects(comment)
	if progress == "" {
		return usual
	}
	return func(before, after task.Task) []store.Action {
		actions := slices.DeleteFunc(usual(before, after), func(action store.Action) bool { return action.Kind == outbox.ProgressState{}.Kind() })
		text := outbox.TaskAction(after, "progress/end", outbox.Progress{Name: outbox.ProgressName(held.Task), Text: notice.WithHeading(progress, after.State)})
		text.Lasting = after.State.Terminal()
		return append(actions, text)
	}
}

// MayFinish fails with Conflict if a pending stop keeps the run from ending well.
func (r *Runs) MayFinish(ctx context.Context, held Lease) error {
	_, opened, err := openedPull(ctx, r.options.Store, held.ID, held.Generation)
	if err != nil {
		return err
	}
	pending, err := r.options.Store.HaltsOf(ctx, held.ID)
	if err != nil {
		return err
	}
	_, err = decide(RunResult{Outcome: task.OutcomeDone}, pending, opened)
	return err
}

// endedAlready answers an agent whose run is over: well if it ended it that way
// itself.
func (r *Runs) endedAlready(ctx context.Context, held Lease, outcome task.Outcome, lost error) (task.Task, error) {
	ended, err := r.options.Store.EndedRun(ctx, held.ID, held.Generation, held.TokenHash)
	if task.CodeOf(err) == task.NotFound {
		return task.Task{}, lost
	}
	if err != nil {
		return task.Task{}, err
	}
	if ended.Outcome != string(outcome) {
		return task.Task{}, task.Errorf(task.Conflict, "the run has ended as %s, not as %s", ended.Outcome, outcome)
	}
	return r.options.Store.Task(ctx, held.ID)
}

// openingWait is how long the end of a run waits for a pull request that a sender
// is opening at that moment.
const openingWait = 10 * time.Second

// awaitOpening is openedPull when nobody is opening the pull request any more.
func (r *Runs) awaitOpening(ctx context.Context, held Lease) (address string, opened bool, err error) {
	rung, stop := r.options.Notifier.Listen(held.ID)
	defer stop()
	patience := time.NewTimer(openingWait)
	defer patience.Stop()
	for {
		address, opened, err = openedPull(ctx, r.options.Store, held.ID, held.Generation)
		if err != nil || !opened || address != "" {
			return address, opened, err
		}
		select {
		case <-rung:
		case <-patience.C:
			return address, opened, nil
		case <-ctx.Done():
			return "", false, ctx.Err()
		}
	}
}

// openedPull reports whether a run has opened its pull request, or is about to
// without anyone being able to prevent it, and its address as soon as there is
// one.
func openedPull(ctx context.Context, from store.Runs, id task.ID, generation int64) (address string, opened bool, err error) {
	actions, err := from.RunActions(ctx, id, generation, generation, outbox.OpenPull{}.Kind())
	if err != nil {
		return "", false, err
	}
	for _, action := range actions {
		if action.Status == store.Pending && action.Attempts > 0 {
			opened = true
		}
		if action.Status == store.Delivered {
			var pulled outbox.Pulled
			if err := json.Unmarshal(action.Result, &pulled); err != nil {
				return "", false, task.Wrap(task.Internal, err, "what the forge said of the pull request cannot be read")
			}
			address, opened = pulled.URL, true
		}
	}
	return address, opened, nil
}

// decision is what becomes of a run.
type decision struct {
	trigger task.Trigger
	reason  task.Reason
	halt    *store.Halt // that it answers
}

// decide says what becomes of a run: the one place where finish, stop and pause
// meet.
func decide(result RunResult, pending []store.Halt, opened bool) (decision, error) {
	stop, pause := haltsIn(pending)
	if stop != nil {
		if result.Outcome == task.OutcomeDone && opened {
			return decision{task.Finished, task.ReasonCompleted, nil}, nil
		}
		if result.Outcome == task.OutcomeDone {
			return decision{}, errStopPending()
		}
		return decision{task.Withdrawn, stop.Reason, stop}, nil
	}
	switch result.Outcome {
	case task.OutcomeDone:
		return decision{task.Finished, task.ReasonCompleted, nil}, nil
	case task.OutcomeFailed:
		return decision{task.GaveUp, knownReason(result.Reason, task.ReasonRunFailed), nil}, nil
	case task.OutcomePaused, task.OutcomeReturned:
		return decideRest(result, pause), nil
	case task.OutcomeStopped:
		return decision{}, task.Errorf(task.Conflict, "nobody has asked for the task to be stopped")
	default:
		return decision{}, task.Errorf(task.Invalid, "a run cannot end as %q", string(result.Outcome))
	}
}

// countAttempt has a task that was handed back use up an attempt, if its reason says so, and fail
// with the last.
func (r *Runs) countAttempt(t task.Task, decided decision) decision {
	if decided.trigger != task.Returned || !decided.reason.UsesAttempt() {
		return decided
	}
	decided.trigger = task.Lost
	if t.Attempts >= r.options.MaxAttempts {
		decided.trigger = task.GaveUp
	}
	return decided
}

// pauseAfter is how long a task waits that was handed back after so many attempts: what
// registries and providers refuse, they often refuse for an hour. A disk on which there was
// too little room may have more soon, and another agent may have more now.
func pauseAfter(reason task.Reason, attempts int) time.Duration {
	if reason == task.ReasonTooLittleSpace {
		return laterEachTime(max(attempts, 1), laterAgain)
	}
	return min(time.Hour, laterAgain<<(2*min(max(attempts-1, 0), 4)))
}

// sayWhyItWaits adds a comment for people, once for each assignment.
func sayWhyItWaits(effects store.Effects, in task.Language) store.Effects {
	return func(before, after task.Task) []store.Action {
		text := notice.Notice{Reason: after.Reason, Detail: messages.Fix(in, after.Reason)}.TriedLater(in)
		what := fmt.Sprintf("later/%s/%s/%d", after.ID, after.Reason, after.FirstGeneration)
		action, err := outbox.NewAction(outbox.Write{Item: after.Key, What: what}, outbox.Comment{Text: text, About: after.ID})
		if err != nil { // a text can always be written
			return effects(before, after)
		}
		return append(effects(before, after), action)
	}
}

// decideRest decides between a pause and the queue.
func decideRest(result RunResult, pause *store.Halt) decision {
	switch {
	case result.Outcome == task.OutcomePaused && ownPause[result.Reason]:
		return decision{task.PauseSet, result.Reason, nil}
	case pause != nil:
		return decision{task.PauseSet, pause.Reason, pause}
	case result.Outcome == task.OutcomePaused && result.Reason == task.ReasonAgentPaused: // by a file on its machine
		return decision{task.PauseSet, result.Reason, nil}
	case result.Outcome == task.OutcomePaused: // the pause was lifted while the agent was at it
		return decision{task.Returned, task.ReasonResumed, nil}
	default:
		return decision{task.Returned, knownReason(result.Reason, task.ReasonAgentStopping), nil}
	}
}

// haltsIn finds the stop and the pause among what is pending.
func haltsIn(pending []store.Halt) (stop, pause *store.Halt) {
	for _, halt := range pending {
		if halt.Signal == task.SignalStop {
			stop = &halt
		} else {
			pause = &halt
		}
	}
	return stop, pause
}

// ownPause are the reasons for which a run pauses without being asked to.
var ownPause = map[task.Reason]bool{task.ReasonBudgetExhausted: true, task.ReasonAwaitingAnswer: true, task.ReasonAwaitingApproval: true}

// knownReason is the reason that an agent gives, if there is such a reason.
func knownReason(given, otherwise task.Reason) task.Reason {
	if messages.Reason(task.English, given) == "" {
		return otherwise
	}
	return given
}

// comment is what people are told about the end of a run.
func (r *Runs) comment(t task.Task, result RunResult, decided decision, pull string, in task.Language) string {
	n := r.options.Status.about(t, result.Kept)
	n.Reason = decided.reason
	switch decided.trigger {
	case task.Finished:
		return result.Comment
	case task.GaveUp:
		return cmp.Or(result.Comment, joined(n.Failed(in), n.Next(in)))
	case task.PauseSet:
		if decided.reason == task.ReasonAwaitingApproval {
			return "" // the run has said it, with the plan
		}
		return n.PausedNow(in)
	case task.Withdrawn:
		n.Took, n.Pull = r.options.Now().Sub(decided.halt.At), pull
		return n.Stopped(in)
	default:
		return ""
	}
}
