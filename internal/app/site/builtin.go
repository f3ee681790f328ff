package site

import (
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/app/env"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/mcp"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// BuiltIn makes the built-in executors from the configuration.
type BuiltIn struct {
	program Program
	config  config.Config
	engine  sandbox.Engine
	owner   string
	table   *environment.Table
	outages *llm.Outages
	log     *slog.Logger
}

// NewBuiltIn makes the built-in executors. It fails with NotReady if no model is
// configured: they cannot do anything without.
func NewBuiltIn(p Program, c config.Config, engine sandbox.Engine, owner string, outages *llm.Outages, log *slog.Logger) (*BuiltIn, error) {
	if lacks := c.LLM.Lacking(); lacks != "" {
		return nil, task.Errorf(task.NotReady, "there is no model to work with: %s", lacks).WithHint("%s", doctor.HintForModel(c.LLM))
	}
	table, err := EnvironmentsOf(c)
	if err != nil {
		return nil, err
	}
	c.Sandbox = env.Weakened(c.Sandbox, engine)
	return &BuiltIn{program: p, config: c, engine: engine, owner: owner, table: table, outages: outages, log: log}, nil
}

// Development is the executor of development tasks.
func (b *BuiltIn) Development() agent.Executor { return agent.BuiltIn{Options: b.options} }

// review is the executor of review tasks.
func (b *BuiltIn) review() agent.Executor {
	return agent.Reviewer{
		Model: func(role task.Role, ledger llm.Ledger) (llm.Model, error) {
			made, err := NewModels(b.config, ledger, b.outages, b.log)
			if err != nil {
				return nil, err
			}
			return made.Model(llm.Account{}, string(role), config.ReviewModel)
		},
		Instructions: func(name task.Role) (string, error) {
			role, err := b.role(name)
			return role.Text(name), err
		},
		Language: task.Language(b.config.Language),
		Prompts:  promptsOf(b.config),
	}
}

// options says how one run goes.
func (b *BuiltIn) options(run agent.Run) (phase.Options, error) {
	models, err := b.models(run)
	if err != nil {
		return phase.Options{}, err
	}
	byPhase, err := modelsOfPhases(models, run.Work.Role)
	if err != nil {
		return phase.Options{}, err
	}
	summarizer, err := models(config.SummaryModel)
	if err != nil {
		return phase.Options{}, err
	}
	role, err := b.role(run.Work.Role)
	if err != nil {
		return phase.Options{}, err
	}
	c := b.config
	return phase.Options{
		Model: func(phase task.Phase) llm.Model { return byPhase[phase] }, Summarizer: summarizer,
		Setup: b.setup(run), Spec: b.spec(run), Language: c.Language, Prompts: promptsOf(c),
		Role:     role,
		Servers:  b.servers(),
		OnHost:   mcp.Host{},
		Comments: commentChecks(c.CommentDetection),
		Storage:  phase.Storage{Threshold: c.ContextStorage.CompressionThreshold, KeepRecent: c.ContextStorage.KeepRecentMessages},
		Redactor: c.Redactor(), Log: run.Log,
	}, nil
}

// models gives the model for what the names say, paid from the budget of the run.
func (b *BuiltIn) models(run agent.Run) (func(names ...string) (llm.Model, error), error) {
	made, err := NewModels(b.config, agent.Ledger{Spending: run.Spending}, b.outages, run.Log)
	if err != nil {
		return nil, err
	}
	account := llm.Account{Task: run.Work.Task, Generation: run.Work.Generation}
	return func(names ...string) (llm.Model, error) { return made.Model(account, names...) }, nil
}

// modelsOfPhases makes the model of every phase: what the phase asks for goes over
// what the role does.
func modelsOfPhases(models func(names ...string) (llm.Model, error), role task.Role) (map[task.Phase]llm.Model, error) {
	byPhase := make(map[task.Phase]llm.Model)
	for _, phase := range task.Phases {
		model, err := models(string(role), string(phase))
		if err != nil {
			return nil, err
		}
		byPhase[phase] = model
	}
	return byPhase, nil
}

func (b *BuiltIn) setup(run agent.Run) environment.Setup {
	c := b.config.Sandbox
	made := environment.Setup{
		Table: b.table, Engine: b.engine, Wait: lifecycle.Sleep, Log: run.Log,
		CommandTimeout: c.CommandTimeout, OutputLimit: int(c.OutputLimit),
		SetupNetwork: sandbox.Policy(c.Network.Setup), WorkNetwork: networkOf(b.config)(run.Work.Role),
	}
	if c.Snapshots.Enabled {
		made.Snapshots = int64(c.Snapshots.MaxSize)
	}
	return made
}

func (b *BuiltIn) spec(run agent.Run) sandbox.Spec {
	return sandbox.Spec{
		Owner: b.owner, Task: run.Assignment.TaskID, Generation: run.Assignment.Generation,
		Workspace: run.Repository.Workspace(), Limits: sandboxLimits(b.config.Sandbox),
	}
}

// promptsOf are the files that replace built-in prompts, if there are any.
func promptsOf(c config.Config) fs.FS {
	if c.PromptsDir == "" {
		return nil
	}
	return os.DirFS(c.PromptsDir)
}

// role is what the configuration says of a role.
func (b *BuiltIn) role(name task.Role) (phase.Role, error) {
	configured := b.config.Roles[string(name)]
	role := phase.Role{Description: configured.Description, Tools: configured.Tools}
	if configured.PromptFile == "" {
		return role, nil
	}
	text, err := os.ReadFile(configured.PromptFile)
	if err != nil {
		return role, task.Wrap(task.BadConfig, err, "the prompt of the role cannot be read").WithHint("check roles.%s.prompt_file", name)
	}
	role.Prompt = string(text)
	return role, nil
}

// servers are the MCP servers of the configuration, in the order of their names.
func (b *BuiltIn) servers() []mcp.Server {
	var all []mcp.Server
	for _, name := range slices.Sorted(maps.Keys(b.config.MCPServers)) {
		one := b.config.MCPServers[name]
		all = append(all, mcp.Server{
			Name: name, Command: one.Command, Environment: b.program.passedOn(one.Environment), URL: one.URL,
			OnHost: !one.InSandbox, Timeout: one.Timeout,
		})
	}
	return all
}

func commentChecks(c config.CommentDetection) phase.CommentChecks {
	return phase.CommentChecks{Disabled: !c.Enabled, Every: c.CheckInterval}
}
