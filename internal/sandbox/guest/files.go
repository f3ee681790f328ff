package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Mirror has the client keep a folder of the host and the workspace inside the
// same, by Push and Pull. Whatever comes can be read and written by whoever runs
// this program. It is called before anything else.
func (c *Client) Mirror(dir string) error {
	files, err := newMirror(dir)
	if err != nil {
		return task.Wrap(task.NotFound, err, "the workspace cannot be opened")
	}
	files.atLeast, files.skip = 0o600, true
	c.mirror = files
	return nil
}

// Push sends what has changed in the folder into the sandbox.
func (c *Client) Push(ctx context.Context) error {
	return c.ask(ctx, request{Do: takeFiles}, "the workspace cannot be sent into the sandbox", func(stream net.Conn) error {
		return c.mirror.send(stream, noLimit, func() ([]rawString, error) { return nil, awaitAnswer(stream, nil) })
	})
}

// MirrorSize is what the files that the folder and the workspace have in common take
// of a disk.
func (c *Client) MirrorSize() int64 { return c.mirror.size() }

// takeSpare is by how much a guest may miss what it was asked for.
const takeSpare = 16 << 20

// Left is how many paths of the workspace stay inside: those for which there is no room
// in the folder, and those that cannot be made there.
type Left struct{ NoRoom, Skipped int }

// Pull brings what has changed inside into the folder. That takes no more than most
// bytes afterwards, give or take what a guest counts otherwise, or what it took before
// if that is more. What stays inside is tried again the next time.
func (c *Client) Pull(ctx context.Context, most int64) (Left, error) {
	var left Left
	asked := request{Do: sendFiles, Most: max(most, c.mirror.size())}
	err := c.ask(ctx, asked, "the workspace cannot be brought out of the sandbox", func(stream net.Conn) error {
		said, err := c.mirror.take(stream, most+takeSpare)
		if err != nil {
			return errors.Join(err, writeMessage(stream, frameAnswer, answer{Error: "it was not taken"}))
		}
		left = Left{NoRoom: said.left, Skipped: len(said.skipped)}
		return writeMessage(stream, frameAnswer, answer{Skipped: said.skipped})
	})
	return left, err
}

// Kept is a snapshot that a guest has written.
type Kept struct {
	Digest string
	Bytes  int64
}

// Keep has the guest write a snapshot to its folder for snapshots.
func (c *Client) Keep(ctx context.Context, before workdir.Listing) (Kept, error) {
	var said answer
	err := c.ask(ctx, request{Do: keepFiles}, "the snapshot cannot be kept", func(stream net.Conn) error {
		if err := writeNames(stream, before); err != nil {
			return err
		}
		return awaitAnswer(stream, &said)
	})
	return Kept{Digest: said.Digest, Bytes: said.Bytes}, err
}

// Restore has the guest put a snapshot back, which has to have the digest.
func (c *Client) Restore(ctx context.Context, digest string) error {
	return c.ask(ctx, request{Do: restoreHome, Digest: digest}, "the snapshot cannot be restored", func(stream net.Conn) error {
		return awaitAnswer(stream, nil)
	})
}

// Route sends the connections that programs make to the proxy to an address, or to
// the host if that is empty. Those that go to another address are cut.
func (c *Client) Route(ctx context.Context, address string) error {
	return c.ask(ctx, request{Do: changeRoute, Route: address}, "the way out of the sandbox cannot be changed", func(stream net.Conn) error {
		return awaitAnswer(stream, nil)
	})
}

// Reach returns those of the addresses that take connections from inside.
func (c *Client) Reach(ctx context.Context, addresses []string) ([]string, error) {
	var said answer
	err := c.ask(ctx, request{Do: tryToReach, Reach: addresses}, "the sandbox's network cannot be tried", func(stream net.Conn) error {
		return awaitAnswer(stream, &said)
	})
	return said.Reached, err
}

// Leave has the guest kill everything and end.
func (c *Client) Leave(ctx context.Context) error {
	return c.ask(ctx, request{Do: leave}, "the sandbox does not end", func(stream net.Conn) error { return awaitAnswer(stream, nil) })
}

// ask opens a stream for a request. The end of the context cuts it.
func (c *Client) ask(ctx context.Context, what request, failing string, do func(net.Conn) error) error {
	stream, err := c.open(what)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Now()) })
	defer stop()
	err = do(stream)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case task.CodeOf(err) != task.Internal:
		return fmt.Errorf("%s: %w", failing, err)
	default:
		return task.Wrap(task.Unavailable, err, failing)
	}
}

func awaitAnswer(stream net.Conn, into *answer) error {
	kind, data, err := readFrame(stream)
	if err != nil {
		return err
	}
	if kind != frameAnswer {
		return errors.New("the sandbox sent an unknown frame")
	}
	return readAnswer(data, into)
}

func writeNames(to io.Writer, names workdir.Listing) error {
	buffer := make([]byte, 0, archiveBuffer)
	for name := range names {
		if len(buffer)+len(name)+1 > archiveBuffer {
			if err := writeFrame(to, frameContent, buffer); err != nil {
				return err
			}
			buffer = buffer[:0]
		}
		buffer = append(append(buffer, name...), 0)
	}
	if err := writeFrame(to, frameContent, buffer); err != nil {
		return err
	}
	return writeFrame(to, frameDone, nil)
}

// caches are folders of a home that hold what programs have downloaded to install it.
// It is installed already, and a snapshot with it would make every start slower.
var caches = []string{".npm/_cacache", ".npm/_logs", ".cache/pip"}

// IsCache reports whether a path of a home is such a folder, which snapshots leave out.
func IsCache(name string) bool { return slices.Contains(caches, name) }
