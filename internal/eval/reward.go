package eval

import (
	"context"
	"fmt"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/task"
)

// FolderEnvironment is the name of the one environment of a task folder: its image.
const FolderEnvironment = "task"

// fullReward is the reward of a task that is resolved.
const fullReward = 1

// checkFolder scores no change and what the solution of a task folder leaves.
func (e *Evaluation) checkFolder(ctx context.Context, t taskset.Task) (Check, error) {
	from, remove, err := e.repository(ctx, t)
	if err != nil {
		return Check{}, err
	}
	defer remove()
	check := Check{Task: t.ID, Expected: Expected{Receipt: environment.Receipt{Environment: FolderEnvironment, Directory: ".", Image: t.Container.Image}}}
	gold, err := e.solution(ctx, t, from, &check)
	if err != nil {
		return Check{}, err
	}
	if check.NoChange, err = e.reward(ctx, t, from, from.Base); err != nil {
		return Check{}, err
	}
	// Twice, so that tests which pass now and then are found out.
	for range 2 {
		if check.Gold, err = e.reward(ctx, t, from, gold); err != nil {
			return Check{}, err
		}
		if !check.Gold.Resolved {
			break
		}
	}
	check.decideReward(t, e.Folders.Network)
	return check, nil
}

// solution makes the commit of what the solution leaves, by the patch that is kept of it, as the
// work of an attempt is.
func (e *Evaluation) solution(ctx context.Context, t taskset.Task, from *source.Repository, check *Check) (string, error) {
	solved, err := e.Folders.Solve(ctx, t, from)
	if err != nil {
		return "", err
	}
	if check.Expected.Patch, err = from.Diff(ctx, from.Base, solved); err != nil {
		if task.CodeOf(err) == task.TooLarge {
			return "", task.Wrap(task.Invalid, err, "what the solution changes is too much")
		}
		return "", err
	}
	if check.Expected.Patch == "" {
		return "", task.Errorf(task.Invalid, "the solution changes no file in %s, so that it is not files there that the task asks for", t.Container.Workdir)
	}
	return from.Apply(ctx, from.Base, check.Expected.Patch)
}

// reward scores a commit by what the tests of a task folder leave.
func (e *Evaluation) reward(ctx context.Context, t taskset.Task, from *source.Repository, commit string) (Score, error) {
	result, err := e.Folders.Score(ctx, t, from, commit)
	if err != nil {
		return Score{}, err
	}
	score := Score{Note: result.Problem, Seconds: result.Seconds, Command: taskset.FolderTests + "/" + taskset.TestScript,
		Environment: Environment{Name: FolderEnvironment, Sandbox: e.Scorer.Setup.Engine.Name(), Image: t.Container.Image}}
	if result.Problem == "" {
		score.Reward, score.Resolved = &result.Reward, result.Reward == fullReward
	}
	if !score.Resolved {
		score.Output = result.Output
	}
	return score, e.identify(ctx, &score.Environment)
}

// decideReward says whether a task folder can be used, and why not.
func (c *Check) decideReward(t taskset.Task, network bool) {
	switch {
	case c.Gold.Note != "":
		c.Reason = "with the solution: " + c.Gold.Note
	case !c.Gold.Resolved:
		c.Reason = fmt.Sprintf("with what the solution changes in %s the reward is %v, and not 1: the task needs more than files there, or its tests fail", t.Container.Workdir, *c.Gold.Reward)
	case c.NoChange.Note != "":
		c.Reason = "without any change: " + c.NoChange.Note
	case c.NoChange.Resolved:
		c.Reason = "without any change the reward is 1 already"
	default:
		c.Usable = true
		return
	}
	if t.Container.Network && !network {
		c.Reason += " (the task would have the network, which it has only with --allow-network)"
	}
}

// scoreFolder scores the patch of an attempt at a task folder.
func (e *Evaluation) scoreFolder(ctx context.Context, one turn, from *source.Repository, made *Attempt) error {
	applied, err := from.Apply(ctx, from.Base, made.Patch)
	if isOfWork(err) {
		made.Score.Note = "the work cannot be applied: " + err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	judge, err := newJudge(ctx, from, one.task, one.check.Expected.Receipt, nil)
	if err != nil {
		return err
	}
	// All of the work counts, since a task may ask for tests or settings. What there is to look
	// at is flagged.
	looked, err := judge.judge(ctx, applied)
	if err != nil {
		return err
	}
	if made.Flags, err = flagTests(ctx, from, applied, from.Base, made.Patch, append(made.Flags, looked.flags...)); err != nil {
		return err
	}
	made.Flags = merged(made.Flags, flagReward(made.Patch))
	if made.Score, err = e.reward(ctx, one.task, from, applied); err != nil {
		return err
	}
	if made.Score.Resolved {
		made.Status = Resolved
	}
	return nil
}
