package drill

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// process is a server or an agent that is started again whenever it ends by our
// doing.
type process struct {
	drill Drill
	name  string
	args  []string
	ready string // what its output has when it works

	command *exec.Cmd
	ended   chan error
}

const (
	readyWithin = time.Minute
	endWithin   = 40 * time.Second
)

// start runs the program until it says that it is ready.
func (p *process) start(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(p.drill.Dir, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()                   // the process has a copy of its own
	p.command = exec.Command(p.drill.Program, p.args...) //nolint:noctx // it is this program, and ends in stop
	p.command.Env, p.command.Dir = p.drill.Environ, p.drill.Dir
	p.command.Stderr = log
	said, err := p.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.command.Start(); err != nil {
		return err
	}
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
		ended <- p.command.Wait()
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

func (p *process) restart(ctx context.Context, how os.Signal) error {
	if err := p.stop(how); err != nil {
		return err
	}
	return p.start(ctx)
}
