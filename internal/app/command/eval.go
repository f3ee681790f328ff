package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/evaluation"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/task"
)

type evalOptions struct {
	site.Program
	settings cli.Settings
	work     evaluation.Options
	load     taskset.Options
	only     []string
	leaveOut []string
	compare  bool
}

// Eval is the command toryo eval.
func Eval(p site.Program) *cobra.Command {
	o := &evalOptions{Program: p}
	c := &cobra.Command{
		Use:   "eval TASKS",
		Short: "Run a set of tasks with models and say what they resolve and cost",
		Long:  evalHelp,
		Example: `  toryo eval tasks.jsonl --check
  toryo eval tasks.jsonl --model small --model large --attempts 3 --out eval-may
  toryo eval tasks.jsonl --play gold
  toryo eval --compare eval-april eval-may`,
		Args: o.arguments,
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	o.settings.Own()
	o.settings.Bind(c, cli.DataFlag, sandboxFlag)
	f := c.Flags()
	f.StringArrayVar(&o.work.Models, "model", nil, "a `NAME` of llm_overrides, or PROVIDER:MODEL; may be given several times (default: the configured model)")
	f.IntVar(&o.work.Attempts, "attempts", 1, "how many attempts each model makes at each task")
	f.IntVar(&o.work.Parallel, "parallel", 1, "how many attempts are made at a time")
	f.StringVar(&o.work.Out, "out", "", "`DIR` for the results; an evaluation that was interrupted goes on there (default eval-NAME)")
	f.BoolVar(&o.work.Fresh, "fresh", false, "forget the results that are in the folder")
	f.BoolVar(&o.work.OnlyCheck, "check", false, "only check the tasks: the right change must pass, no change must not")
	f.StringArrayVar(&o.only, "only", nil, "only the task with this `ID`; may be given several times")
	f.StringArrayVar(&o.leaveOut, "leave-out", nil, "without the task with this `ID`; may be given several times")
	f.StringVar(&o.load.Repositories, "repositories", "", "`DIR` with clones of the repositories, as owner/name or owner__name")
	f.StringVar(&o.load.SHA256, "sha256", "", "what the `HASH` of the set's file has to be")
	f.Float64Var(&o.work.Budget, "budget", 0, "begin no further attempt when all together have cost this `AMOUNT`")
	f.DurationVar(&o.work.Within, "run-timeout", 2*time.Hour, "how long one run may take")
	f.DurationVar(&o.work.TestTimeout, "test-timeout", 30*time.Minute, "how long the hidden tests may take")
	f.StringVar(&o.work.Play, "play", "", "try this command without a model: a script plays one that makes the right change (gold), that for half of the tasks (half), or nonsense (nonsense)")
	f.BoolVar(&o.compare, "compare", false, "compare the results in two folders")
	return c
}

const evalHelp = `Run each task of a set with the configured models through the whole program (plan,
environment, execution, verification), score what comes of it with hidden tests in a fresh
sandbox, and write a report.

TASKS is a file of SWE-bench rows (.jsonl or .json), a folder with one, a task folder as
Harbor and Terminal-Bench have them, or a folder of those.

Before anything counts each task is checked: the change that people made has to pass, and no
change must not. Tasks that fail the check are left out and named. Models work on a
repository that has the base commit and what came before it, and nothing else.`

// arguments checks how many there are.
func (o *evalOptions) arguments(c *cobra.Command, args []string) error {
	if o.compare {
		return cobra.ExactArgs(2)(c, args)
	}
	return cobra.ExactArgs(1)(c, args)
}

func (o *evalOptions) run(ctx context.Context, args []string) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	c, err := o.settings.Load(o.Program)
	if err != nil {
		return err
	}
	set, err := taskset.Load(args[0], o.load)
	if err != nil {
		return err
	}
	if set, err = eval.Choose(set, o.only, o.leaveOut); err != nil {
		return err
	}
	if o.work.Out == "" {
		o.work.Out = "eval-" + strings.TrimSuffix(eval.FileName(set.Name), filepath.Ext(set.Name))
	}
	report, err := site.StartTelemetry(o.Program, c, "eval")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.StopTelemetry(ctx, report)) }()
	o.work.Program, o.work.Config, o.work.Log, o.work.Set = o.Program, c, site.QuietLog(o.Program, c), set
	results, err := evaluation.Run(ctx, o.work)
	if err != nil {
		return err
	}
	data, err := json.Marshal(results)
	fmt.Fprintln(o.Stdout, string(data))
	return err
}

// check refuses flags that make no sense.
func (o *evalOptions) check() error {
	switch {
	case o.work.Attempts < 1 || o.work.Parallel < 1:
		return task.Errorf(task.Usage, "--attempts and --parallel are 1 at least")
	case o.work.Budget < 0 || o.work.Within <= 0 || o.work.TestTimeout <= 0:
		return task.Errorf(task.Usage, "--budget, --run-timeout and --test-timeout cannot be negative")
	case o.work.Play != "" && !slices.Contains(evaluation.Plays, o.work.Play):
		return task.Errorf(task.Usage, "--play is %s", strings.Join(evaluation.Plays, ", "))
	}
	return nil
}
