package eval

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/phase/ignore"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
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
	if solved, err = withoutIgnored(ctx, from, solved); err != nil {
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

// withoutIgnored leaves new files out that a .gitignore leaves out of every attempt. If a task needs
// such a file, its check fails.
func withoutIgnored(ctx context.Context, from *source.Repository, solved string) (string, error) {
	files, err := from.Files(ctx, solved)
	if err != nil {
		return "", err
	}
	files = slices.DeleteFunc(files, func(name string) bool { return path.Base(name) != ".gitignore" })
	// Those of folders further in count more.
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")) })
	var rules ignore.Rules
	for _, name := range files {
		text, err := from.File(ctx, solved, name)
		if err != nil {
			return "", err
		}
		rules = rules.Add(path.Dir(name), string(text))
	}
	if len(rules) == 0 {
		return solved, nil
	}
	changes, err := from.Changes(ctx, from.Base, solved)
	if err != nil {
		return "", err
	}
	return from.Put(ctx, from.Base, slices.DeleteFunc(changes, func(c source.Change) bool { return c.Added && isIgnored(rules, c.Name) }))
}

// isIgnored reports whether rules exclude a file or a folder that it is in.
func isIgnored(rules ignore.Rules, name string) bool {
	for i, c := range name {
		if c == '/' && rules.Ignored(name[:i], true) {
			return true
		}
	}
	return rules.Ignored(name, false)
}

// reward scores a commit by what the tests of a task folder leave.
func (e *Evaluation) reward(ctx context.Context, t taskset.Task, from *source.Repository, commit string) (Score, error) {
	result, err := e.Folders.Score(ctx, t, from, commit)
	if err != nil {
		return Score{}, err
	}
	score, err := e.noReward(ctx, t, result.Problem)
	if err != nil {
		return Score{}, err
	}
	score.Seconds = result.Seconds
	if result.Problem == "" {
		score.Reward, score.Resolved = &result.Reward, result.Reward == fullReward
	}
	if !score.Resolved {
		score.Output = result.Output
	}
	return score, nil
}

// noReward is the score of what has no reward, and why.
func (e *Evaluation) noReward(ctx context.Context, t taskset.Task, why string) (Score, error) {
	score := Score{Note: why, Command: taskset.FolderTests + "/" + taskset.TestScript,
		Environment: Environment{Name: FolderEnvironment, Sandbox: e.Scorer.Setup.Engine.Name(), Image: t.Container.Image}}
	return score, e.identify(ctx, &score.Environment)
}

// rewarded scores the work of an attempt. As in [Evaluation.scored], an error counts as one of the
// machine only if the solution ends in one too: the tests run programs of the work as root.
func (e *Evaluation) rewarded(ctx context.Context, one turn, from *source.Repository, work string) (Score, error) {
	score, first := e.reward(ctx, one.task, from, work)
	if first == nil || ctx.Err() != nil {
		return score, first
	}
	e.say("%s: the tests could not be run, so that the solution is tried: %v", one.task.ID, first)
	if !e.solves(ctx, one, from) {
		return Score{}, first
	}
	score, second := e.reward(ctx, one.task, from, work)
	if second == nil || ctx.Err() != nil {
		return score, second
	}
	if !e.solves(ctx, one, from) {
		return Score{}, second
	}
	return e.noReward(ctx, one.task, "the tests cannot be run with these files, while they can with the solution: "+textfmt.Shorten(second.Error(), longestNote))
}

// solves reports whether the solution can be scored here and now.
func (e *Evaluation) solves(ctx context.Context, one turn, from *source.Repository) bool {
	gold, err := from.Apply(ctx, from.Base, one.check.Expected.Patch)
	if err != nil {
		return false
	}
	score, err := e.reward(ctx, one.task, from, gold)
	return err == nil && score.Resolved
}

// decideReward says whether a task folder can be used, and why not.
func (c *Check) decideReward(t taskset.Task, network bool) {
	switch {
	case c.Gold.Note != "":
		c.Reason = "with the solution: " + c.Gold.Note
	case !c.Gold.Resolved:
		c.Reason = fmt.Sprintf("with what the solution changes in %s the reward is %v, and not 1: the task needs more than files there, or files that a .gitignore leaves out, or its tests fail", t.Container.Workdir, *c.Gold.Reward)
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
	applied, err := e.applied(ctx, one, from, made)
	if isOfWork(err) && ctx.Err() == nil {
		// The same could be done with the solution, so that it is the work.
		made.Score.Note = "the work cannot be applied: " + textfmt.Shorten(err.Error(), longestNote)
		return nil
	}
	if err != nil {
		return err
	}
	if made.Score, err = e.rewarded(ctx, one, from, applied); err != nil {
		return err
	}
	if made.Score.Resolved {
		made.Status = Resolved
	}
	return nil
}

// applied makes the commit that is scored. All of the work counts, since a task may ask for tests
// or settings. What there is to look at is flagged.
func (e *Evaluation) applied(ctx context.Context, one turn, from *source.Repository, made *Attempt) (string, error) {
	applied, err := from.Apply(ctx, from.Base, made.Patch)
	if err != nil {
		return "", err
	}
	judge, err := newJudge(ctx, from, one.task, one.check.Expected.Receipt, nil)
	if err != nil {
		return "", err
	}
	looked, err := judge.judge(ctx, applied)
	if err != nil {
		return "", err
	}
	if made.Flags, err = flagTests(ctx, from, applied, from.Base, made.Patch, append(made.Flags, looked.flags...)); err != nil {
		return "", err
	}
	made.Flags = merged(made.Flags, flagReward(made.Patch))
	return applied, nil
}
