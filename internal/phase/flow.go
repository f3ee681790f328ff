package phase

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/task"
)

// flow goes through the phases. Each of them looks first at what the journal says
// and does what is not done yet.
func (r *run) flow(ctx context.Context) (Outcome, error) {
	if failed := r.state.failed; failed != nil {
		return r.fail(ctx, *failed)
	}
	if err := r.noteRefused(ctx); err != nil {
		return Outcome{}, err
	}
	if r.asksNothing(ctx) {
		return r.awaitAnswer(ctx, r.text("run.nothing_asked"))
	}
	if err := r.collect(ctx); err != nil {
		return Outcome{}, err
	}
	if merges, err := r.mergesAgain(ctx); err != nil || merges {
		return Outcome{State: task.Done, Reason: task.ReasonCompleted, Comment: r.text("run.merges_again", r.Work.Base)}, err
	}
	for _, phase := range []func(context.Context) error{r.prePlan, r.makePlan, r.approvePlan, r.prepare, r.mergeFirst} {
		if err := phase(ctx); err != nil {
			return r.endedBy(ctx, err)
		}
	}
	return r.afterSetUp(ctx)
}

// afterSetUp goes through the phases that come after set-up, some of them more than once.
func (r *run) afterSetUp(ctx context.Context) (Outcome, error) {
	for {
		next, err := r.next(ctx)
		if err != nil {
			return Outcome{}, err
		}
		switch next {
		case task.Execution:
			err = r.execute(ctx)
		case task.Verification:
			err = r.verify(ctx)
		default:
			outcome, again, err := r.complete(ctx)
			if err != nil || !again {
				return outcome, err
			}
			continue
		}
		if err != nil {
			return r.endedBy(ctx, err)
		}
	}
}

// next is the phase that comes after set-up, as the journal has it: execution and
// verification take turns until the work passes or every round is used up.
func (r *run) next(ctx context.Context) (task.Phase, error) {
	executed, verified := r.state.timesEnded(task.Execution), r.state.timesEnded(task.Verification)
	var last execution
	if executed > 0 {
		if err := r.state.outcome(task.Execution, &last); err != nil {
			return "", err
		}
	}
	switch {
	case r.state.active(task.Complete):
		return task.Complete, nil
	case r.state.active(task.Execution), executed == 0:
		return task.Execution, nil
	case verified == 0 && last.Reason != task.ReasonCompleted:
		return "", &overError{reason: last.Reason, text: last.Detail, said: last.Summary}
	case executed > verified:
		return task.Verification, nil
	}
	var verdict Verdict
	if err := r.state.outcome(task.Verification, &verdict); err != nil {
		return "", err
	}
	if !verdict.Passed && verdict.Again || len(r.state.unanswered()) > 0 && r.mayGoBack() {
		return task.Execution, r.begin(ctx, task.Execution)
	}
	return task.Complete, nil
}

// endedBy makes the outcome of a run whose phase ended it.
func (r *run) endedBy(ctx context.Context, err error) (Outcome, error) {
	var asked *askedError
	if errors.As(err, &asked) && ctx.Err() == nil {
		return r.awaitAnswer(ctx, asked.text)
	}
	if errors.Is(err, errNotApproved) && ctx.Err() == nil {
		return r.propose(ctx)
	}
	return Outcome{}, err
}

// askedError is what a phase ends with that cannot go on without a person.
type askedError struct{ text string }

func (q *askedError) Error() string { return "a question to a person is open" }

// asksNothing reports whether nobody has said what is to be done.
func (r *run) asksNothing(ctx context.Context) bool {
	said := []string{r.Work.Title, r.Work.Body}
	for _, comment := range r.Work.Comments {
		said = append(said, comment.Body)
	}
	if pull := r.Work.Pull; pull != nil {
		said = append(said, pull.Title, pull.Body)
		for _, comment := range pull.Summaries {
			said = append(said, comment.Body)
		}
	}
	if strings.TrimSpace(strings.Join(said, "")) != "" || len(r.state.newComments) > 0 {
		return false
	}
	comments, err := r.waiting(ctx)
	return err == nil && !slices.ContainsFunc(comments, func(c task.CommentEntry) bool { return c.Refused == "" })
}

// awaitAnswer asks people and ends the run until they have answered.
func (r *run) awaitAnswer(ctx context.Context, text string) (Outcome, error) {
	// The text is part of the name: after a loss the model may ask something else at the
	// same step, which people have to see.
	digest := sha256.Sum256([]byte(text))
	name := fmt.Sprintf("question-%d-%x", r.state.step, digest[:4])
	say := func(name string) error { return r.Forge.AddComment(ctx, name, r.text("run.question", text)) }
	if err := r.notifyOnce(ctx, name, text, say); err != nil {
		return Outcome{}, err
	}
	if err := r.save(ctx); err != nil {
		return Outcome{}, err
	}
	signal := &SignalEntry{Signal: task.SignalPause, Reason: task.ReasonAwaitingAnswer}
	if err := r.append(ctx, task.SignalTaken, Entry{Step: r.state.step, Signal: signal}); err != nil {
		return Outcome{}, err
	}
	return Outcome{State: task.Paused, Reason: task.ReasonAwaitingAnswer, Detail: detailOf(text)}, nil
}

// givenUp is the outcome of a phase that ended the run.
type givenUp struct {
	Reason task.Reason `json:"failed_reason"`
	Detail string      `json:"detail,omitempty"` // about the failure
	Said   string      `json:"said,omitempty"`   // by the model, about anything
}

// fail ends the run without success.
func (r *run) fail(ctx context.Context, failed givenUp) (Outcome, error) {
	for _, phase := range task.Phases {
		if r.state.active(phase) {
			if err := r.end(ctx, phase, PhaseFailed, failed); err != nil {
				return Outcome{}, err
			}
		}
	}
	if err := r.save(ctx); err != nil {
		return Outcome{}, err
	}
	summary := r.summarize(nil, failed.Reason)
	if r.state.summary != summary {
		if err := r.append(ctx, task.Summed, Entry{Text: summary}); err != nil {
			return Outcome{}, err
		}
	}
	return Outcome{State: task.Failed, Reason: failed.Reason, Comment: r.failureComment(failed) + r.tooLate(),
		Detail: detailOf(cmp.Or(failed.Detail, failed.Said)), Summary: summary}, nil
}

// detailOf is a text about how a run ended, as it is kept. It is cut when there are no secrets
// in it any more: a half of one would not be found.
func detailOf(text string) string { return strings.TrimSpace(tool.Printable(text)) }
