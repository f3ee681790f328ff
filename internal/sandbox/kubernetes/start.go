package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	proxyAddress = "127.0.0.1:3128"
	beginTimeout = 60 * time.Second
)

// Start makes a pod and waits until its guest is there.
func (e *Engine) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec, err := spec.Validate()
	if err != nil {
		return nil, err
	}
	if spec.Image == "" {
		return nil, task.Errorf(task.Invalid, "no image is named for the pod")
	}
	var from record
	if spec.Snapshot != "" {
		if from, err = e.record(ctx, spec.Snapshot); err != nil {
			return nil, err
		}
	}
	name := newPodName()
	made, err := e.sandboxPod(name, spec, from.Folder)
	if err != nil {
		return nil, err
	}
	e.setMine(name, true)
	started := &box{engine: e, spec: spec, info: sandbox.Info{ID: name, Engine: Name, Owner: spec.Owner, Task: spec.Task,
		Generation: spec.Generation, Started: e.config.Now().UTC(), Running: true}}
	if err := started.begin(ctx, made, from); err != nil {
		return nil, errors.Join(err, started.Stop(context.WithoutCancel(ctx)))
	}
	return started, nil
}

// begin brings the pod up to where commands can run. On error the caller stops it.
func (b *box) begin(ctx context.Context, made object, from record) error {
	e := b.engine
	var err error
	if b.maybe, err = e.create(ctx, b.info.ID, made); err != nil {
		return err
	}
	if err := e.awaitRunning(ctx, b.info.ID, b.spec); err != nil {
		return err
	}
	if e.config.GuestImage == "" {
		if err := e.sendGuest(ctx, b.info.ID); err != nil {
			return err
		}
	}
	if err := b.connect(ctx); err != nil {
		return b.explain(err)
	}
	if err := b.fill(ctx, from); err != nil {
		return b.explain(err)
	}
	return b.openNetwork(ctx)
}

// awaitRunning waits until the pod's container runs.
func (e *Engine) awaitRunning(ctx context.Context, name string, spec sandbox.Spec) error {
	limited, cancel := context.WithTimeout(ctx, e.config.StartTimeout)
	defer cancel()
	var last pod
	told := ""
	err := e.api.follow(limited, name, func(now pod) (bool, error) {
		last = now
		if now.running() {
			e.noteIdentity(spec.Image, now.Status.Containers[0].ImageID)
			return true, nil
		}
		if waits := now.pending(); waits != told {
			told = waits
			spec.Progress("waiting for the pod: " + waits)
		}
		return false, now.trouble(spec.Image)
	})
	if limited.Err() != nil && ctx.Err() == nil {
		waits := last.pending()
		err := task.Errorf(task.NotReady, "the pod does not run after %s: %s", e.config.StartTimeout, waits).
			WithHint("see whether the cluster has room for it, and sandbox.kubernetes.start_timeout")
		return sandbox.WithTextReason(err, waits)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return asStartError(err)
}

// asStartError gives the reasons for which a pod did not start their code.
func asStartError(err error) error {
	if err == nil {
		return nil
	}
	if lost, is := asLost(err); is {
		return task.Wrap(task.Unavailable, sandbox.WithTextReason(lost, lost.reason), "the pod did not start")
	}
	return failed(err, "the pod cannot be looked at")
}

// sendGuest sends this program into a pod that waits for it.
func (e *Engine) sendGuest(ctx context.Context, name string) error {
	program, err := e.guestProgram()
	if err != nil {
		return err
	}
	script := fmt.Sprintf("head -c %d >%s.new && chmod 755 %[2]s.new && mv %[2]s.new %[2]s", len(program), guestPath)
	err = e.api.retry(ctx, createTimeout, func() error { return e.api.feed(ctx, name, []string{"sh", "-c", script}, program) })
	if err != nil {
		return failed(err, "the guest's program cannot be sent into the pod")
	}
	return nil
}

func (e *Engine) guestProgram() ([]byte, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.program == nil {
		program, err := os.ReadFile(e.config.Guest)
		if err != nil {
			return nil, fmt.Errorf("read the guest's program: %w", err)
		}
		e.program = program
	}
	return e.program, nil
}

// connect opens the link to the guest and waits for its greeting.
func (b *box) connect(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	b.end = end
	b.link = guest.NewLink()
	b.working.Go(func() { b.keepConnected(life) })
	b.working.Go(func() { b.watchPod(life) })
	b.gate = b.engine.config.NewGate(b.spec.Network)
	var err error
	b.client, err = guest.NewLinkedClient(b.link, b.engine.config.Patience, func(c net.Conn) { b.gate.Serve(c) }, b.spec.Limits.Disk)
	if err != nil {
		return err
	}
	if err := b.client.Mirror(b.spec.Workspace); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	b.client.SetEnvironment(b.spec.Env) // where no reader of the pod's description sees it
	return b.client.Hello(limited)
}

// fill brings the workspace in, and the snapshot if there is one.
func (b *box) fill(ctx context.Context, from record) error {
	if err := b.client.Push(ctx); err != nil {
		return err
	}
	b.brought = b.client.MirrorSize()
	if b.spec.Snapshot == "" {
		return nil
	}
	b.spec.Progress("restoring the environment from a snapshot")
	if err := b.client.Restore(ctx, from.Digest); err != nil {
		return err
	}
	b.engine.noteUse(ctx, b.spec.Snapshot, from)
	left, err := b.client.Pull(ctx, b.pullLimit())
	if err == nil && left.NoRoom > 0 {
		err = task.Errorf(task.TooLarge, "the snapshot has more for the workspace than the sandbox's disk limit allows")
	}
	return err
}
