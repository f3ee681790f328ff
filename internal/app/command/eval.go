package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/evaluation"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/history"
	"github.com/toryo-dev/toryo/internal/eval/report"
	"github.com/toryo-dev/toryo/internal/eval/tally"
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
	history  int
	repo     string
	forge    string
	out      string
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
  toryo eval terminal-bench/tasks --only hello-world --allow-network
  toryo eval --from-history 20 --repo ~/code/app --forge github:team/app
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
	f.StringVar(&o.out, "out", "", "`DIR` for the results; an evaluation that was interrupted goes on there (default eval-NAME)")
	f.BoolVar(&o.work.Fresh, "fresh", false, "forget the results that are in the folder")
	f.BoolVar(&o.work.OnlyCheck, "check", false, "only check the tasks: the right change must pass, no change must not")
	f.StringArrayVar(&o.only, "only", nil, "only the task with this `ID`; may be given several times")
	f.StringArrayVar(&o.leaveOut, "leave-out", nil, "without the task with this `ID`; may be given several times")
	f.StringVar(&o.load.Repositories, "repositories", "", "`DIR` with clones of the repositories, as owner/name or owner__name")
	f.StringVar(&o.load.SHA256, "sha256", "", "what the `HASH` of the set's file has to be")
	f.IntVar(&o.history, "from-history", 0, "the last `N` pull requests that were merged in a repository, in place of a set; their tests are the hidden ones")
	f.StringVar(&o.repo, "repo", ".", "`PATH` of the repository, for --from-history")
	f.StringVar(&o.forge, "forge", "", "read what these pull requests were for from a `FORGE:OWNER/NAME` of the configuration; else the messages of the commits say it")
	f.Float64Var(&o.work.Budget, "budget", 0, "end when everything in the folder has cost this `AMOUNT`")
	f.DurationVar(&o.work.Within, "run-timeout", 2*time.Hour, "how long one run may take")
	f.DurationVar(&o.work.TestTimeout, "test-timeout", 30*time.Minute, "how long the hidden tests may take")
	f.BoolVar(&o.work.AllowNetwork, "allow-network", false, "let task folders reach the network: when their images are built, and in tests and solutions of tasks that ask for it")
	f.StringVar(&o.work.Play, "play", "", "try this command without a model: a script plays one that makes the right change (gold), that for half of the tasks (half), or nonsense (nonsense)")
	f.BoolVar(&o.compare, "compare", false, "compare the results in two folders, DIR or DIR@MODEL each, and say whether the difference is real")
	return c
}

const evalHelp = `Run each task of a set with the configured models through the whole program (plan,
environment, execution, verification), score what comes of it with hidden tests in a fresh
sandbox, and write a report.

TASKS is a file of SWE-bench rows (.jsonl or .json), or a folder with one, or a task folder
of Harbor or Terminal-Bench (task.toml, instruction.md), or a folder of such folders, which
need a Docker Engine. With --from-history the tasks are pull requests that a team has merged
itself.

Before anything counts each task is checked: the change that people made has to pass, and no
change must not. Tasks that fail the check are left out and named. Models work on a
repository that has the base commit and what came before it, and nothing else.`

// arguments checks how many there are.
func (o *evalOptions) arguments(c *cobra.Command, args []string) error {
	switch {
	case o.compare:
		return cobra.ExactArgs(2)(c, args)
	case o.history != 0:
		return cobra.NoArgs(c, args)
	}
	return cobra.ExactArgs(1)(c, args)
}

func (o *evalOptions) run(ctx context.Context, args []string) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	if o.compare {
		return o.comparison(args)
	}
	c, err := o.settings.Load(o.Program)
	if err != nil {
		return err
	}
	c = evaluation.WithKeys(c, o.Environ, o.work.Models)
	var set taskset.Set
	if o.history == 0 { // before anything is made
		if set, err = taskset.Load(args[0], o.load); err != nil {
			return err
		}
	}
	if o.work.Out, err = o.open(args); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.work.Out.Close()) }()
	if o.history > 0 {
		if set, err = o.merged(ctx, c); err != nil {
			return err
		}
	}
	if set, err = eval.Choose(set, o.only, o.leaveOut); err != nil {
		return err
	}
	traces, err := site.StartTelemetry(o.Program, c, "eval")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.StopTelemetry(ctx, traces)) }()
	o.work.Program, o.work.Config, o.work.Log, o.work.Set = o.Program, c, site.QuietLog(o.Program, c), set
	results, err := evaluation.Run(ctx, o.work)
	if err != nil {
		return err
	}
	out := eval.Folder(o.out)
	if !o.work.OnlyCheck {
		if err := report.Write(out, results); err != nil {
			return err
		}
		fmt.Fprintf(o.Stderr, "the results are in %s; %s is a page with plots\n", out, filepath.Join(o.out, eval.PageFile))
	}
	return errors.Join(report.Print(o.Stdout, results), ended(results))
}

// ended is an error if there is no result that counts.
func ended(results eval.Results) error {
	if !slices.ContainsFunc(results.Checks, func(c eval.Check) bool { return c.Usable }) {
		return task.Errorf(task.Invalid, "no task of the set can be used")
	}
	if results.Stopped != "" {
		return task.Errorf(task.OverBudget, "%s", results.Stopped).WithHint("call it again with a higher --budget, and it goes on")
	}
	return nil
}

// comparison says whether the difference between two evaluations is real.
func (o *evalOptions) comparison(args []string) error {
	var read [2]eval.Results
	var models [2]string
	for i, arg := range args {
		results, model, err := resultsOf(arg)
		if err != nil {
			return err
		}
		if results.Play != "" {
			fmt.Fprintf(o.Stdout, "note: in %s a script has played the model (%s)\n", arg, results.Play)
		}
		read[i], models[i] = results, model
	}
	compared, err := tally.Compare(read[0], read[1], models[0], models[1])
	if err != nil {
		return err
	}
	if models[0] == models[1] {
		compared.A, compared.B = args[0], args[1]
	}
	fmt.Fprintln(o.Stdout, compared.Sentence())
	fmt.Fprintf(o.Stdout, "only %s: %d tasks; only %s: %d tasks\n", compared.A, compared.OnlyA, compared.B, compared.OnlyB)
	if compared.Differing > 0 {
		fmt.Fprintf(o.Stdout, "note: %d tasks were scored in different environments or with different tests\n", compared.Differing)
	}
	return nil
}

// resultsOf are the results that DIR or DIR@MODEL names, and the model. A folder may have an @ in
// its name, and so may a model.
func resultsOf(arg string) (eval.Results, string, error) {
	results, err := eval.Folder(arg).Results()
	folder, model := arg, ""
	for at := len(arg) - 1; err != nil && at > 0; at-- {
		if arg[at] != '@' {
			continue
		}
		if read, other := eval.Folder(arg[:at]).Results(); other == nil {
			results, err, folder, model = read, nil, arg[:at], arg[at+1:]
		}
	}
	switch {
	case err != nil:
		return eval.Results{}, "", err
	case model == "" && len(results.Models) == 1:
		return results, results.Models[0], nil
	case model == "":
		return eval.Results{}, "", task.Errorf(task.Usage, "%s has results of several models: %s", folder, strings.Join(results.Models, ", ")).WithHint("name one, as %s@%s", folder, results.Models[0])
	case !slices.Contains(results.Models, model):
		return eval.Results{}, "", task.Errorf(task.NotFound, "%s has no results of the model %s, but of %s", folder, model, strings.Join(results.Models, ", "))
	}
	return results, model, nil
}

// merged are the pull requests that were merged.
func (o *evalOptions) merged(ctx context.Context, c config.Config) (set taskset.Set, err error) {
	from := history.Options{Repository: o.repo, Most: o.history, Skipped: func(what, why string) {
		_, _ = fmt.Fprintf(o.Stderr, "skipped: %s: %s\n", cli.OneLine(what), why) // progress is a courtesy
	}}
	if o.forge != "" {
		if from.Text, err = evaluation.Asked(c, o.forge); err != nil {
			return taskset.Set{}, err
		}
	}
	set, kept, err := o.work.Out.History(ctx, from, o.work.Fresh, o.work.OnlyCheck)
	if kept && err == nil {
		_, _ = fmt.Fprintf(o.Stderr, "the %d tasks are those of the first call; --fresh reads the history again\n", len(set.Tasks)) // the same
	}
	return set, err
}

// open opens the folder of the results. If none is named, the set says its name.
func (o *evalOptions) open(args []string) (*evaluation.Folder, error) {
	if o.out == "" {
		of, prefix := o.repo, "eval-history-"
		if o.history == 0 {
			of, prefix = args[0], "eval-"
		}
		of, err := filepath.Abs(of)
		if err != nil {
			return nil, task.Wrap(task.Usage, err, "there is no such folder")
		}
		o.out = prefix + eval.FileName(strings.TrimSuffix(filepath.Base(of), filepath.Ext(of)))
	}
	return evaluation.Open(o.out)
}

// check refuses flags that make no sense.
func (o *evalOptions) check() error {
	switch {
	case o.history < 0 || o.history > taskset.MaxTasks:
		return task.Errorf(task.Usage, "--from-history is a number of pull requests")
	case o.work.Attempts < 1 || o.work.Parallel < 1:
		return task.Errorf(task.Usage, "--attempts and --parallel are 1 at least")
	case o.work.Budget < 0 || o.work.Within <= 0 || o.work.TestTimeout <= 0:
		return task.Errorf(task.Usage, "--budget, --run-timeout and --test-timeout cannot be negative")
	case o.work.Play != "" && !slices.Contains(evaluation.Plays, o.work.Play):
		return task.Errorf(task.Usage, "--play is %s", strings.Join(evaluation.Plays, ", "))
	}
	return nil
}
