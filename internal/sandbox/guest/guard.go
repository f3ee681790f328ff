package guest

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/disk"
	"github.com/toryo-dev/toryo/internal/task"
)

// guard watches the limits of a sandbox that the host can see, from its start to
// its end. When one is exceeded everything inside is killed, whether a command runs
// or only what one has left.
type guard struct {
	client *Client
	kills  func() int // how many processes the kernel has killed for their memory; may be nil

	killing sync.Mutex // held while everything is killed for a limit

	mutex  sync.Mutex
	disk   diskGuard
	killed int           // of kills, when it was looked at last
	found  sandbox.Limit // that was exceeded since the last command began

	hit chan sandbox.Limit // taken by the command that runs
}

// Guard has the client watch the limits until the session ends.
func (c *Client) Guard(watch disk.Watch, kills func() int) {
	c.guard = &guard{client: c, disk: diskGuard{watch: watch}, kills: kills, hit: make(chan sandbox.Limit)}
	c.guard.look()     // what is there now is the host's
	go c.guard.watch() // ends with the session
}

func (g *guard) watch() {
	ticker := time.NewTicker(disk.Every)
	defer ticker.Stop()
	for {
		select {
		case <-g.client.session.CloseChan():
			return
		case <-ticker.C:
		}
		g.hold()
	}
}

// hold looks once, and kills for a limit that is exceeded. No command begins meanwhile,
// so that none is killed for what another did.
func (g *guard) hold() {
	g.killing.Lock()
	defer g.killing.Unlock()
	g.mutex.Lock()
	limit := g.look()
	g.mutex.Unlock()
	if limit == sandbox.NoLimit {
		return
	}
	select {
	case g.hit <- limit: // the command that runs is killed, with everything else
		return
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), killGrace)
	defer cancel()
	if err := g.client.kill(ctx); err != nil {
		_ = g.client.Close() // a guest that does not kill is broken
	}
}

// look returns the limit that is exceeded, if one is, once for each time that it is.
// It is called with the mutex held.
func (g *guard) look() sandbox.Limit {
	limit := g.exceededNow()
	if limit != sandbox.NoLimit {
		g.found = limit
	}
	return limit
}

func (g *guard) exceededNow() sandbox.Limit {
	if g.kills != nil {
		if now := g.kills(); now > g.killed {
			g.killed = now
			return sandbox.MemoryLimit
		}
	}
	return g.disk.look()
}

// begin says how large the files of the next command may be. A sandbox that has
// filled its disk again and again is ended.
func (g *guard) begin(most int64) (int64, error) {
	if g == nil {
		return most, nil
	}
	g.killing.Lock() // it is held for as long as killGrace at most
	defer g.killing.Unlock()
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.found = sandbox.NoLimit
	most, err := g.disk.begin(most)
	if err != nil {
		_ = g.client.Close()
	}
	return most, err
}

// exitFileTooLarge is how a process ends that wrote a file larger than it may:
// 128 and the number of SIGXFSZ.
const exitFileTooLarge = 128 + 25

// end says which limit a command has exceeded that ended by itself. It may have been
// found just before, when nobody could be told any more.
func (g *guard) end(exit int) sandbox.Limit {
	if g != nil {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		g.disk.watch.CommandEnded()
		g.look()
		if g.found != sandbox.NoLimit {
			return g.found
		}
	}
	if exit == exitFileTooLarge {
		return sandbox.DiskLimit
	}
	return sandbox.NoLimit
}

// explain says of a sandbox that was lost if the kernel ended processes of it for their
// memory, one of which may have been the guest.
func (g *guard) explain(err error) error {
	if g == nil || task.CodeOf(err) != task.Unavailable {
		return err
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.found != sandbox.MemoryLimit {
		g.look()
	}
	if g.found != sandbox.MemoryLimit {
		return err
	}
	return sandbox.OutOfMemory(err)
}

func (g *guard) exceeded() <-chan sandbox.Limit {
	if g == nil {
		return nil
	}
	return g.hit
}

// kill has the guest kill everything but itself.
func (c *Client) kill(ctx context.Context) error {
	return c.ask(ctx, request{Do: killEverything}, "what runs in the sandbox cannot be killed", func(stream net.Conn) error {
		return awaitAnswer(stream, nil)
	})
}
