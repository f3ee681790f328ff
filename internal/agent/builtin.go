package agent

import (
	"context"
	"errors"
	"strings"

	progresscomment "github.com/toryo-dev/toryo/internal/agent/progress"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// BuiltIn is the executor that goes through the phases with a model.
type BuiltIn struct {
	// Options says how a run goes: its role, its models and what pays for them.
	Options func(run Run) (phase.Options, error)
}

var _ Executor = BuiltIn{}

// Execute implements Executor.
func (b BuiltIn) Execute(ctx context.Context, run Run) (wire.Result, error) {
	options, err := b.Options(run)
	if err != nil {
		return wire.Result{}, err
	}
	comment, err := progresscomment.New(progresscomment.Options{Work: run.Work, Language: task.Language(options.Language)})
	if err != nil {
		return wire.Result{}, err
	}
	options.Progress = comment.Text
	runner, err := phase.NewRunner(options)
	if err != nil {
		return wire.Result{}, err
	}
	outcome, err := runner.Run(ctx, phase.Job{
		Work: run.Work, Repository: run.Repository, Forge: run.Forge, Journal: comment.Journal(run.Journal),
	})
	if err == nil {
		comment.End(outcome.State, outcome.Reason)
		err = run.Forge.Progress(context.WithoutCancel(ctx), comment.Text())
	} else if fails(ctx, err) {
		comment.End(task.Failed, task.ReasonRunFailed)
		err = errors.Join(err, run.Forge.Progress(context.WithoutCancel(ctx), comment.Text()))
	}
	return resultOf(outcome), err
}

// resultOf is the outcome of a run as the server is told of it.
func resultOf(outcome phase.Outcome) wire.Result {
	result := wire.Result{
		Outcome: task.Outcome(outcome.State), Reason: string(outcome.Reason), Comment: strings.TrimSpace(outcome.Comment),
		Detail: outcome.Detail, Summary: outcome.Summary, Kept: outcome.Kept, CutAfter: outcome.CutAfter.Milliseconds(),
	}
	if outcome.Pull != nil {
		result.Pull = &wire.Pulled{Number: outcome.Pull.Number, URL: outcome.Pull.URL, Opened: outcome.Pull.Opened}
	}
	return result
}
