package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// pauseFileEvery is how often we look whether the pause file is there.
const pauseFileEvery = time.Second

// pauseWatch follows the pause file of an agent.
type pauseWatch struct {
	*Agent
	told    bool     // that the server knows whether the agent is paused
	resumed []string // contexts of runs for which the server was asked to let them go on
}

// run looks for the file until the context ends. While it is there, the runs
// of this agent are paused and no task is asked for; when it is gone, those go on that
// were paused so. A file that cannot be looked at changes nothing.
func (w *pauseWatch) run(ctx context.Context) error {
	for lifecycle.Sleep(ctx, pauseFileEvery) == nil {
		w.look(ctx)
	}
	return nil
}

// look looks at the file once.
func (w *pauseWatch) look(ctx context.Context) {
	there, err := exists(w.PauseFile)
	if err != nil {
		w.Log.ErrorContext(ctx, "failed to check the pause file; retrying", "file", w.PauseFile, "error", err)
		return
	}
	if w.pause.set(there) {
		w.Log.InfoContext(ctx, "pause file changed", "file", w.PauseFile, "paused", there)
		w.told = false
	}
	if !w.told {
		err = w.reportCondition(ctx)
		w.told = err == nil
	}
	if err = errors.Join(err, w.resume(ctx, there)); err != nil && ctx.Err() == nil {
		w.Log.WarnContext(ctx, "failed to report the pause file to the server; retrying", "file", w.PauseFile, "error", err)
	}
}

func exists(file string) (bool, error) {
	_, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// pausedBy names the pause file, for people.
func (a *Agent) pausedBy() string {
	detail := "file " + a.PauseFile
	if host, err := os.Hostname(); err == nil { // else the path alone will do
		detail += " on " + host
	}
	return detail
}

// resume lets the runs go on that were paused because of the file, when it is gone. The
// folder of the contexts knows which they are, also after a restart. Each is asked for
// once.
func (w *pauseWatch) resume(ctx context.Context, paused bool) error {
	if paused {
		w.resumed = nil
		return nil
	}
	left, err := w.Contexts.Left()
	if err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(run contexts.Left) bool {
		return run.Folder != contexts.Paused || run.Reason != task.ReasonAgentPaused || slices.Contains(w.resumed, run.UUID)
	})
	for some := range slices.Chunk(left, mostAsked) {
		var tasks, asked []string
		for _, run := range some {
			tasks, asked = append(tasks, string(run.Task)), append(asked, run.UUID)
		}
		once, cancel := context.WithTimeout(ctx, callTimeout)
		err := w.Client.ResumeOwn(once, tasks)
		cancel()
		if err != nil {
			return err
		}
		w.resumed = append(w.resumed, asked...)
	}
	return nil
}

// haltWhenPaused halts a run when the pause file appears.
func (h *hold) haltWhenPaused(ctx context.Context, pause *toggle) {
	if pause.wait(ctx, true) {
		h.halt(ctx, task.SignalPause, &wire.Halt{Reason: string(task.ReasonAgentPaused)})
	}
}
