package local

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/agent/workspace"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Options is what [Run] needs besides the run itself.
type Options struct {
	// Executor makes what does the task, while the repository is copied.
	Executor func(ctx context.Context) (agent.Executor, error)
	Dir      string           // for the clone, which goes again; empty for that of temporary files
	Contexts string           // the folder of the journals
	Journal  contexts.Options // how journals are kept
	Shown    phase.Journal    // gets the entries as they are written
}

// Run does a task on a clone of the repository at the run's Work.Folder, and leaves what
// comes of it there as the branch Work.Branch. Run.Repository and Run.Journal are made
// here. It returns the id of the run, by which its journal is found, or none if the run came
// to no result, and closes that journal whatever comes of the run.
func Run(ctx context.Context, run agent.Run, options Options) (result wire.Result, id string, err error) {
	folder, err := os.MkdirTemp(options.Dir, "toryo-run-")
	if err != nil {
		return wire.Result{}, "", task.Wrap(task.DataDir, err, "no folder for the work can be made")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	executor, err := begin(ctx, &run, folder, options)
	if err != nil {
		return wire.Result{}, "", err
	}
	files, err := contexts.Open(options.Contexts, options.Journal)
	if err != nil {
		return wire.Result{}, "", err
	}
	journal, err := files.Begin(ctx, run.Work, 0, options.Shown)
	if err != nil {
		return wire.Result{}, "", err
	}
	run.Journal = journal
	result, err = executor.Execute(ctx, run)
	if err != nil {
		return wire.Result{}, "", errors.Join(err, journal.End(task.Failed, task.ReasonRunFailed))
	}
	if state := task.State(result.Outcome); state == task.Paused {
		err = journal.Pause(task.Reason(result.Reason))
	} else {
		err = journal.End(state, task.Reason(result.Reason))
	}
	return result, journal.ID(), err
}

// begin copies the repository into a folder and makes what does the task, at the same time.
func begin(ctx context.Context, run *agent.Run, folder string, options Options) (executor agent.Executor, err error) {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		executor, err = options.Executor(ctx)
		return err
	})
	both.Go(func() (err error) {
		run.Repository, err = workspace.Local(ctx, workspace.Options{Dir: folder, URL: run.Work.Folder, Branch: run.Work.Branch, Log: run.Log})
		return err
	})
	err = both.Wait()
	return executor, err
}
