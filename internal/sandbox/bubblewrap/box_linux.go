package bubblewrap

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
)

// box is one running sandbox.
type box struct {
	engine    *Engine
	info      sandbox.Info
	dir       string
	spec      sandbox.Spec
	client    *guest.Client
	gate      sandbox.Gate
	group     *cgroup.Group // nil where there are none
	process   *os.Process
	complaint sandbox.Beginning // what bwrap or the guest said on standard error
	ended     chan struct{}     // closed when the process has ended

	stopping sync.Once
	stopped  error
}

// launch starts the process. The thread that starts it stays until it has ended:
// the kernel ends the sandbox with its parent, and by that it means the thread.
func (b *box) launch(command *exec.Cmd) (io.ReadWriteCloser, error) {
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	command.Stderr = &b.complaint
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	command.Dir = "/"
	if b.group != nil {
		joined, err := b.group.Join(command)
		if err != nil {
			return nil, err
		}
		defer func() { _ = joined.Close() }()
	}
	begun := make(chan error)
	go func() { // ends with the process
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		begun <- err
		if err == nil {
			_ = command.Wait() // how it ended is told by what it was doing
		}
		close(b.ended)
	}()
	if err := <-begun; err != nil {
		return nil, err
	}
	b.process = command.Process
	return guest.Pipes(stdout, stdin), nil
}

// Info says what it is.
func (b *box) Info() sandbox.Info { return b.info }

// Workspace is the shared folder on the host.
func (b *box) Workspace() string { return b.spec.Workspace }

// Run runs a command.
func (b *box) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	return b.client.Run(ctx, command)
}

func (b *box) diskWatch() sandbox.DiskWatch {
	return sandbox.DiskWatch{Limit: b.spec.Limits.Disk,
		Free: func() (int64, error) { return sandbox.FreeSpace(b.spec.Workspace, b.dir) },
		Used: func() int64 {
			return sandbox.TreeSize(b.spec.Workspace) + sandbox.TreeSize(filepath.Join(b.dir, "home")) + sandbox.TreeSize(filepath.Join(b.dir, "tmp"))
		}}
}

// SetNetwork changes the policy.
func (b *box) SetNetwork(_ context.Context, policy sandbox.Policy) error {
	if !policy.Valid() {
		return task.Errorf(task.Invalid, "unknown network policy %q", string(policy))
	}
	b.gate.SetPolicy(policy)
	return nil
}

// Snapshot keeps home and workspace.
func (b *box) Snapshot(_ context.Context, key string, before sandbox.Listing) (sandbox.Snapshot, error) {
	made, err := b.engine.shelf.Put(key, filepath.Join(b.dir, "home"), b.spec.Workspace, before, 0)
	made.Kept = "folder"
	return made, err
}

const stopTimeout = 5 * time.Second

// Stop ends the sandbox and removes its home.
func (b *box) Stop(context.Context) error {
	b.stopping.Do(func() {
		if b.client != nil {
			_ = b.client.Close() // upon which the guest ends
		}
		if b.gate != nil {
			_ = b.gate.Close()
		}
		select {
		case <-b.ended:
		case <-time.After(stopTimeout):
		}
		if err := b.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			b.stopped = err
		}
		<-b.ended
		b.stopped = errors.Join(b.stopped, b.leaveGroup(), sandbox.RemoveTree(b.dir))
		b.engine.mine.Delete(b.info.ID)
		b.engine.shelf.Refill(b.spec.Snapshot, b.engine.config.Log)
	})
	return b.stopped
}

// leaveGroup removes the control group, with what may still be in it.
func (b *box) leaveGroup() error {
	if b.group == nil {
		return nil
	}
	return b.group.Remove()
}
