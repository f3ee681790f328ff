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
	"github.com/toryo-dev/toryo/internal/eval/harbor"
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
	// AllowNetwork lets task folders reach the network: when their images are built, and when
	// they are tested, if they ask for it.
	AllowNetwork bool
	Out          *Folder
	Fresh        bool
	OnlyCheck    bool
}

// The names in the folder of the results.
const (
	lockFile   = "lock"
	tasksFile  = "tasks.jsonl" // of a history
	workPrefix = "toryo-work-"
)

// Folder is the folder of the results, which no other process uses.
type Folder struct {
	path string
	lock *flock.Flock
}

// Open makes the folder of the results and keeps other processes out of it. It fails with
// Conflict if the folder has other things in it.
func Open(path string) (*Folder, error) {
	out, err := filepath.Abs(path)
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "the folder for the results cannot be made")
	}
	if err := eval.Folder(out).Check(lockFile); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(out, lockFile), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "the folder for the results cannot be used")
	}
	if !locked {
		return nil, task.Errorf(task.Conflict, "another evaluation goes on in %s", out).WithHint("wait for it, or choose another folder with --out")
	}
	if err := eval.Folder(out).Mark(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Folder{path: out, lock: lock}, nil
}

// Close lets others use the folder.
func (f *Folder) Close() error { return f.lock.Close() }

// Work makes a folder for files that go again, and removes those of processes that were killed.
func (f *Folder) Work() (string, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return "", task.Wrap(task.DataDir, err, "the folder for the results cannot be read")
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), workPrefix) && entry.IsDir() {
			if err := workdir.Remove(filepath.Join(f.path, entry.Name())); err != nil {
				return "", task.Wrap(task.DataDir, err, "the work of an earlier evaluation cannot be removed")
			}
		}
	}
	work, err := os.MkdirTemp(f.path, workPrefix)
	if err != nil {
		return "", task.Wrap(task.DataDir, err, "no folder for the work can be made")
	}
	return work, nil
}

// Run evaluates. It returns what there is, also when the budget has ended it.
func Run(ctx context.Context, o Options) (results eval.Results, err error) {
	models, err := o.models()
	if err != nil {
		return eval.Results{}, err
	}
	plan, err := o.plan(models)
	if err != nil {
		return eval.Results{}, err
	}
	if err := o.begin(plan, false); err != nil { // before anything is built
		return eval.Results{}, err
	}
	o.Config.DataDir = filepath.Join(o.Config.DataDir, "eval") // apart from what a server keeps
	engine, err := o.engine(ctx)
	if err != nil {
		return eval.Results{}, err
	}
	work, err := o.Out.Work()
	if err != nil {
		return eval.Results{}, err
	}
	defer func() { _ = workdir.Remove(work) }() // or the next time
	scorer, err := o.scorer(engine, work)
	if err != nil {
		return eval.Results{}, err
	}
	settings, err := o.settings()
	if err != nil {
		return eval.Results{}, err
	}
	var folders harbor.Runner
	if hasFolders(o.Set) {
		if folders, err = o.folders(engine, scorer.Spec.Limits); err != nil {
			return eval.Results{}, err
		}
		if o.Set, err = prepared(ctx, o.Set, folders, o.Parallel, work); err != nil {
			return eval.Results{}, err
		}
	}
	if err := o.begin(plan, true); err != nil { // not before it is known that anything can run
		return eval.Results{}, err
	}
	names := make([]string, len(models))
	configs := map[string]config.Config{}
	for i, model := range models {
		names[i], configs[model.name] = model.name, model.config
	}
	run := &eval.Evaluation{
		Set: o.Set, Models: names, Attempts: o.Attempts, Parallel: o.Parallel, Budget: llm.MoneyOf(o.Budget), Within: o.Within,
		Out: eval.Folder(o.Out.path), Cache: o.Config.DataDir, Dir: work, Scorer: scorer, Folders: folders, OnlyCheck: o.OnlyCheck, Recheck: o.Fresh, Now: o.Program.Now,
		Settings: settings, Redact: o.Config.Redactor().String,
		Worker:   Worker{Program: o.Program, Configs: configs, Engine: engine, Journals: filepath.Join(o.Out.path, eval.JournalsFolder), Play: o.Play, Log: o.Log},
		Progress: func(line string) { _, _ = fmt.Fprintln(o.Program.Stderr, line) }, // progress is a courtesy
	}
	results, err = run.Run(ctx)
	results.Play = o.Play
	return results, err
}

// begin begins in the folder of the results, if it is to be made so. A check makes no attempts that
// could be mixed with others.
func (o Options) begin(plan eval.Plan, fresh bool) error {
	if o.OnlyCheck || o.Fresh != fresh {
		return nil
	}
	return eval.Folder(o.Out.path).Begin(plan, fresh)
}

// named is a model by its name, and the configuration with it.
type named struct {
	name   string
	config config.Config
}

// WithKeys is a configuration with the keys of the providers that --model names and that the
// configuration itself does not.
func WithKeys(c config.Config, environ, models []string) config.Config {
	var providers []string
	for _, name := range models {
		if _, found := c.LLMOverrides[name]; !found {
			provider, _, _ := strings.Cut(name, ":")
			providers = append(providers, provider)
		}
	}
	return c.WithVendorKeys(environ, providers...)
}

// models are the models to be tried. One that is named does all phases: what llm_overrides say
// of phases and roles would mix models. So would a fallback, whose answers would count as those
// of a model that is down, and whose key was given for the configured model.
func (o Options) models() ([]named, error) {
	o.Config.LLM.Fallback = config.ModelOverride{}
	if o.Play != "" {
		if len(o.Models) > 0 {
			return nil, task.Errorf(task.Usage, "--play is in place of --model")
		}
		return []named{{"play-" + o.Play, o.Config}}, nil
	}
	if len(o.Models) == 0 {
		llm := o.Config.ModelFor()
		name := strings.Trim(llm.Provider+":"+llm.Model, ":")
		if name == "" { // which is an error, unless the tasks are only checked
			name = "none"
		}
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
		if o.Budget <= 0 {
			continue
		}
		for _, name := range append(phases(), config.SummaryModel) {
			if model.config.ModelFor(name).Prices == (config.Prices{}) {
				return nil, task.Errorf(task.BadConfig, "the budget cannot be kept: there are no prices of the model %s for %s", model.name, name).WithHint("set llm.prices, or prices in llm_overrides.%s", name)
			}
		}
	}
	return models, nil
}

func phases() []string {
	names := make([]string, len(task.Phases))
	for i, phase := range task.Phases {
		names[i] = string(phase)
	}
	return names
}

// hash identifies values that can be encoded as JSON.
func hash(values ...any) (string, error) {
	data, err := json.Marshal(values)
	if err != nil {
		return "", task.Wrap(task.Internal, err, "the settings cannot be encoded")
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// settings identifies what scores depend on besides the task and the engine.
func (o Options) settings() (string, error) {
	return hash(site.Version(), confined(o.Config, taskset.Task{}).Sandbox, o.Config.CommandExecutor, o.AllowNetwork)
}

// plan is what the attempts in a folder have in common.
func (o Options) plan(models []named) (eval.Plan, error) {
	plan := eval.Plan{Set: o.Set.Name, SetHash: o.Set.Hash, Play: o.Play, Models: map[string]string{}}
	for _, model := range models {
		c := confined(model.config, taskset.Task{})
		c.LLM.APIKey, c.LLM.APIKeyFile, c.LLM.Variables = "", "", nil // another key is the same model
		overrides := map[string]config.ModelOverride{}
		for name, override := range c.LLMOverrides {
			override.APIKey, override.APIKeyFile = "", ""
			overrides[name] = override
		}
		prompts, err := promptsOf(c)
		if err != nil {
			return eval.Plan{}, err
		}
		plan.Models[model.name], err = hash(c.LLM, overrides, c.Sandbox, c.CommandExecutor, c.Budget, c.ContextStorage, c.CommentDetection, prompts, c.Language, o.TestTimeout, o.Within, o.AllowNetwork, site.Version())
		if err != nil {
			return eval.Plan{}, err
		}
	}
	return plan, nil
}

// The limits of files with prompts.
const (
	mostPrompts = 1000
	maxPrompt   = 1 << 20
)

// promptsOf are the files that replace built-in prompts, by name.
func promptsOf(c config.Config) (map[string]string, error) {
	if c.PromptsDir == "" {
		return nil, nil //nolint:nilnil // that there are none is no error
	}
	entries, err := os.ReadDir(c.PromptsDir)
	if err != nil {
		return nil, task.Wrap(task.BadConfig, err, "the prompts cannot be read").WithHint("check prompts_dir")
	}
	prompts := map[string]string{}
	for _, entry := range entries {
		info, err := os.Stat(filepath.Join(c.PromptsDir, entry.Name()))
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxPrompt || len(prompts) >= mostPrompts {
			continue // it is no prompt
		}
		data, err := os.ReadFile(filepath.Join(c.PromptsDir, entry.Name()))
		if err != nil {
			return nil, task.Wrap(task.BadConfig, err, "a prompt cannot be read").WithHint("check prompts_dir")
		}
		prompts[entry.Name()] = string(data)
	}
	return prompts, nil
}

// engine is the sandbox engine. Sets come from others, so that a weak one is not enough: it
// shows files and processes of this machine.
func (o Options) engine(ctx context.Context) (sandbox.Engine, error) {
	kind, err := o.kind()
	if err != nil {
		return nil, err
	}
	engine, warning, err := site.EnginesOf(o.Config, o.Log).Choose(ctx, kind)
	if err != nil && hasFolders(o.Set) {
		return nil, task.Wrap(task.CodeOf(err), err, "task folders need a Docker Engine").WithHint("install and start one, or name it with sandbox.container_engine")
	}
	if err != nil {
		return nil, err
	}
	if warning != "" {
		return nil, task.Errorf(task.NotReady, "the sandbox %s is too weak for tasks of others", engine.Name()).WithHint("use bubblewrap or Docker")
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
	c := env.Weakened(confined(o.Config, taskset.Task{}).Sandbox, engine)
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
