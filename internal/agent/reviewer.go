package agent

import (
	"context"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Reviewer is the executor that reviews pull requests with a model.
type Reviewer struct {
	// Model gives the model of a run, paid from its budget.
	Model func(run Run) (llm.Model, error)
	// Instructions are what a role is told besides; may be nil.
	Instructions func(role task.Role) (string, error)
	Language     judge.Language // empty means that of the pull request
}

var _ Executor = Reviewer{}

// Execute implements Executor.
func (r Reviewer) Execute(ctx context.Context, run Run) (wire.Result, error) {
	paper, err := r.paper(run)
	if err != nil {
		return wire.Result{}, err
	}
	model, err := r.Model(run)
	if err != nil {
		return wire.Result{}, err
	}
	if err := enter(ctx, run, phase.PhaseActive); err != nil {
		return wire.Result{}, err
	}
	judged, err := judge.Judge{Model: model, Run: run.Assignment.TaskID, Phase: task.Execution, Log: run.Log}.Judge(ctx, paper)
	if err != nil {
		return wire.Result{}, err
	}
	used := &phase.Usage{Model: model.Info().Model, Scripted: judged.Scripted, Usage: judged.Usage, Cost: judged.Cost}
	if err := run.Journal.Append(ctx, task.ModelUsed, phase.Entry{Phase: task.Execution, Step: 1, Usage: used}); err != nil {
		return wire.Result{}, err
	}
	if err := enter(ctx, run, phase.PhaseCompleted); err != nil {
		return wire.Result{}, err
	}
	return wire.Result{
		Outcome: outcomeDone, Reason: string(task.ReasonCompleted), Review: reviewOf(judged.Report(paper)),
	}, nil
}

func (r Reviewer) paper(run Run) (judge.Paper, error) {
	paper, err := paperOf(run.Assignment, r.Language)
	if err == nil && r.Instructions != nil {
		paper.Instructions, err = r.Instructions(run.Work.Role)
	}
	return paper, err
}

// paperOf is the pull request of an assignment as it is judged. An empty language
// is that of the pull request.
func paperOf(a wire.Assignment, in judge.Language) (judge.Paper, error) {
	pull := a.PullRequest
	if pull == nil {
		return judge.Paper{}, task.Errorf(task.Invalid, "the task names no pull request to review")
	}
	asked := judge.Pull{URL: pull.URL, Title: pull.Title, Body: pull.Body, Commit: pull.Commit, Diff: pull.Diff, CutFiles: pull.CutFiles, Language: in}
	for _, issue := range pull.Issues {
		asked.Issues = append(asked.Issues, judge.Issue{Number: issue.Number, Title: issue.Title, Body: issue.Body})
	}
	return judge.PullPaper(asked)
}

// reviewOf is a report as the server is given it.
func reviewOf(report judge.Report) *wire.ReviewResult {
	result := &wire.ReviewResult{
		Commit: report.Commit, Question: report.Question, Answer: report.Answer, Judgement: report.Judgement,
		Verdict: report.Verdict, Text: report.Text,
	}
	for _, comment := range report.Comments {
		result.Comments = append(result.Comments, wire.LineComment{Path: comment.Path, Line: comment.Line, Old: comment.Old, Text: comment.Text})
	}
	return result
}
