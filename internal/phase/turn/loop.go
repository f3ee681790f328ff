package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/task"
)

// Point is a moment at which signals are looked at.
type Point string

// The points.
const (
	BeforeTurn   Point = "before_turn"
	AfterAnswer  Point = "after_answer"
	AfterResults Point = "after_results"
)

// Options say how a phase talks to its model.
type Options struct {
	Model        llm.Model
	Conversation *conversation.Conversation
	Box          *tool.Box
	Limits       Limits
	// MustFinish says that an answer without calls does not end the phase: the
	// model has to use a tool that ends it.
	MustFinish bool
	// Checkpoint is called at each point. Its error ends the phase and is
	// returned as it is.
	Checkpoint func(ctx context.Context, point Point) error
	// Sink shows the answers as they come.
	Sink llm.Sink
	// Recorder keeps what the conversation does not: usage, whole outputs.
	Recorder Recorder
	// Redactor takes secrets out of all that is kept.
	Redactor llm.Redactor
}

// Limits bound what a model can do in a phase. Zeros mean the defaults.
type Limits struct {
	Turns   int // 200
	Calls   int // of one answer; 32
	Answer  int // bytes of an answer's text that stay in the conversation; 64,000
	Empty   int // empty answers in a row that end the phase; 3
	Warn    int // identical calls after which the model is warned; 3
	Repeats int // identical calls that end the phase; 5
}

func (l Limits) orDefaults() Limits {
	for _, limit := range []struct {
		value    *int
		fallback int
	}{{&l.Turns, 200}, {&l.Calls, 32}, {&l.Answer, 64_000}, {&l.Empty, 3}, {&l.Warn, 3}, {&l.Repeats, 5}} {
		if *limit.value <= 0 {
			*limit.value = limit.fallback
		}
	}
	return l
}

// Recorder keeps a record of a phase. Compacted returns when the record is durable. What
// Answered and Done record may be durable only with what the conversation records next.
type Recorder interface {
	Answered(ctx context.Context, response llm.Response) error
	Done(ctx context.Context, done tool.Done) error
	Compacted(ctx context.Context, compaction conversation.Compaction) error
}

// Outcome is how a phase ended. Reason is [task.ReasonCompleted] when the model
// was done, with End from the tool that ended the phase, or Text for an answer
// without calls. A question to a person has [task.ReasonAwaitingAnswer].
type Outcome struct {
	Reason task.Reason
	End    *tool.End
	Text   string
	Turns  int
	Usage  llm.Usage
	Cost   llm.Money
}

// Run talks to the model until the phase ends. Errors are those of the model that
// are not retried (the budget among them), of the sandbox, of the journal, of a
// checkpoint, and of the context.
func Run(ctx context.Context, options Options) (Outcome, error) {
	options.Limits = options.Limits.orDefaults()
	l := &loop{Options: options, repeats: newRepeats(options.Limits), used: map[string]bool{}, fits: options.Model.Info()}
	for _, message := range options.Conversation.Request().Messages {
		for _, call := range message.Calls() {
			l.used[call.ID] = true
		}
	}
	for l.outcome.Turns < options.Limits.Turns {
		ended, err := l.turn(ctx)
		if err != nil || ended {
			return l.outcome, err
		}
	}
	l.outcome.Reason = task.ReasonTurnsExhausted
	return l.outcome, nil
}

type loop struct {
	Options
	outcome Outcome
	repeats *repeats
	used    map[string]bool // IDs of calls
	empty   int             // answers in a row
	idle    int             // answers without calls in a row
	fits    llm.Info        // the model that the conversation is kept small for
}

// fit follows a change of the model that answers, which may take less than the one before,
// and reports whether there was one.
func (l *loop) fit() bool {
	now := l.Model.Info()
	if now.ContextLength == l.fits.ContextLength && now.MaxTokens == l.fits.MaxTokens {
		return false
	}
	l.fits = now
	l.Conversation.Fit(now)
	return true
}

// end notes why the phase is over.
func (l *loop) end(reason task.Reason) (bool, error) {
	l.outcome.Reason = reason
	return true, nil
}

func (l *loop) checkpoint(ctx context.Context, point Point) error {
	if l.Checkpoint == nil {
		return ctx.Err()
	}
	return l.Checkpoint(ctx, point)
}

func (l *loop) turn(ctx context.Context) (ended bool, err error) {
	if err := l.checkpoint(ctx, BeforeTurn); err != nil {
		return true, err
	}
	l.fit()
	if err := l.compact(ctx); err != nil {
		if task.CodeOf(err) == task.TooLarge {
			return l.end(task.ReasonContextExceeded)
		}
		return true, err
	}
	l.outcome.Turns++
	request := l.Conversation.Request()
	response, err := l.Model.Chat(ctx, request, l.Sink)
	switch llm.KindOf(err) {
	case llm.Refused:
		l.outcome.Text = err.Error()
		return l.end(task.ReasonModelRefused)
	case llm.TooLong:
		if l.fit() { // the fallback was asked: what it takes decides
			return false, nil
		}
		l.outcome.Text = err.Error()
		return l.end(task.ReasonContextExceeded)
	}
	if err != nil {
		return true, err
	}
	l.Conversation.Observe(request, response.Usage)
	l.outcome.Usage = l.outcome.Usage.Add(response.Usage)
	l.outcome.Cost += response.Cost
	if err := l.record(func(r Recorder) error { return r.Answered(ctx, l.redactResponse(response)) }); err != nil {
		return true, err
	}
	return l.take(ctx, response)
}

func (l *loop) record(write func(Recorder) error) error {
	if l.Recorder == nil {
		return nil
	}
	if err := write(l.Recorder); err != nil {
		return fmt.Errorf("record the turn: %w", err)
	}
	return nil
}

func (l *loop) compact(ctx context.Context) error {
	done, err := l.Conversation.Compact(ctx)
	if err != nil || done == nil {
		return err
	}
	l.outcome.Usage = l.outcome.Usage.Add(done.Usage)
	l.outcome.Cost += done.Cost
	return l.record(func(r Recorder) error { return r.Compacted(ctx, *done) })
}

// take deals with an answer.
func (l *loop) take(ctx context.Context, response llm.Response) (ended bool, err error) {
	message, notes := l.repair(response)
	if message.Empty() {
		return l.takeNothing(ctx)
	}
	l.empty = 0
	kept := l.redactMessage(message)
	if err := l.Conversation.AddModelMessage(ctx, kept); err != nil {
		return true, err
	}
	if err := l.checkpoint(ctx, AfterAnswer); err != nil {
		return true, errors.Join(err, l.abandon(ctx, message.Calls()))
	}
	calls := message.Calls()
	if len(calls) == 0 {
		return l.takeText(ctx, response, message.Text())
	}
	l.idle = 0
	if response.Stop == llm.StopMaxTokens {
		return false, l.refuseAll(ctx, calls, "Your answer was cut off at the length limit, so none of its calls was done. Send shorter calls, for example several small edits.")
	}
	return l.carryOut(ctx, calls, notes)
}

func (l *loop) takeNothing(ctx context.Context) (bool, error) {
	l.empty++
	if l.empty >= l.Limits.Empty {
		return l.end(task.ReasonEmptyAnswers)
	}
	return false, l.Conversation.AddUserMessage(ctx, "Your last answer was empty. Go on with the task: use a tool, or say what you have to say.")
}

func (l *loop) takeText(ctx context.Context, response llm.Response, text string) (bool, error) {
	l.outcome.Text = text
	switch {
	case response.Stop == llm.StopMaxTokens:
		l.idle++
		if l.idle < l.Limits.Empty {
			return false, l.Conversation.AddUserMessage(ctx, "Your answer was cut off at the length limit. Go on where it ends, and be brief.")
		}
	case l.MustFinish:
		l.idle++
		if l.idle < l.Limits.Empty {
			return false, l.Conversation.AddUserMessage(ctx, "You have called no tool. Go on with the task, or call finish when it is done.")
		}
		return l.end(task.ReasonEmptyAnswers)
	}
	return l.end(task.ReasonCompleted)
}

// carryOut does the calls and gives the model the results.
func (l *loop) carryOut(ctx context.Context, calls []llm.Call, notes []string) (bool, error) {
	done, err := l.Box.Execute(ctx, calls)
	if err != nil {
		// What was done is known, so that the run can go on from there later.
		return true, errors.Join(err, l.keepResults(ctx, calls, done))
	}
	if err := l.keepResults(ctx, calls, done); err != nil {
		return true, err
	}
	verdict := l.repeats.see(done)
	if verdict.warning != "" {
		notes = append(notes, verdict.warning)
	}
	for _, note := range notes {
		if err := l.Conversation.AddUserMessage(ctx, note); err != nil {
			return true, err
		}
	}
	if err := l.checkpoint(ctx, AfterResults); err != nil {
		return true, err
	}
	for _, d := range done {
		if d.Output.End != nil {
			l.outcome.End = d.Output.End
			if d.Output.End.Question != "" {
				return l.end(task.ReasonAwaitingAnswer)
			}
			return l.end(task.ReasonCompleted)
		}
	}
	if verdict.stop {
		return l.end(task.ReasonModelLoops)
	}
	return false, nil
}

// keepResults puts the results into the conversation. A call that was not done
// gets a result that says so: a conversation has no open calls.
func (l *loop) keepResults(ctx context.Context, calls []llm.Call, done []tool.Done) error {
	// The sandbox may be gone because the run was stopped; what happened is kept.
	ctx = context.WithoutCancel(ctx)
	results := make([]llm.Result, 0, len(calls))
	for i, call := range calls {
		if i >= len(done) || done[i].Result.CallID != call.ID {
			results = append(results, llm.Result{CallID: call.ID, Name: call.Name, Text: "not done: the run was interrupted", Error: true})
			continue
		}
		d := l.redactDone(done[i])
		if err := l.record(func(r Recorder) error { return r.Done(ctx, d) }); err != nil {
			return err
		}
		results = append(results, d.Result)
	}
	return l.Conversation.Results(ctx, results)
}

// abandon answers the calls of a run that ends before they are done.
func (l *loop) abandon(ctx context.Context, calls []llm.Call) error {
	if len(calls) == 0 {
		return nil
	}
	return l.keepResults(ctx, calls, nil)
}

func (l *loop) refuseAll(ctx context.Context, calls []llm.Call, why string) error {
	results := make([]llm.Result, 0, len(calls))
	for _, call := range calls {
		results = append(results, llm.Result{CallID: call.ID, Name: call.Name, Text: strings.TrimSpace(why), Error: true})
	}
	return l.Conversation.Results(ctx, results)
}
