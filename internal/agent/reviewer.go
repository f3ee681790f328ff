package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Reviewer is the executor that reviews pull requests with a model: it judges the
// diff against the issue and its acceptance criteria. It runs nothing and changes
// nothing, so that a run that is cut off just begins anew.
type Reviewer struct {
	// Model is the model for the role of the run, paid from the ledger.
	Model    func(role task.Role, ledger llm.Ledger) (llm.Model, error)
	Language task.Language
	// Instructions are what the model is told of its role; nil means nothing.
	Instructions func(task.Role) (string, error)
	// Prompts has files that replace the built-in prompts of the same names; it may be
	// nil.
	Prompts fs.FS
}

var _ Executor = Reviewer{}

// Execute implements Executor.
func (r Reviewer) Execute(ctx context.Context, run Run) (wire.Result, error) {
	if err := enter(ctx, run, phase.PhaseActive); err != nil {
		return wire.Result{}, err
	}
	in := r.Language.OfItem(run.Assignment.Title, run.Assignment.Body)
	paper, err := paperOf(run.Assignment, in)
	if err != nil {
		return failed(task.Review, in, messages.Text(in, "command.failed", err.Error()), ""), nil
	}
	if r.Instructions != nil {
		if paper.Instructions, err = r.Instructions(run.Work.Role); err != nil {
			return wire.Result{}, err
		}
	}
	model, err := r.Model(run.Work.Role, Ledger{run.Spending})
	if err != nil {
		return wire.Result{}, err
	}
	judged, err := judge.Judge{Model: model, Prompts: r.Prompts, Run: run.Assignment.TaskID, Phase: task.Execution, Log: run.Log}.Judge(ctx, paper)
	if err != nil {
		return wire.Result{}, reasonOf(ctx, err)
	}
	if by := judged.Standin; by != nil {
		if err := run.Journal.Append(ctx, task.NoteTaken, phase.Entry{Phase: task.Execution, Text: by.Text(in)}); err != nil {
			return wire.Result{}, err
		}
	}
	usage := phase.Usage{Model: model.Info().Model, Scripted: judged.Scripted, Usage: judged.Usage, Cost: judged.Cost}
	if err := run.Journal.Append(ctx, task.ModelUsed, phase.Entry{Phase: task.Execution, Step: 1, Usage: &usage}); err != nil {
		return wire.Result{}, err
	}
	report := judged.Report(paper)
	if err := run.Journal.Append(ctx, task.NoteTaken, phase.Entry{Phase: task.Execution, Text: report.Text}); err != nil {
		return wire.Result{}, err
	}
	if err := enter(ctx, run, phase.PhaseCompleted); err != nil {
		return wire.Result{}, err
	}
	return wire.Result{Outcome: task.OutcomeDone, Reason: string(task.ReasonCompleted), Summary: report.Text, Review: reviewResult(report)}, nil
}

// reasonOf is why a judgement failed: the end of the run, the budget, or the model.
func reasonOf(ctx context.Context, err error) error {
	unusable, is := errors.AsType[judge.UnusableError](err)
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return cause
	case llm.KindOf(err) == llm.BudgetExhausted:
		return errors.Join(task.Wrap(task.OverBudget, err, "the budget is used up"), err)
	case is: // handed out again, the model would be asked the same without end
		return task.Wrap(task.Invalid, unusable, "the model gave no judgement that can be used").WithHint("use another model for reviews")
	default:
		return fmt.Errorf("review the pull request: %w", err)
	}
}

// paperOf is the pull request of an assignment as it is judged.
func paperOf(a wire.Assignment, in task.Language) (judge.Paper, error) {
	if a.PullRequest == nil {
		return judge.Paper{}, task.Errorf(task.Invalid, "there is no pull request to review")
	}
	pull := judge.Pull{
		URL: a.PullRequest.URL, Title: a.PullRequest.Title, Body: a.PullRequest.Body, Commit: a.PullRequest.Commit, Diff: a.PullRequest.Diff,
		CutFiles: a.PullRequest.CutFiles, Language: in, Notes: a.ReviewNotes,
	}
	for _, issue := range a.PullRequest.Issues {
		pull.Issues = append(pull.Issues, judge.Issue{Number: issue.Number, Title: issue.Title, Body: issue.Body})
	}
	return judge.PullPaper(pull)
}

// reviewResult is a report as the server takes it.
func reviewResult(report judge.Report) *wire.ReviewResult {
	result := &wire.ReviewResult{
		Commit: report.Commit, Question: report.Question, Answer: report.Answer, Judgement: report.Judgement,
		Verdict: report.Verdict, Text: report.Text,
	}
	for _, c := range report.Comments {
		result.Comments = append(result.Comments, wire.LineComment{Path: c.Path, Line: c.Line, Old: c.Old, Text: c.Text})
	}
	return result
}
