package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/eval/harbor"
	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Evaluation is a set of tasks, the models that are tried on it, and how.
type Evaluation struct {
	Set      taskset.Set
	Models   []string
	Attempts int // at each task by each model
	Parallel int // attempts at a time
	// Budget is what everything in the folder may cost, also what was done in vain; 0 means
	// no limit.
	Budget llm.Money
	// Within is how long one run may take.
	Within time.Duration
	Out    Folder
	Cache  string // folder for checks, which several evaluations share
	Dir    string // for folders that go again
	Scorer Scorer
	// Folders runs task folders. It need not be there for sets without any.
	Folders harbor.Runner
	Worker  Worker
	// Settings identifies what scores depend on besides the task, the engine and the time-out:
	// limits, networks, the table of environments, the version of the program.
	Settings string
	// OnlyCheck makes no attempts, and Recheck uses no checks from before.
	OnlyCheck bool
	Recheck   bool
	Redact    func(text string) string // leaves keys out of what is written down
	Progress  func(line string)
	Now       func() time.Time

	mu    sync.Mutex
	spent llm.Money
	over  bool // the budget is used up
	done  int
}

// Results is all that an evaluation came to.
type Results struct {
	Set      string    `json:"set"`
	SetHash  string    `json:"set_hash"`
	Tasks    []string  `json:"tasks"`
	Models   []string  `json:"models"`
	Play     string    `json:"play,omitempty"`
	Checks   []Check   `json:"checks"`
	Attempts []Attempt `json:"attempts"`
	// Stopped says why attempts are missing; empty if none are.
	Stopped string    `json:"stopped,omitempty"`
	Ended   time.Time `json:"ended"`
}

// Run checks the tasks and makes the attempts that are missing. The results have what earlier
// calls have left in the folder too, if it was scored in the same way. When the context ends, it
// returns its cause; what was finished is kept.
func (e *Evaluation) Run(ctx context.Context) (Results, error) {
	results := Results{Set: e.Set.Name, SetHash: e.Set.Hash, Models: slices.Clone(e.Models)}
	for _, one := range e.Set.Tasks {
		results.Tasks = append(results.Tasks, one.ID)
	}
	if err := e.forgetOld(); err != nil {
		return Results{}, err
	}
	checks, err := e.checkAll(ctx)
	if err != nil {
		return Results{}, err
	}
	results.Checks = checks
	if !e.OnlyCheck {
		if results.Attempts, err = e.attemptAll(ctx, checks); err != nil {
			return Results{}, err
		}
		if err := e.Out.addOthers(&results); err != nil {
			return Results{}, err
		}
	}
	if e.over {
		results.Stopped = fmt.Sprintf("the budget of %s is used up: %s were spent", e.Budget, e.spent)
	}
	results.Ended = e.Now().UTC()
	return results, nil
}

func (e *Evaluation) say(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress(fmt.Sprintf(format, args...))
}

// progress tells of something that may have names and errors of others in it.
func (e *Evaluation) progress(line string) {
	e.Progress(textfmt.OneLine(textfmt.Plain(e.Redact(line))))
}

// checkAll checks all tasks.
func (e *Evaluation) checkAll(ctx context.Context) ([]Check, error) {
	checks := make([]Check, len(e.Set.Tasks))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(e.Parallel, 1))
	for i, one := range e.Set.Tasks {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			began := e.Now()
			made, err := e.check(ctx, one)
			if err != nil {
				return err
			}
			checks[i] = made
			switch {
			case made.Usable && made.Cached:
				e.say("%s: checked before", one.ID)
			case made.Usable && one.Container != nil:
				e.say("%s: checked in %.0f s", one.ID, e.Now().Sub(began).Seconds())
			case made.Usable:
				e.say("%s: checked in %.0f s: %d tests have to pass", one.ID, e.Now().Sub(began).Seconds(), len(made.Expected.FailToPass)+len(made.Expected.PassToPass))
			default:
				e.say("%s: left out: %s", one.ID, made.Reason)
			}
			return nil
		})
	}
	return checks, group.Wait()
}

// turn is an attempt that is to be there.
type turn struct {
	task   taskset.Task
	check  Check
	model  string
	number int
	before Attempt // the same one in an earlier call, if it ended in an error
}

// turns are all attempts that are to be there, the first ones at all tasks before the second.
func (e *Evaluation) turns(checks []Check) []turn {
	var turns []turn
	for number := 1; number <= e.Attempts; number++ {
		for i, one := range e.Set.Tasks {
			if !checks[i].Usable {
				continue
			}
			if one.Container != nil { // of which the check has found out the change
				one.Patch = checks[i].Expected.Patch
			}
			for _, model := range e.Models {
				turns = append(turns, turn{task: one, check: checks[i], model: model, number: number})
			}
		}
	}
	return turns
}

// attemptAll makes the attempts that are missing.
func (e *Evaluation) attemptAll(ctx context.Context, checks []Check) ([]Attempt, error) {
	turns := e.turns(checks)
	attempts := make([]*Attempt, len(turns))
	if err := e.recall(turns, attempts); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(e.Parallel, 1))
	for i, one := range turns {
		if attempts[i] == nil {
			group.Go(func() (err error) {
				attempts[i], err = e.take(ctx, one, len(turns))
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	made := make([]Attempt, 0, len(attempts))
	for _, attempt := range attempts {
		if attempt != nil {
			made = append(made, *attempt)
		}
	}
	return made, nil
}

// take makes an attempt and keeps it. It returns nil if there is no money for it.
func (e *Evaluation) take(ctx context.Context, one turn, of int) (*Attempt, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if !e.mayBegin() {
		return nil, nil //nolint:nilnil // that there is none is no error
	}
	made, err := e.attempt(ctx, one)
	if errors.Is(err, errBudget) {
		e.say("%s by %s, attempt %d, was ended: %v", one.task.ID, one.model, one.number, err)
		e.mayBegin()    // which it may not
		return nil, nil //nolint:nilnil // how it would have ended is not known
	}
	if err != nil {
		return nil, err
	}
	made.redact(e.Redact)
	e.count(one, made, of)
	return &made, e.Out.Keep(made)
}

// recall reads the attempts that were finished before. Those that ended in an error are made
// again, and so are those that were scored in another way than would be now.
func (e *Evaluation) recall(turns []turn, attempts []*Attempt) (err error) {
	if e.spent, err = e.Out.spent(); err != nil {
		return err
	}
	for i, one := range turns {
		attempt, found, err := e.Out.Attempt(one.model, one.task.ID, one.number)
		if err != nil {
			return err
		}
		switch {
		case found && attempt.Status == Failed:
			turns[i].before = attempt
		case found && attempt.Basis != one.check.basis():
			e.say("%s by %s, attempt %d, is made again: the environment or the tests are not the same any more", one.task.ID, one.model, one.number)
		case found:
			attempts[i], e.done = &attempt, e.done+1
		}
	}
	if e.done > 0 {
		e.say("%d of %d attempts were made before", e.done, len(turns))
	}
	return nil
}

// mayBegin reports whether there is money left.
func (e *Evaluation) mayBegin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Budget > 0 && e.spent >= e.Budget {
		e.over = true
	}
	return !e.over
}

// spend writes down what a call has cost, and ends the attempt if there is no more money.
func (e *Evaluation) spend(one turn, cost llm.Money, end context.CancelCauseFunc) error {
	if cost == 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spent += cost
	if e.Budget > 0 && e.spent >= e.Budget {
		end(errBudget)
	}
	return e.Out.spend(spending{Task: one.task.ID, Model: one.model, Number: one.number, Cost: cost})
}

func (e *Evaluation) count(one turn, made Attempt, of int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done++
	text := fmt.Sprintf("%d/%d %s by %s, attempt %d: %s", e.done, of, one.task.ID, one.model, one.number, made.Status)
	if made.Error != "" {
		text += ": " + made.Error
	}
	e.progress(fmt.Sprintf("%s (%.0f s, cost %s)", text, made.Seconds, made.Cost))
}

// attempt makes one attempt, and once more if it ends in an error.
func (e *Evaluation) attempt(ctx context.Context, one turn) (Attempt, error) {
	before := one.before
	made, err := e.try(ctx, one, before)
	if err != nil && IsPassing(err) && ctx.Err() == nil && !errors.Is(err, errBudget) {
		e.say("%s by %s, attempt %d, is tried again: %v", one.task.ID, one.model, one.number, err)
		made, err = e.try(ctx, one, made)
	}
	if ctx.Err() != nil {
		return Attempt{}, context.Cause(ctx)
	}
	if errors.Is(err, errBudget) {
		return Attempt{}, err
	}
	if err != nil {
		made.Status, made.Error = Failed, err.Error()
	}
	made.Task, made.Model, made.Number, made.Ended, made.Basis = one.task.ID, one.model, one.number, e.Now().UTC(), one.check.basis()
	return made, nil
}

// errTooLong ends a run that takes too long.
var errTooLong = errors.New("the run took longer than it may")

// errBudget ends a run when the money of the evaluation is spent.
var errBudget = task.Errorf(task.OverBudget, "the budget of the evaluation is used up")

// try does the work and scores it. An error is one of the machine. What a try before it has
// used counts too.
func (e *Evaluation) try(ctx context.Context, one turn, before Attempt) (made Attempt, err error) {
	made.Tries = before.Tries + 1
	if one.task.AfterWork {
		before.Flags = append(slices.Clone(before.Flags), FlagStatement)
	}
	defer func() { made.addUse(before) }()
	from, remove, err := e.repository(ctx, one.task)
	if err != nil {
		return made, err
	}
	defer remove()
	began := e.Now()
	within := e.Within
	if one.task.Container != nil {
		within = min(within, one.task.Container.WorkTimeout)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, within, errTooLong)
	defer cancel()
	bounded, end := context.WithCancelCause(bounded)
	defer end(nil)
	made.Worked, err = e.Worker.Work(bounded, Job{
		Task: one.task, Repository: from, Model: one.model, Number: one.number, Try: made.Tries, Receipt: one.check.Expected.Receipt,
		Spent: func(cost llm.Money) error { return e.spend(one, cost, end) },
	})
	made.Seconds = e.Now().Sub(began).Seconds()
	if errors.Is(context.Cause(bounded), errBudget) && (err != nil || made.Outcome != string(task.Done)) {
		return made, errBudget
	}
	if errors.Is(context.Cause(bounded), errTooLong) {
		made.Outcome, made.Reason, err = string(task.Failed), errTooLong.Error(), nil
	}
	if err != nil {
		return made, err
	}
	err = e.score(ctx, one, from, &made)
	return made, err
}

// repository makes the repository of a task, without the future, in a new folder.
func (e *Evaluation) repository(ctx context.Context, t taskset.Task) (*source.Repository, func(), error) {
	folder, err := os.MkdirTemp(e.Dir, "task-")
	if err != nil {
		return nil, nil, task.Wrap(task.DataDir, err, "no folder for the work can be made")
	}
	remove := func() { _ = workdir.Remove(folder) } // what is left goes with the next evaluation
	made, err := source.Strip(ctx, t.Repository, t.Base, filepath.Join(folder, "repository.git"))
	if err != nil {
		remove()
		return nil, nil, err
	}
	return made, remove, nil
}

// Choose keeps some tasks of a set, and leaves others out. NotFound names one that is not there.
func Choose(set taskset.Set, only, leaveOut []string) (taskset.Set, error) {
	for _, id := range slices.Concat(only, leaveOut) {
		if !slices.ContainsFunc(set.Tasks, func(t taskset.Task) bool { return t.ID == id }) {
			return set, task.Errorf(task.NotFound, "there is no task %q in the set", id)
		}
	}
	set.Tasks = slices.DeleteFunc(slices.Clone(set.Tasks), func(t taskset.Task) bool {
		return len(only) > 0 && !slices.Contains(only, t.ID) || slices.Contains(leaveOut, t.ID)
	})
	if len(set.Tasks) == 0 {
		return set, task.Errorf(task.Invalid, "no task is left")
	}
	return set, nil
}
