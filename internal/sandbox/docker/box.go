package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/disk"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/local"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// box is one running container.
type box struct {
	engine *Engine
	info   sandbox.Info
	spec   sandbox.Spec
	env    map[string]string // for every command
	disks  []string          // folders on every file system that it writes to
	client *guest.Client
	gate   sandbox.Gate
	stderr guest.Stderr // what the guest said on standard error

	stopping sync.Once
	stopped  error
}

// Info identifies it.
func (b *box) Info() sandbox.Info { return b.info }

// Workspace is the shared folder on the host.
func (b *box) Workspace() string { return b.spec.Workspace }

// Run runs a command.
func (b *box) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	result, err := b.client.Run(ctx, command)
	if err != nil && ctx.Err() == nil && task.CodeOf(err) == task.Unavailable && b.outOfMemory(ctx) {
		err = sandbox.OutOfMemory(err)
	}
	return result, b.explain(err)
}

// outOfMemory reports whether the container has ended and the kernel had ended processes
// of it for their memory, perhaps earlier ones: Docker does not say when.
func (b *box) outOfMemory(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	found, err := b.engine.api.ContainerInspect(ctx, b.info.ID, client.ContainerInspectOptions{})
	return err == nil && found.Container.State != nil && !found.Container.State.Running && found.Container.State.OOMKilled
}

// explain adds to an error of the sandbox what the guest said on standard error.
func (b *box) explain(err error) error {
	said := strings.TrimSpace(string(b.stderr.Bytes()))
	if err == nil || said == "" || task.CodeOf(err) != task.Unavailable {
		return err
	}
	return sandbox.WithTextReason(fmt.Errorf("%w: %s", err, said), said)
}

// measureTimeout is how long the engine may take to measure a container.
const measureTimeout = 30 * time.Second

// diskWatch measures the folders. That they are on one device is not said: the engine need not
// keep what the container writes in the folder that it calls its root.
func (b *box) diskWatch() disk.Watch {
	return disk.Watch{Limit: b.spec.Limits.Disk,
		Free: func() (int64, error) { return disk.FreeSpace(b.disks...) },
		Used: func() int64 {
			ctx, cancel := context.WithTimeout(context.Background(), measureTimeout)
			defer cancel()
			return workdir.TreeSize(b.spec.Workspace) + b.written(ctx)
		}}
}

// written is what the container wrote besides the workspace.
func (b *box) written(ctx context.Context) int64 { return b.engine.size(ctx, b.info.ID) }

// SetNetwork changes the policy.
func (b *box) SetNetwork(_ context.Context, policy sandbox.Policy) error {
	if !policy.Valid() {
		return task.Errorf(task.Invalid, "unknown network policy %q", string(policy))
	}
	b.gate.SetPolicy(policy)
	return nil
}

// Snapshot keeps what is new in the workspace and makes an image of the container, in this
// order: if the agent ends in between, Sweep finds the folder without an image.
func (b *box) Snapshot(ctx context.Context, key string, before workdir.Listing) (sandbox.Snapshot, error) {
	if err := sandbox.ValidateKey(key); err != nil {
		return sandbox.Snapshot{}, err
	}
	if err := b.engine.RemoveSnapshot(ctx, key); err != nil {
		return sandbox.Snapshot{}, err
	}
	made, err := b.engine.store.Put(ctx, key, local.Contents{Workspace: b.spec.Workspace, Before: before, Elsewhere: b.written(ctx), Most: b.spec.Limits.Disk})
	if err != nil {
		return sandbox.Snapshot{}, errors.Join(err, b.engine.store.Remove(key))
	}
	_, err = b.engine.api.ContainerCommit(ctx, b.info.ID, client.ContainerCommitOptions{Reference: snapshotImage + ":" + key,
		Comment: "environment set up by Toryo", Changes: []string{"LABEL " + labelSnapshot + "=" + key}})
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout) // it may be that which has ended
		defer cancel()
		return sandbox.Snapshot{}, errors.Join(failed(err, "the container cannot be kept as an image"), b.engine.RemoveSnapshot(ctx, key))
	}
	made.Kept = "image and folder"
	return made, nil
}

const stopTimeout = 30 * time.Second

// Stop kills the container and removes it.
func (b *box) Stop(ctx context.Context) error {
	b.stopping.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if b.client != nil {
			_ = b.client.Close() // upon which the guest ends
		}
		if b.gate != nil {
			_ = b.gate.Close()
		}
		b.stopped = b.engine.remove(ctx, b.info.ID)
		b.engine.mine.Delete(b.info.ID)
		b.engine.store.PrepareNext(context.WithoutCancel(ctx), b.spec.Snapshot, b.engine.config.Log)
	})
	return b.stopped
}
