package local

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/sandbox/disk"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Process is one running sandbox that is a process of this machine. Engines add what
// differs: the snapshots.
type Process struct {
	of      *Processes
	launch  Launch
	info    sandbox.Info
	dir     string
	folders Folders

	client  *guest.Client // nil until the process is started, as what follows
	gate    sandbox.Gate
	group   *cgroup.Group // nil also where there are none
	process *os.Process
	ended   chan struct{} // closed when the process has ended
	stderr  guest.Stderr

	stopping sync.Once
	stopped  error
}

// run starts the process. The thread that starts it stays until it has ended: the kernel
// ends the sandbox with its parent, and by that it means the thread.
func (p *Process) run(command *exec.Cmd) (io.ReadWriteCloser, error) {
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	command.Stderr = &p.stderr
	command.Dir = "/"
	if p.group != nil {
		joined, err := p.group.Join(command)
		if err != nil {
			return nil, err
		}
		defer func() { _ = joined.Close() }()
	}
	begun, ended := make(chan error), make(chan struct{})
	go func() { // ends with the process
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := command.Start()
		begun <- err
		if err == nil {
			_ = command.Wait() // how it ended is told by what it was doing
		}
	}()
	if err := <-begun; err != nil {
		return nil, err
	}
	p.process, p.ended = command.Process, ended
	return guest.Pipes(stdout, stdin), nil
}

// Folders are its folders on the host.
func (p *Process) Folders() Folders { return p.folders }

// Info identifies it.
func (p *Process) Info() sandbox.Info { return p.info }

// Workspace is the shared folder on the host.
func (p *Process) Workspace() string { return p.folders.Workspace }

// Run runs a command.
func (p *Process) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	return p.client.Run(ctx, command)
}

func (p *Process) diskWatch() disk.Watch {
	return disk.Watch{Limit: p.launch.Spec.Limits.Disk,
		OneDevice: disk.SameDevice(p.folders.Workspace, p.dir, p.folders.Home, p.folders.Temporary),
		Free:      func() (int64, error) { return disk.FreeSpace(p.folders.Workspace, p.dir) },
		Used: func() int64 {
			return workdir.TreeSize(p.folders.Workspace) + workdir.TreeSize(p.folders.Home) + workdir.TreeSize(p.folders.Temporary)
		}}
}

// SetNetwork changes the policy, if there is a way out.
func (p *Process) SetNetwork(_ context.Context, policy sandbox.Policy) error {
	switch {
	case !policy.Valid():
		return task.Errorf(task.Invalid, "unknown network policy %q", string(policy))
	case p.gate != nil:
		p.gate.SetPolicy(policy)
	case policy != sandbox.NoNetwork:
		return task.Errorf(task.Unsupported, "this sandbox has no network; the policy %s cannot be had", policy)
	}
	return nil
}

const stopTimeout = 5 * time.Second

// Stop ends the process with all that it started, and removes its home.
func (p *Process) Stop(context.Context) error {
	p.stopping.Do(func() {
		if p.client != nil {
			_ = p.client.Close() // upon which the guest ends
		}
		if p.gate != nil {
			_ = p.gate.Close()
		}
		if p.ended != nil {
			p.stopped = p.end()
		}
		if p.group != nil {
			p.stopped = errors.Join(p.stopped, p.group.Remove())
		}
		p.stopped = errors.Join(p.stopped, workdir.Remove(p.dir))
		p.of.running.Delete(p.info.ID)
		if p.launch.Stopped != nil && p.ended != nil {
			p.launch.Stopped()
		}
	})
	return p.stopped
}

// end waits for the end of the process, and kills it if that takes too long.
func (p *Process) end() error {
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
	}
	err := p.process.Kill()
	<-p.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
