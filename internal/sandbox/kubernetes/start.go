package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	proxyAddress = "127.0.0.1:3128"
	beginTimeout = 60 * time.Second
)

// Start takes a pod that is kept ready or makes one, and waits until its guest is there.
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
	kind := kindOf(spec, from)
	e.warm.await()
	defer e.warm.served()
	if taken := e.takeWarm(ctx, spec, from); taken != nil {
		return taken, nil
	}
	started := e.newBox(spec)
	if err := started.begin(ctx, from); err != nil {
		return nil, errors.Join(err, started.Stop(context.WithoutCancel(ctx)))
	}
	e.warm.noteUse(kind, e.config.Now())
	return started, nil
}

// newBox is a sandbox whose pod is to be made. Its Stop has to be called.
func (e *Engine) newBox(spec sandbox.Spec) *box {
	name := newPodName()
	e.setMine(name, true)
	return &box{engine: e, spec: spec, info: sandbox.Info{ID: name, Engine: Name, Owner: spec.Owner, Task: spec.Task,
		Generation: spec.Generation, Started: e.config.Now().UTC(), Running: true}}
}

// begin makes the pod and brings it up to where commands can run. On error the caller stops it.
func (b *box) begin(ctx context.Context, from record) error {
	made, err := b.engine.sandboxPod(b.info.ID, b.spec, from.Folder)
	if err != nil {
		return err
	}
	steps := newSteps()
	if err := b.bringUp(ctx, made.manifest(), steps); err != nil {
		return err
	}
	if err := b.equip(ctx, from, beginTimeout); err != nil {
		return err
	}
	steps.done("equipped")
	b.engine.config.Log.DebugContext(ctx, "kubernetes: pod started", append([]any{"pod", b.info.ID}, steps.took...)...)
	return nil
}

// bringUp makes the pod and connects with its guest.
func (b *box) bringUp(ctx context.Context, made object, steps *steps) error {
	e := b.engine
	create := e.createGivingWay
	if b.warm {
		create = e.create
	}
	var now pod
	var err error
	if now, b.maybe, err = create(ctx, b.info.ID, made); err != nil {
		return err
	}
	steps.done("created")
	if now, err = b.awaitRunning(ctx, now); err != nil {
		return err
	}
	steps.done("running")
	var relay *stream
	if e.config.GuestImage == "" {
		if relay, err = e.sendGuest(ctx, b.info.ID); err != nil {
			return err
		}
		steps.done("guest_sent")
	}
	if err := b.connect(ctx, now, relay); err != nil {
		return b.explain(err)
	}
	return nil
}

// equip gives a pod what a run has: its workspace, variables, snapshot and network.
func (b *box) equip(ctx context.Context, from record, within time.Duration) error {
	b.gate.SetPolicy(b.spec.Network)
	if err := b.client.Mirror(b.spec.Workspace); err != nil {
		return b.explain(err)
	}
	b.client.SetEnvironment(b.spec.Env) // where no reader of the pod's description sees it
	if err := b.greet(ctx, within); err != nil {
		return b.explain(err)
	}
	if err := b.fill(ctx, from); err != nil {
		return b.explain(err)
	}
	return b.openNetwork(ctx)
}

// greet waits until the guest is there.
func (b *box) greet(ctx context.Context, within time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return b.client.Hello(limited)
}

// steps are how long the parts of a start took.
type steps struct {
	last time.Time
	took []any // for a log
}

func newSteps() *steps { return &steps{last: time.Now()} }

func (s *steps) done(step string) {
	now := time.Now()
	s.took, s.last = append(s.took, step, now.Sub(s.last).Round(100*time.Microsecond)), now
}

// awaitRunning waits until the pod's container runs.
func (b *box) awaitRunning(ctx context.Context, now pod) (pod, error) {
	e, spec := b.engine, b.spec
	limited, cancel := context.WithTimeout(ctx, e.config.StartTimeout)
	defer cancel()
	told := ""
	err := e.api.follow(limited, now, func(seen pod) (bool, error) {
		now = seen
		if now.running() {
			e.noteIdentity(spec.Image, now.Status.Containers[0].ImageID)
			return true, nil
		}
		waits := now.pending()
		if waits != told {
			told = waits
			spec.Progress("waiting for the pod: " + waits)
		}
		if now.unschedulable() && b.warm {
			return false, task.Errorf(task.NotReady, "no node has room for the pod: %s", waits)
		} else if now.unschedulable() {
			e.giveWay(limited)
		}
		return false, now.trouble(spec.Image)
	})
	if limited.Err() != nil && ctx.Err() == nil {
		waits := now.pending()
		err := task.Errorf(task.NotReady, "the pod does not run after %s: %s", e.config.StartTimeout, waits).
			WithHint("see whether the cluster has room for it, and sandbox.kubernetes.start_timeout")
		return now, sandbox.WithTextReason(err, waits)
	}
	if ctx.Err() != nil {
		return now, ctx.Err()
	}
	return now, asStartError(err)
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

// sendGuest sends the guest's program into a pod that waits for it. The process that takes it
// is the relay of the guest's link then.
func (e *Engine) sendGuest(ctx context.Context, name string) (relay *stream, err error) {
	program, err := e.guestProgram()
	if err != nil {
		return nil, err
	}
	command := append([]string{"sh", "-c", installScript, guestPath, strconv.Itoa(len(program))}, guest.RelayArguments(guestSocket)...)
	err = e.api.retry(ctx, createTimeout, func() error {
		relay, err = e.api.feed(ctx, name, command, program)
		return err
	})
	if err != nil {
		return nil, failed(err, "the guest's program cannot be sent into the pod")
	}
	return relay, nil
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

// connect opens the link to the guest, with the relay that there is already, if any.
func (b *box) connect(ctx context.Context, now pod, relay *stream) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	b.end = end
	b.link = guest.NewLink()
	b.working.Go(func() { b.keepConnected(life, relay) })
	b.working.Go(func() { b.watchPod(life, now) })
	b.gate = b.engine.config.NewGate(sandbox.NoNetwork) // until the run's policy is set
	var err error
	b.client, err = guest.NewLinkedClient(b.link, b.engine.config.Patience, func(c net.Conn) { b.gate.Serve(c) }, b.spec.Limits.Disk)
	return err
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
