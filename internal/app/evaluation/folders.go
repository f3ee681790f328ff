package evaluation

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/env"
	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/harbor"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// hasFolders reports whether tasks of a set are task folders.
func hasFolders(set taskset.Set) bool {
	return slices.ContainsFunc(set.Tasks, func(t taskset.Task) bool { return t.Container != nil })
}

// kind is the sandbox that is asked for. Images of task folders are for containers.
func (o Options) kind() (string, error) {
	const containers = "docker"
	kind := o.Config.Sandbox.Kind
	if !hasFolders(o.Set) || kind == containers {
		return kind, nil
	}
	if kind != env.Automatic {
		return "", task.Errorf(task.Usage, "task folders need a Docker Engine, and the sandbox is %s", kind).WithHint("use --sandbox docker")
	}
	return containers, nil
}

// folders is what runs task folders.
func (o Options) folders(engine sandbox.Engine, limits sandbox.Limits) (harbor.Runner, error) {
	containers, can := engine.(sandbox.Containers)
	if !can {
		return harbor.Runner{}, task.Errorf(task.Unsupported, "the sandbox %s cannot run task folders", engine.Name()).WithHint("use --sandbox docker")
	}
	return harbor.Runner{Engine: containers, Owner: owner, Network: o.AllowNetwork, Limits: limits, TestTimeout: o.TestTimeout, WorkTimeout: o.Within}, nil
}

// prepared is the set with its task folders ready to be worked on. Those that cannot be made so
// are left out with the reason.
func prepared(ctx context.Context, set taskset.Set, runner harbor.Runner, parallel int, dir string) (taskset.Set, error) {
	set.Tasks = slices.Clone(set.Tasks)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(parallel, 1))
	for i, one := range set.Tasks {
		if one.Container == nil || one.Missing != "" {
			continue
		}
		group.Go(func() error {
			at := filepath.Join(dir, "files-"+one.ID+".git")
			made, err := runner.Prepare(ctx, one, at)
			if err != nil && ctx.Err() == nil && eval.IsPassing(err) {
				_ = workdir.Remove(at) // else the second one says so
				made, err = runner.Prepare(ctx, one, at)
			}
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case task.CodeOf(err) == task.NotReady: // the engine is gone
				return err
			case err != nil:
				made.Missing = err.Error()
			}
			set.Tasks[i] = made
			return nil
		})
	}
	return set, group.Wait()
}

// inImage is the configuration for work on a task folder: its image is the one environment.
func inImage(c config.Config, container *taskset.Container) config.Config {
	c.CommandExecutor.Environments = map[string]string{eval.FolderEnvironment: container.Image}
	c.CommandExecutor.Allowed = []string{eval.FolderEnvironment}
	c.CommandExecutor.DefaultEnvironment = eval.FolderEnvironment
	return c
}

// alsoAt starts sandboxes in which the workspace is also where the image of a task folder has its
// files, with the variables of the task.
type alsoAt struct {
	sandbox.Engine

	container *taskset.Container
}

// Start implements [sandbox.Engine].
func (a alsoAt) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if a.container.Workdir != sandbox.WorkspacePath {
		spec.Also = a.container.Workdir
	}
	variables := maps.Clone(a.container.Env)
	if variables == nil {
		variables = map[string]string{}
	}
	maps.Copy(variables, spec.Env)
	spec.Env = variables
	return a.Engine.Start(ctx, spec)
}
