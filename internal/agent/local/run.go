package local

import (
	"context"
	"errors"
	"os"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/agent/workspace"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Options is what [Run] needs besides the run itself.
type Options struct {
	Executor agent.Executor
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
	run.Repository, err = workspace.Local(ctx, workspace.Options{Dir: folder, URL: run.Work.Folder, Branch: run.Work.Branch, Log: run.Log})
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
	result, err = options.Executor.Execute(ctx, run)
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
