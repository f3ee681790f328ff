package eval

import (
	"context"
	"slices"

	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// score scores what a run has left on its branch.
func (e *Evaluation) score(ctx context.Context, one turn, from *source.Repository, made *Attempt) error {
	made.Status = Unresolved
	work, err := from.Commit(ctx, Branch)
	if err != nil || work == "" {
		return err
	}
	if made.Patch, err = from.Diff(ctx, from.Base, work); err != nil {
		if task.CodeOf(err) == task.TooLarge {
			made.Score.Note = err.Error()
			return nil
		}
		return err
	}
	if made.Patch == "" {
		return nil
	}
	if one.task.Container != nil {
		return e.scoreFolder(ctx, one, from, made)
	}
	with, err := e.subjects(ctx, one, from, made)
	if err != nil || with == nil {
		return err
	}
	if err := e.scoreWork(ctx, *with, one.check.Expected, made); err != nil {
		return err
	}
	if err := e.identify(ctx, &made.Score.Environment); err != nil {
		return err
	}
	if made.Score.Resolved {
		made.Status = Resolved
	}
	return nil
}

// scoreWork runs the tests over the work. If the expected ones are not loaded, they are run once more
// with tests that the work has adjusted. That decides nothing: files of tests have helpers in them too,
// by which wrong work could pass. It is flagged for a person to look at.
func (e *Evaluation) scoreWork(ctx context.Context, with subjects, expected Expected, made *Attempt) error {
	ran, err := e.scored(ctx, with, expected)
	if err != nil {
		return err
	}
	made.Score = ran.score(expected)
	if with.own.commit == "" || !ran.notLoaded(expected) {
		return nil
	}
	again, err := e.scored(ctx, subjects{work: with.own, gold: with.gold}, expected)
	if err != nil {
		return err
	}
	if again.score(expected).Resolved {
		made.Flags = merged(made.Flags, []string{FlagOwnTests})
	}
	return nil
}

// subjects are the work of an attempt and the change that people made, both with the hidden
// tests over them.
type subjects struct {
	work, gold subject
	own        subject // the work with the tests that it has adjusted, if there are any
}

// subjects makes what is scored. It returns nil if the work is such that it cannot be scored,
// with a note that says why.
func (e *Evaluation) subjects(ctx context.Context, one turn, from *source.Repository, made *Attempt) (*subjects, error) {
	tests, gold, err := patched(ctx, from, one.task)
	if err != nil {
		return nil, err
	}
	receipt := one.check.Expected.Receipt
	with := &subjects{gold: subject{task: one.task, from: from, commit: gold, receipt: receipt}}
	commit, err := e.judged(ctx, one, from, tests, made, with)
	if isOfWork(err) && ctx.Err() == nil {
		// The same could be done with the change that people made, so that it is the work.
		made.Score.Note = "the work cannot be put together with the tests: " + textfmt.Shorten(err.Error(), longestNote)
		return nil, nil //nolint:nilnil // a patch that cannot be applied is a result
	}
	with.work = subject{task: one.task, from: from, commit: commit, receipt: receipt}
	return with, err
}

// isOfWork reports whether an error says that a patch is no good. Others, such as a disk that is
// full, say nothing about it.
func isOfWork(err error) bool {
	return slices.Contains([]task.Code{task.Invalid, task.TooLarge, task.Unsupported}, task.CodeOf(err))
}

// judged makes the commit that is scored: the base with the work, but for what it does to
// tests, and with the hidden tests.
func (e *Evaluation) judged(ctx context.Context, one turn, from *source.Repository, tests string, made *Attempt, with *subjects) (string, error) {
	// The work comes as a patch, as it is handed to others, and not as the commit itself.
	applied, err := from.Apply(ctx, from.Base, made.Patch)
	if err != nil {
		return "", err
	}
	judge, err := newJudge(ctx, from, one.task, one.check.Expected.Receipt, one.check.Expected.Allowed)
	if err != nil {
		return "", err
	}
	without, err := judge.judge(ctx, applied)
	if err != nil {
		return "", err
	}
	made.PutBack = without.back[:min(len(without.back), mostNamed)]
	if made.Flags, err = flagTests(ctx, from, applied, tests, made.Patch, append(made.Flags, without.flags...)); err != nil {
		return "", err
	}
	if own, err := judge.setsUp(ctx, applied, with.gold); err != nil {
		return "", err
	} else if own {
		made.Flags = merged(made.Flags, []string{FlagSetup})
	}
	if len(without.tests) > 0 {
		judge.allowed = slices.Concat(judge.allowed, without.tests)
		adjusted, err := judge.judge(ctx, applied)
		if err != nil {
			return "", err
		}
		with.own = with.gold
		if with.own.commit, err = from.With(ctx, adjusted.commit, tests); err != nil {
			return "", err
		}
	}
	return from.With(ctx, without.commit, tests)
}

// scored runs the hidden tests over the work. What the work has in it can look like an outage:
// a set-up that reaches for a host, or fills the disk. So an error counts as one of the machine
// only if the change that people made ends in one too.
func (e *Evaluation) scored(ctx context.Context, with subjects, want Expected) (tested, error) {
	ran, first := e.Scorer.run(ctx, with.work)
	if first == nil || ctx.Err() != nil {
		return ran, first
	}
	e.say("%s: the tests could not be run, so that the change that people made is tried: %v", with.work.task.ID, first)
	if !e.works(ctx, with.gold, want) {
		return tested{}, first
	}
	ran, second := e.Scorer.run(ctx, with.work)
	if second == nil || ctx.Err() != nil {
		return ran, second
	}
	if !e.works(ctx, with.gold, want) {
		return tested{}, second
	}
	return tested{receipt: with.work.receipt, problem: "the tests cannot be run with these files, while they can with the change that people made: " + textfmt.Shorten(second.Error(), longestNote)}, nil
}

// works reports whether the change that people made can be scored here and now.
func (e *Evaluation) works(ctx context.Context, gold subject, want Expected) bool {
	ran, err := e.Scorer.run(ctx, gold)
	return err == nil && ran.score(want).Resolved
}
