package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// pauseFileEvery is how often we look whether the pause file is there.
const pauseFileEvery = time.Second

// errPaused ends a request for a task when the pause file appears.
var errPaused = errors.New("the pause file is there")

// pauseState is whether a file on this machine wants the agent's tasks to be paused.
type pauseState struct {
	mutex   sync.Mutex
	on      bool
	changed chan struct{} // closed at the next change; nil if nobody waits for it
}

// set says whether the pause is on, and reports whether that is a change.
func (p *pauseState) set(on bool) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.on == on {
		return false
	}
	p.on = on
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
	return true
}

// wait waits until the pause is on or off as given, and reports whether the context did
// not end before.
func (p *pauseState) wait(ctx context.Context, on bool) bool {
	for {
		p.mutex.Lock()
		if p.on == on {
			p.mutex.Unlock()
			return ctx.Err() == nil
		}
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed := p.changed
		p.mutex.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// whileOff is a context that also ends, with [errPaused] as its cause, when the pause
// begins. It has to be ended.
func (p *pauseState) whileOff(ctx context.Context) (off context.Context, end func()) {
	off, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		if p.wait(off, true) {
			cancel(errPaused)
		}
	})
	return off, func() {
		cancel(nil)
		watching.Wait()
	}
}

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
		err = w.reportPause(ctx, there)
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

// reportPause reports to the server why this agent takes no tasks, or that it does.
func (w *pauseWatch) reportPause(ctx context.Context, paused bool) error {
	if !paused {
		return w.Report(ctx, "", "")
	}
	detail := "file " + w.PauseFile
	if host, err := os.Hostname(); err == nil { // else the path alone will do
		detail += " on " + host
	}
	return w.Report(ctx, task.ReasonAgentPaused, detail)
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
func (h *hold) haltWhenPaused(ctx context.Context, pause *pauseState) {
	if pause.wait(ctx, true) {
		h.halt(ctx, task.SignalPause, &wire.Halt{Reason: string(task.ReasonAgentPaused)})
	}
}
