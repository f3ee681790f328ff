package drill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/task"
)

// process is a server or an agent that is started again whenever it ends by our
// doing.
type process struct {
	drill Drill
	name  string
	args  []string
	ready string // what its output has when it works

	busy    sync.Mutex // held by whoever breaks it
	command *exec.Cmd
	ended   chan error
	failed  atomic.Int64 // how often it did not get ready
	died    []string     // how it ended when nobody had ended it
	pid     atomic.Int64 // 0 while there is none
}

const (
	readyWithin = time.Minute
	endWithin   = 40 * time.Second
	// startWithin is how long it may take in all until a process works that was ended. Its disk
	// may be full, and the database not there.
	startWithin = 4 * time.Minute
)

// start runs the program until it says that it is ready.
func (p *process) start(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(p.drill.Dir, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()                  // the process has a copy of its own
	command := exec.Command(p.drill.Program, p.args...) //nolint:noctx // it is this program, and ends in stop
	command.Env, command.Dir = p.drill.Environ, p.drill.Dir
	command.Stderr = log
	said, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	p.command = command
	p.pid.Store(int64(command.Process.Pid))
	ready := make(chan bool, 1)
	p.ended = make(chan error, 1)
	ended := p.ended
	go func() {
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			_, _ = fmt.Fprintln(log, lines.Text())
			if strings.Contains(lines.Text(), p.ready) {
				ready <- true
				break
			}
		}
		_, _ = io.Copy(io.Discard, said)
		p.pid.Store(0)
		ended <- command.Wait()
	}()
	timer := time.NewTimer(readyWithin)
	defer timer.Stop()
	select {
	case <-ready:
		return nil
	case err := <-p.ended:
		p.ended <- err
		return task.Errorf(task.NotReady, "%s ended before it was ready: %v", p.name, err)
	case <-timer.C:
		return task.Errorf(task.NotReady, "%s does not get ready", p.name)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop ends the process and waits for that: at once, or as it likes.
func (p *process) stop(how os.Signal) error {
	if p.command == nil {
		return nil
	}
	defer func() { p.command = nil }()
	if how == os.Interrupt {
		how = syscall.SIGTERM
	}
	_ = p.command.Process.Signal(how) // it may have ended
	timer := time.NewTimer(endWithin)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
		_ = p.command.Process.Kill()
		<-p.ended
		return task.Errorf(task.Conflict, "%s did not end when it was asked to", p.name)
	}
}

// lives notes if the process has ended although nobody has ended it.
func (p *process) lives() {
	select {
	case err := <-p.ended:
		p.died = append(p.died, fmt.Sprint(err))
		p.ended <- err
	default:
	}
}

// restart ends a process and starts it until it works.
func (p *process) restart(ctx context.Context, how os.Signal) error {
	p.lives()
	if err := p.stop(how); err != nil {
		return err
	}
	deadline := time.Now().Add(startWithin)
	for {
		err := p.start(ctx)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		p.failed.Add(1)
		if err := errors.Join(p.stop(os.Kill), lifecycle.Sleep(ctx, time.Second)); err != nil {
			return err
		}
	}
}
