package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// checkup checks what an agent needs for its tasks: the disk, the sandbox and the models.
type checkup struct {
	engine  sandbox.Engine
	spec    sandbox.Spec // of a sandbox as most runs have it, without the workspace
	folders []string     // that are written; in the first a sandbox has its workspace
	models  []modelInUse
	log     *slog.Logger
}

// modelInUse is a model that tasks use.
type modelInUse struct {
	config.LLM

	general  bool        // tasks without a model of their role use it
	fallback *config.LLM // what answers while it is down or out of quota; nil if nothing does
}

func newCheckup(c config.Config, engine sandbox.Engine, owner string, folders []string, log *slog.Logger) checkup {
	network := sandbox.Policy(c.Sandbox.Network.Setup)
	if onlyPrograms(c) {
		network = networkOf(c)("")
	}
	return checkup{
		engine: engine, folders: folders, models: modelsInUse(c), log: log,
		spec: sandbox.Spec{Owner: owner, Task: agent.CheckTask, Image: imageOf(c), Network: network, Limits: sandboxLimits(c.Sandbox)},
	}
}

// onlyPrograms reports whether no task is done with a model that is configured here.
func onlyPrograms(c config.Config) bool {
	return len(c.Executors.Development) > 0 && len(c.Executors.Review) > 0
}

// modelsInUse are the models that tasks use, each once. A script is none: it has no key, and
// every question would count as one of its own.
func modelsInUse(c config.Config) []modelInUse {
	if onlyPrograms(c) {
		return nil
	}
	known := map[string]bool{} // by place
	var models []modelInUse
	addModel := func(model modelInUse) {
		if place := model.Place(); model.Provider != "script" && model.Lacking() == "" && !known[place] {
			known[place] = true
			models = append(models, model)
		}
	}
	add := func(general bool, names ...string) {
		model := modelInUse{LLM: c.ModelFor(names...), general: general}
		if second, configured := c.FallbackFor(names...); configured && second.Lacking() == "" {
			model.fallback = &second
		}
		addModel(model)
	}
	for _, role := range append([]string{""}, slices.Sorted(maps.Keys(c.Roles))...) { // the general ones first
		for _, phase := range task.Phases {
			add(role == "", role, string(phase))
		}
		if role == "" {
			add(true, config.SummaryModel)
		}
		add(false, role, config.ReviewModel)
	}
	if second, configured := c.FallbackFor(); configured {
		addModel(modelInUse{LLM: second})
	}
	return models
}

// check implements [agent.Agent]'s Check. A model in doubt is asked alone. If it is that of some
// roles, the agent can do the tasks of others.
func (c checkup) check(ctx context.Context, doubt *agent.UnableError) error {
	if err := c.checkDisk(); err != nil || doubt != nil && doubt.Reason == task.ReasonDiskNotWritable {
		return err
	}
	if err := c.checkSandbox(ctx, doubt); err != nil {
		return err
	}
	return c.checkModels(ctx, doubt)
}

// checkModels asks the models.
func (c checkup) checkModels(ctx context.Context, doubt *agent.UnableError) error {
	asking := answers{}
	var unknown error // of models that could not be asked
	for _, model := range c.models {
		if !model.concerns(doubt) {
			continue
		}
		err := asking.of(ctx, model.LLM)
		unable := agent.UnableOf(err)
		switch {
		case model.fallback != nil && llm.KindOf(err).TakesOver() && works(asking.of(ctx, *model.fallback)):
			c.log.WarnContext(ctx, "the model is out; the fallback answers", "model", model.Model, "error", err)
		case unable != nil && doubt == nil && !model.general:
			c.log.WarnContext(ctx, "the model of a role, of reviews or the fallback does not work; tasks that need it will fail",
				"model", model.Model, "reason", unable.Reason, "error", unable)
		case unable != nil:
			return fmt.Errorf("check the model %s: %w", model.Model, &agent.UnableError{
				Reason: unable.Reason, Provider: model.Provider, Model: model.Model, Partial: !model.general, Err: unable.Err,
			})
		case llm.KindOf(err).Retry() || ctx.Err() != nil:
			unknown = errors.Join(unknown, err)
		}
	}
	return unknown
}

// answers are what models answered in one check, by place: each is asked once.
type answers map[string]error

func (a answers) of(ctx context.Context, model config.LLM) error {
	place := model.Place()
	if _, asked := a[place]; !asked {
		a[place] = ask(ctx, model)
	}
	return a[place]
}

// works reports whether a model that answered this can be used. That it did not take the short
// question says nothing about others.
func works(err error) bool {
	kind := llm.KindOf(err)
	return err == nil || kind != "" && !kind.Retry() && agent.UnableOf(err) == nil
}

// concerns reports whether the model has to be asked for what is in doubt. Of a fallback in doubt
// it matters whether the models that it is for answer.
func (m modelInUse) concerns(doubt *agent.UnableError) bool {
	switch {
	case doubt == nil:
		return true
	case doubt.Reason == task.ReasonNoSandbox:
		return false
	case doubt.Model == "":
		return m.general
	default:
		return isIn(m.LLM, doubt) || m.fallback != nil && isIn(*m.fallback, doubt)
	}
}

func isIn(model config.LLM, doubt *agent.UnableError) bool {
	return model.Provider == doubt.Provider && model.Model == doubt.Model
}

// checkDisk checks whether the folders of the agent can be written.
func (c checkup) checkDisk() error {
	for _, folder := range c.folders {
		if err := workdir.TestWrite(folder); err != nil {
			return &agent.UnableError{Reason: task.ReasonDiskNotWritable, Err: err}
		}
	}
	return nil
}

// checkSandbox checks whether sandboxes can be started. If that is in doubt, one is started with
// the image of the configuration: the one that failed may be a repository's choice, and says
// nothing about other tasks. That there is no such image is no matter of the machine.
func (c checkup) checkSandbox(ctx context.Context, doubt *agent.UnableError) error {
	err := c.engine.Check(ctx)
	if err != nil && ctx.Err() == nil {
		return &agent.UnableError{Reason: task.ReasonNoSandbox, Err: err}
	}
	if err == nil && doubt != nil && doubt.Reason == task.ReasonNoSandbox {
		err = sandbox.StartError(c.start(ctx))
	}
	if code := task.CodeOf(err); code == task.NotFound || code == task.Invalid {
		return nil
	}
	return err
}

// stopWithin is how long a sandbox has to end.
const stopWithin = 30 * time.Second

// start starts a sandbox, and stops it. Once it has started, sandboxes can be started, whatever
// becomes of it: one that does not end is removed with other leftovers.
func (c checkup) start(ctx context.Context) (err error) {
	dir := checkFolder(c.folders[0])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	workspace, err := os.MkdirTemp(dir, "check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, workdir.Remove(workspace)) }()
	spec := c.spec
	spec.Workspace = workspace
	box, err := c.engine.Start(ctx, spec)
	if err != nil {
		return err
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := box.Stop(stopping); err != nil {
		c.log.WarnContext(ctx, "failed to stop the sandbox of a check", "error", err)
	}
	return nil
}

// ask makes one short call to a model, as toryo doctor --online does. It is not counted against
// the budget, and is not tried again.
func ask(ctx context.Context, chosen config.LLM) error { return askThrough(ctx, chosen, nil) }

// askThrough is ask by a transport; nil means the standard one.
func askThrough(ctx context.Context, chosen config.LLM, through http.RoundTripper) error {
	model, err := connectThrough(chosen, through)
	if err != nil {
		return err
	}
	_, err = model.Chat(ctx, llm.Request{Messages: []llm.Message{llm.UserText("Answer with the word yes.")}, MaxTokens: checkTokens}, nil)
	return err
}

// checkTokens is the longest answer to a check: less is refused by some models.
const checkTokens = 16

// checkFolder is where workspaces of checks are, in the folder of an agent.
func checkFolder(agentFolder string) string { return filepath.Join(agentFolder, "checks") }

// sweepChecks removes the workspaces of checks of processes that were killed.
func sweepChecks(agentFolder string) error {
	if err := workdir.Remove(checkFolder(agentFolder)); err != nil {
		return task.Wrap(task.DataDir, err, "workspaces of earlier checks cannot be removed")
	}
	return nil
}
