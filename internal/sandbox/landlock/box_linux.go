package landlock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
)

// box is one confined process.
type box struct {
	engine    *Engine
	info      sandbox.Info
	dir       string
	spec      sandbox.Spec
	client    *guest.Client
	group     *cgroup.Group // nil where there are none
	process   *os.Process
	complaint sandbox.Beginning
	ended     chan struct{} // nil until the process is started

	stopping sync.Once
	stopped  error
}

func (b *box) begin(ctx context.Context) error {
	for _, folder := range []string{b.spec.Workspace, filepath.Join(b.dir, "home"), filepath.Join(b.dir, "tmp")} {
		if err := sandbox.Give(folder); err != nil {
			return fmt.Errorf("give %s to the sandbox: %w", folder, err)
		}
	}
	var err error
	if b.group, err = b.engine.groups.For(b.info, b.spec.Limits); err != nil {
		return err
	}
	command, err := b.engine.command(b.dir, b.spec, b.group)
	if err != nil {
		return err
	}
	if b.group != nil {
		joined, err := b.group.Join(command)
		if err != nil {
			return err
		}
		defer func() { _ = joined.Close() }()
	}
	stdin, err := command.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	command.Stderr = &b.complaint
	command.Env = []string{"PATH=" + b.engine.searchPath()}
	command.Dir = "/"
	if err := command.Start(); err != nil {
		return task.Wrap(task.Unavailable, err, "the sandbox cannot be started")
	}
	b.process, b.ended = command.Process, make(chan struct{})
	go func() { // ends with the process
		_ = command.Wait() // how it ended is told by what it was doing
		close(b.ended)
	}()
	if err := b.engine.books.Record(b.dir, b.info, b.process.Pid); err != nil {
		return err
	}
	if b.client, err = guest.NewClient(guest.Pipes(stdout, stdin), nil, b.spec.Limits.Disk); err != nil {
		return err
	}
	b.client.SetEnvironment(b.spec.Env)
	b.client.Guard(b.diskWatch(), cgroup.KillsOf(b.group)) //nolint:contextcheck // it watches for the life of the sandbox, not of the start
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	if err := b.client.Hello(ctx); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(b.complaint.Bytes())))
	}
	return nil
}

// Info says what it is.
func (b *box) Info() sandbox.Info { return b.info }

// Workspace is the folder that may be written.
func (b *box) Workspace() string { return b.spec.Workspace }

// Run runs a command.
func (b *box) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	return b.client.Run(ctx, command)
}

func (b *box) diskWatch() sandbox.DiskWatch {
	home, temporary := filepath.Join(b.dir, "home"), filepath.Join(b.dir, "tmp")
	return sandbox.DiskWatch{Limit: b.spec.Limits.Disk,
		Free: func() (int64, error) { return sandbox.FreeSpace(b.spec.Workspace, b.dir) },
		Used: func() int64 {
			return sandbox.TreeSize(b.spec.Workspace) + sandbox.TreeSize(home) + sandbox.TreeSize(temporary)
		}}
}

// SetNetwork takes none only.
func (b *box) SetNetwork(_ context.Context, policy sandbox.Policy) error {
	if policy != sandbox.NoNetwork {
		return task.Errorf(task.Unsupported, "a process confined with Landlock has no network")
	}
	return nil
}

// Snapshot is not supported.
func (b *box) Snapshot(context.Context, string, sandbox.Listing) (sandbox.Snapshot, error) {
	return sandbox.Snapshot{}, errNoSnapshots()
}

const stopTimeout = 5 * time.Second

// Stop ends the process and all that it started, and removes its home.
func (b *box) Stop(context.Context) error {
	b.stopping.Do(func() {
		if b.client != nil {
			_ = b.client.Close() // upon which the guest kills what it started and ends
		}
		if b.ended != nil {
			select {
			case <-b.ended:
			case <-time.After(stopTimeout):
			}
			if err := b.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				b.stopped = err
			}
			<-b.ended
		}
		if b.group != nil {
			b.stopped = errors.Join(b.stopped, b.group.Remove())
		}
		b.stopped = errors.Join(b.stopped, sandbox.RemoveTree(b.dir))
		b.engine.mine.Delete(b.info.ID)
	})
	return b.stopped
}
