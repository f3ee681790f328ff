package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

const (
	// mostAsked is how many runs the server is asked at once.
	mostAsked = 100
	// longestCause is how much the server is told of why files cannot be moved.
	longestCause = 500
)

// MoveEndedContexts moves the context files of runs that will not go on to the folder of ended runs: a task may be
// stopped while it is paused, or end on another agent, and nobody holds it here. It also
// moves the files of runs that could not be moved when they ended, and tells the server
// once of each for which that does not succeed.
func (a *Agent) MoveEndedContexts(ctx context.Context) error {
	if a.Contexts == nil {
		return nil
	}
	unmoved, failed := a.moveAgain(ctx)
	left, err := a.Contexts.Left()
	if err != nil {
		return errors.Join(failed, err)
	}
	for some := range slices.Chunk(left, mostAsked) {
		failed = errors.Join(failed, a.moveEnded(ctx, some, unmoved))
	}
	return failed
}

// moveAgain moves the files of runs that could not be moved, and returns those that still
// cannot be and of which the server was not told.
func (a *Agent) moveAgain(ctx context.Context) (report map[wire.RunRef]wire.RunUnmoved, err error) {
	report = map[wire.RunRef]wire.RunUnmoved{}
	moved, unmoved, err := a.Contexts.MoveAgain()
	for _, run := range moved {
		a.setUnmovedReported(run.UUID, false)
		a.Log.InfoContext(ctx, "moved the context files of a run after an earlier failure", "task", run.Task, "state", run.State)
	}
	for _, run := range unmoved {
		if !run.Known {
			a.Log.ErrorContext(ctx, "failed to move the context files of a run; retrying", "task", run.Task, "folder", run.Folder, "error", run.Err)
		}
		if a.unmovedReported(run.UUID) {
			continue
		}
		cause := []rune(run.Err.Error())
		ref := wire.RunRef{TaskID: string(run.Task), Generation: run.Generation}
		report[ref] = wire.RunUnmoved{RunRef: ref, Folder: run.Folder, Cause: string(cause[:min(len(cause), longestCause)])}
	}
	return report, err
}

func (a *Agent) unmovedReported(run string) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.unmoved[run]
}

// setUnmovedReported records whether it was reported to the server that the files of a run cannot be moved.
func (a *Agent) setUnmovedReported(run string, reported bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.unmoved == nil {
		a.unmoved = make(map[string]bool)
	}
	if a.unmoved[run] = reported; !reported {
		delete(a.unmoved, run)
	}
}

func (a *Agent) moveEnded(ctx context.Context, left []contexts.Left, unmoved map[wire.RunRef]wire.RunUnmoved) error {
	asked, files := wire.RunsAsked{}, map[wire.RunRef]contexts.Left{}
	for _, run := range left {
		ref := wire.RunRef{TaskID: string(run.Task), Generation: run.Generation}
		asked.Runs = append(asked.Runs, ref)
		files[ref] = run
		if report, is := unmoved[ref]; is {
			asked.Unmoved = append(asked.Unmoved, report)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	over, err := a.Client.EndedRuns(ctx, asked)
	if err != nil {
		return err
	}
	for _, run := range asked.Unmoved {
		a.setUnmovedReported(files[run.RunRef].UUID, true)
	}
	var failed error
	for _, run := range over {
		is := files[run.RunRef]
		if a.unmovedReported(is.UUID) {
			continue // see moveAgain
		}
		if err := a.Contexts.Close(is.UUID, task.State(run.State), task.Reason(run.Reason)); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		a.Log.InfoContext(ctx, "moved the context files of a run that has ended", "task", run.TaskID, "state", run.State, "reason", run.Reason)
	}
	return failed
}
