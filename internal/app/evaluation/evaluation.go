package evaluation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/env"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Options say what is evaluated and how.
type Options struct {
	Program site.Program
	Config  config.Config
	Log     *slog.Logger

	Set         taskset.Set
	Models      []string // names of llm_overrides, or provider:model; none means the configured one
	Play        string
	Attempts    int
	Parallel    int
	Budget      float64
	Within      time.Duration
	TestTimeout time.Duration
	Out         string
	Fresh       bool
	OnlyCheck   bool
}

// The names in the folder of the results.
const (
	lockFile       = "lock"
	journalsFolder = "journals"
	workFolder     = "work"
)

// Run evaluates. It returns what there is, also when the budget has ended it.
func Run(ctx context.Context, o Options) (results eval.Results, err error) {
	out, unlock, err := take(o.Out)
	if err != nil {
		return eval.Results{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	models, err := o.models()
	if err != nil {
		return eval.Results{}, err
	}
	folder := eval.Folder(out)
	if !o.OnlyCheck { // which makes no attempts that could be mixed with others
		if err := folder.Begin(o.plan(models), o.Fresh); err != nil {
			return eval.Results{}, err
		}
	}
	o.Config.DataDir = filepath.Join(o.Config.DataDir, "eval") // apart from what a server keeps
	engine, err := o.engine(ctx)
	if err != nil {
		return eval.Results{}, err
	}
	work := filepath.Join(out, workFolder)
	if err := errors.Join(workdir.Remove(work), os.MkdirAll(work, 0o700)); err != nil { // nobody else uses it
		return eval.Results{}, task.Wrap(task.DataDir, err, "the folder for the work cannot be used")
	}
	defer func() { _ = workdir.Remove(work) }() // or the next time
	scorer, err := o.scorer(engine, work)
	if err != nil {
		return eval.Results{}, err
	}
	names := make([]string, len(models))
	configs := map[string]config.Config{}
	for i, model := range models {
		names[i], configs[model.name] = model.name, model.config
	}
	run := &eval.Evaluation{
		Set: o.Set, Models: names, Attempts: o.Attempts, Parallel: o.Parallel, Budget: llm.MoneyOf(o.Budget), Within: o.Within,
		Out: folder, Cache: o.Config.DataDir, Dir: work, Scorer: scorer, OnlyCheck: o.OnlyCheck, Now: o.Program.Now,
		Worker:   Worker{Program: o.Program, Configs: configs, Engine: engine, Journals: filepath.Join(out, journalsFolder), Play: o.Play, Log: o.Log},
		Progress: func(line string) { _, _ = fmt.Fprintln(o.Program.Stderr, line) }, // progress is a courtesy
	}
	results, err = run.Run(ctx)
	results.Play = o.Play
	return results, err
}

// take makes the folder of the results and keeps other processes out of it.
func take(path string) (out string, unlock func() error, err error) {
	if out, err = filepath.Abs(path); err == nil {
		err = os.MkdirAll(out, 0o750)
	}
	if err != nil {
		return "", nil, task.Wrap(task.DataDir, err, "the folder for the results cannot be made")
	}
	lock := flock.New(filepath.Join(out, lockFile), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err != nil {
		return "", nil, task.Wrap(task.DataDir, err, "the folder for the results cannot be used")
	}
	if !locked {
		return "", nil, task.Errorf(task.Conflict, "another evaluation goes on in %s", out).WithHint("wait for it, or choose another folder with --out")
	}
	return out, lock.Close, nil
}

// named is a model by its name, and the configuration with it.
type named struct {
	name   string
	config config.Config
}

// models are the models to be tried. One that is named does all phases: what llm_overrides say
// of phases and roles would mix models.
func (o Options) models() ([]named, error) {
	if o.Play != "" {
		if len(o.Models) > 0 {
			return nil, task.Errorf(task.Usage, "--play is in place of --model")
		}
		return []named{{"play-" + o.Play, o.Config}}, nil
	}
	if len(o.Models) == 0 {
		llm := o.Config.ModelFor()
		name := strings.Trim(llm.Provider+":"+llm.Model, ":")
		return o.checked([]named{{name, o.Config}})
	}
	var models []named
	for _, name := range o.Models {
		if slices.ContainsFunc(models, func(n named) bool { return eval.FileName(n.name) == eval.FileName(name) }) {
			return nil, task.Errorf(task.Usage, "the model %s is named twice", name)
		}
		c, err := withModel(o.Config, name)
		if err != nil {
			return nil, err
		}
		models = append(models, named{name, c})
	}
	return o.checked(models)
}

// withModel is the configuration with a model for everything.
func withModel(c config.Config, name string) (config.Config, error) {
	if _, found := c.LLMOverrides[name]; found {
		c.LLM = c.ModelFor(name)
		c.LLMOverrides = nil
		return c, nil
	}
	provider, model, found := strings.Cut(name, ":")
	if !found || provider == "" || model == "" {
		return c, task.Errorf(task.Usage, "%q is no model", name).WithHint("name a section of llm_overrides, or give PROVIDER:MODEL")
	}
	const own = "\x00" // no name in a file
	c.LLMOverrides = map[string]config.ModelOverride{own: {Provider: provider, Model: model}}
	c.LLM = c.ModelFor(own)
	c.LLMOverrides = nil
	return c, nil
}

// checked refuses models that cannot be asked, and a budget that cannot be kept.
func (o Options) checked(models []named) ([]named, error) {
	if o.OnlyCheck {
		return models, nil
	}
	for _, model := range models {
		if _, err := site.Connect(model.config.ModelFor()); err != nil {
			return nil, err
		}
		if o.Budget > 0 && model.config.ModelFor().Prices == (config.Prices{}) {
			return nil, task.Errorf(task.BadConfig, "the budget cannot be kept: there are no prices of the model %s", model.name).WithHint("set llm.prices")
		}
	}
	return models, nil
}

// plan is what the attempts in a folder have in common.
func (o Options) plan(models []named) eval.Plan {
	plan := eval.Plan{Set: o.Set.Name, SetHash: o.Set.Hash, Play: o.Play, Models: map[string]string{}}
	for _, model := range models {
		c := model.config
		c.LLM.APIKey, c.LLM.APIKeyFile = "", "" // another key is the same model
		settings, err := json.Marshal([]any{c.LLM, c.LLMOverrides, c.Roles, c.Sandbox, c.CommandExecutor, c.Budget, c.ContextStorage, c.PromptsDir, c.Language, o.TestTimeout, o.Within})
		if err != nil { // plain values always can be encoded
			settings = []byte(model.name)
		}
		sum := sha256.Sum256(settings)
		plan.Models[model.name] = hex.EncodeToString(sum[:])
	}
	return plan
}

// engine is the sandbox engine. Sets come from others, so that a weak one is not enough.
func (o Options) engine(ctx context.Context) (sandbox.Engine, error) {
	engine, _, err := site.EnginesOf(o.Config, o.Log).Choose(ctx, o.Config.Sandbox.Kind)
	if err != nil {
		return nil, err
	}
	if err := ReapOld(ctx, engine, o.Program.Now()); err != nil {
		o.Log.WarnContext(ctx, "failed to remove the sandboxes of an earlier evaluation", "error", err)
	}
	return engine, nil
}

// scorer sets environments up without a model, so that a score depends on nothing but the files.
func (o Options) scorer(engine sandbox.Engine, work string) (eval.Scorer, error) {
	table, err := site.EnvironmentsOf(o.Config)
	if err != nil {
		return eval.Scorer{}, err
	}
	c := env.Weakened(o.Config.Sandbox, engine)
	setup := environment.Setup{
		Table: table, Engine: engine, Wait: lifecycle.Sleep, Log: slog.New(slog.DiscardHandler), CommandTimeout: c.CommandTimeout, OutputLimit: int(c.OutputLimit),
		SetupNetwork: sandbox.Policy(c.Network.Setup), WorkNetwork: sandbox.NoNetwork,
	}
	if c.Snapshots.Enabled {
		setup.Snapshots = int64(c.Snapshots.MaxSize)
	}
	limits := sandbox.Limits{Memory: int64(c.Memory), Processes: c.PIDs, CPUs: c.CPUs, Disk: int64(c.Disk)}
	return eval.Scorer{Setup: setup, Spec: sandbox.Spec{Owner: owner, Limits: limits}, Timeout: o.TestTimeout, Dir: work}, nil
}
