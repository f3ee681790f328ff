package kubernetes

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
)

// box is one running pod.
type box struct {
	engine *Engine
	info   sandbox.Info
	spec   sandbox.Spec
	link   *guest.Link
	client *guest.Client
	gate   sandbox.Gate
	maybe  bool // the pod may be there
	warm   bool // it was made to be kept ready

	brought int64 // what the workspace took of the disk when it was sent in first

	end     context.CancelFunc // of what works in the background
	working sync.WaitGroup
	lost    atomic.Pointer[lostError]

	running  sync.Mutex // held while a command runs and its files come out
	stopping sync.Once
	stopped  error
}

// Info identifies it.
func (b *box) Info() sandbox.Info { return b.info }

// Workspace is the folder on the host that is kept the same as the pod's.
func (b *box) Workspace() string { return b.spec.Workspace }

const (
	firstWait = 50 * time.Millisecond
	longWait  = 2 * time.Second
	// steady is for how long a connection has to hold to count as a good one.
	steady = 5 * time.Second
)

// keepConnected connects the link with the pod, again and again, until the pod is lost. It
// begins with the relay that there is already, if any.
func (b *box) keepConnected(ctx context.Context, relay *stream) {
	wait := firstWait
	for {
		begun := time.Now()
		var err error
		if relay == nil {
			relay, err = b.openRelay(ctx)
		}
		if err == nil {
			err = b.carry(ctx, relay)
		}
		relay = nil
		if ctx.Err() != nil || b.lost.Load() != nil {
			return
		}
		if time.Since(begun) > steady {
			wait = firstWait
		}
		if b.link.Down() > b.engine.config.Patience {
			b.setLost(&lostError{sandbox.NoLimit, "the pod cannot be reached any more, because its node or the API server is gone: " + errorText(err)})
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			wait = min(2*wait, longWait)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return "the connection was closed"
	}
	return err.Error()
}

func (b *box) openRelay(ctx context.Context) (*stream, error) {
	dialing, cancel := context.WithTimeout(ctx, min(b.engine.config.Patience, dialTimeout))
	defer cancel()
	return b.engine.api.exec(dialing, b.info.ID, append([]string{guestPath}, guest.RelayArguments(guestSocket)...))
}

// carry has a relay carry the link until it ends.
func (b *box) carry(ctx context.Context, relay *stream) error {
	stop := context.AfterFunc(ctx, func() { _ = relay.Close() })
	defer stop()
	// A node that is gone takes the connection and then says nothing.
	patience := time.AfterFunc(b.engine.config.Patience, func() {
		if b.link.Down() > 0 {
			_ = relay.Close()
		}
	})
	defer patience.Stop()
	return b.link.Connect(relay)
}

// watchPod waits for the pod's end, which the link does not notice.
func (b *box) watchPod(ctx context.Context, now pod) {
	err := b.engine.api.follow(ctx, now, func(now pod) (bool, error) { return false, now.end() })
	if lost, is := asLost(err); is {
		b.setLost(lost)
	}
}

func (b *box) setLost(why *lostError) {
	if b.lost.CompareAndSwap(nil, why) {
		b.link.End(why)
		b.engine.warm.look() // in case that it was kept ready
	}
}

// explain gives an error of a sandbox that is gone its reason.
func (b *box) explain(err error) error {
	if lost := b.lost.Load(); lost != nil {
		return task.Wrap(task.Unavailable, errors.Join(sandbox.WithTextReason(lost, lost.reason), err), "the sandbox is gone")
	}
	return err
}

const pullTimeout = 2 * time.Minute

// spareWorkspace is what the workspace on the host may take above the limit, so that
// what a command wrote in the end is there too.
const spareWorkspace = 8 << 20

// pullLimit is what the workspace on the host may come to take: the limit, or what it
// took in the beginning.
func (b *box) pullLimit() int64 { return max(b.spec.Limits.Disk, b.brought) + spareWorkspace }

// Run sends in what has changed, runs a command, and brings out what that has
// changed.
func (b *box) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	command, err := command.Validate()
	if err != nil {
		return sandbox.Result{}, err
	}
	b.running.Lock()
	defer b.running.Unlock()
	if err := ctx.Err(); err != nil {
		return sandbox.Result{}, err
	}
	if err := b.client.Push(ctx); err != nil {
		return sandbox.Result{}, b.explain(err)
	}
	result, err := b.client.Run(ctx, command)
	if err != nil && ctx.Err() == nil {
		return b.ended(result, err)
	}
	// What a cancelled command has done is there too.
	pulling, cancel := context.WithTimeout(context.WithoutCancel(ctx), pullTimeout)
	defer cancel()
	left, pulled := b.client.Pull(pulling, b.pullLimit())
	result.Left = left.NoRoom + left.Skipped
	if pulled != nil && err == nil {
		return result, b.explain(pulled)
	}
	if pulled != nil { // the next command brings it out, if there is one
		b.engine.config.Log.WarnContext(ctx, "failed to copy the changes of a canceled command out of the pod", "pod", b.info.ID, "error", b.explain(pulled))
	}
	if left.NoRoom > 0 && result.Exceeded == sandbox.NoLimit {
		result.Exceeded = sandbox.DiskLimit // there is more inside than may be
	}
	return result, err
}

const exitKilled = 128 + 9

// ended is the result of a command with which the whole sandbox ended: if it was
// for a limit, the command has exceeded that.
func (b *box) ended(result sandbox.Result, err error) (sandbox.Result, error) {
	lost := b.lost.Load()
	if lost != nil && lost.limit != sandbox.NoLimit {
		result.ExitCode, result.Exceeded = exitKilled, lost.limit
		return result, nil
	}
	return result, b.explain(err)
}

const (
	leaveTimeout = 2 * time.Second
	stopTimeout  = 40 * time.Second
)

// Stop ends what runs in the pod and removes it.
func (b *box) Stop(ctx context.Context) error {
	b.stopping.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if b.client != nil && b.lost.Load() == nil {
			leaving, done := context.WithTimeout(ctx, leaveTimeout)
			_ = b.client.Leave(leaving) // the pod is removed in any case
			done()
		}
		if b.end != nil {
			b.end()
			_ = b.link.Close()
		}
		if b.client != nil {
			_ = b.client.Close()
		}
		b.working.Wait()
		if b.gate != nil {
			_ = b.gate.Close()
		}
		if b.maybe {
			if err := b.engine.api.remove(ctx, b.info.ID); err != nil {
				b.stopped = failed(err, "the pod cannot be removed")
			}
		}
		b.engine.setMine(b.info.ID, false)
	})
	return b.stopped
}
