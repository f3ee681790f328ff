package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// Client is the host's end of the session with one guest.
type Client struct {
	session *yamux.Session
	fileMax int64
	env     map[string]string
	mirror  *mirror // of a workspace that is not shared; nil when it is

	running sync.Mutex // held while a command runs
	guard   *guard     // of the limits that the host watches; nil when there is none
}

// killGrace is how long a guest may take to end a command that it was told to
// kill. A guest that takes longer is broken.
const killGrace = 30 * time.Second

// NewClient speaks to the guest at the other end of the connection, and hands
// each connection that a program inside makes to the proxy to connections. It
// owns the connection from then on.
func NewClient(connection io.ReadWriteCloser, connections func(net.Conn), fileMax int64) (*Client, error) {
	config := sessionConfig(writeTimeout)
	config.MaxStreamWindowSize = pipeWindow
	session, err := yamux.Client(connection, config)
	if err != nil {
		return nil, err
	}
	client := &Client{session: session, fileMax: fileMax}
	go client.accept(connections) // ends with the session
	return client, nil
}

// NewLinkedClient speaks to a guest over a link that may be without a connection
// for a while.
func NewLinkedClient(link *Link, patience time.Duration, connections func(net.Conn), fileMax int64) (*Client, error) {
	session, err := yamux.Client(link, sessionConfig(patience))
	if err != nil {
		return nil, err
	}
	client := &Client{session: session, fileMax: fileMax}
	go client.accept(connections) // ends with the session
	return client, nil
}

const (
	writeTimeout = 30 * time.Second
	// pipeWindow bounds what is held of a stream that is not read; there is no
	// smaller one. Over a network more has to be on its way.
	pipeWindow    = 256 << 10
	networkWindow = 1 << 20
	// mostStreams is how many streams there may be at one time. A guest with more
	// does not keep to the protocol.
	mostStreams = 512
)

func sessionConfig(writeTimeout time.Duration) *yamux.Config {
	config := yamux.DefaultConfig()
	config.LogOutput = io.Discard
	config.EnableKeepAlive = false // the connection is a pipe: it ends with the process
	config.MaxStreamWindowSize = networkWindow
	config.ConnectionWriteTimeout = writeTimeout
	return config
}

func (c *Client) accept(connections func(net.Conn)) {
	for {
		stream, err := c.session.Accept()
		if err != nil {
			return
		}
		if c.session.NumStreams() > mostStreams {
			_ = c.session.Close()
			return
		}
		if connections == nil {
			_ = stream.Close()
			continue
		}
		connections(stream)
	}
}

// Closed is closed when the session has ended.
func (c *Client) Closed() <-chan struct{} { return c.session.CloseChan() }

// Close ends the session, upon which the guest ends.
func (c *Client) Close() error { return c.session.Close() }

// SetEnvironment has the greeting tell the guest the variables for all commands, in
// place of those that it was started with.
func (c *Client) SetEnvironment(env map[string]string) { c.env = env }

// Hello waits until the guest is ready.
func (c *Client) Hello(ctx context.Context) error {
	stream, err := c.open(request{Hello: true, Env: c.env})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Now()) })
	defer stop()
	kind, data, err := readFrame(stream)
	if err != nil {
		return task.Wrap(task.Unavailable, errors.Join(ctx.Err(), err), "the sandbox did not begin")
	}
	var answer hello
	if kind != frameHello || json.Unmarshal(data, &answer) != nil {
		return task.Errorf(task.Unavailable, "the sandbox answered with something else than a greeting")
	}
	if answer.Version != protocolVersion {
		return task.Errorf(task.NotReady, "the program in the sandbox speaks version %d of the protocol, and this one version %d", answer.Version, protocolVersion).
			WithHint("start this program again if it was replaced by another release while it ran; on Kubernetes set sandbox.kubernetes.guest_image to the image of the same release")
	}
	if answer.Error != "" {
		return received(task.Errorf(task.Unavailable, "the sandbox cannot run commands: %s", answer.Error), answer.Exhausted)
	}
	return nil
}

func (c *Client) open(what request) (net.Conn, error) {
	stream, err := c.session.Open()
	if err != nil {
		return nil, task.Wrap(task.Unavailable, err, "the sandbox is gone")
	}
	if err := writeMessage(stream, frameRequest, what); err != nil {
		_ = stream.Close()
		return nil, task.Wrap(task.Unavailable, err, "the sandbox is gone")
	}
	return stream, nil
}

// Pipes makes the connection to a guest of the standard streams of its process.
func Pipes(from io.Reader, to io.WriteCloser) io.ReadWriteCloser { return &pipes{from, to} }

type pipes struct {
	io.Reader
	out io.WriteCloser
}

func (p *pipes) Write(data []byte) (int, error) { return p.out.Write(data) }
func (p *pipes) Close() error                   { return p.out.Close() }

// Run runs a command. A limit that the guard finds exceeded gets it killed.
func (c *Client) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	command, err := command.Validate()
	if err != nil {
		return sandbox.Result{}, err
	}
	c.running.Lock()
	defer c.running.Unlock()
	if err := ctx.Err(); err != nil {
		return sandbox.Result{}, err
	}
	started := time.Now()
	fileMax, err := c.guard.begin(c.fileMax)
	if err != nil {
		return sandbox.Result{}, err
	}
	stream, err := c.open(request{Command: rawString(command.Text), Folder: rawString(command.Folder), Session: command.Session,
		Limit: command.OutputLimit, FileSize: fileMax, Fresh: command.Fresh})
	if err != nil {
		return sandbox.Result{}, c.guard.explain(err)
	}
	defer func() { _ = stream.Close() }()

	var (
		limit    sandbox.Limit
		watching sync.WaitGroup
		done     = make(chan struct{})
	)
	watching.Go(func() { limit = watch(ctx, stream, command.Timeout, c.guard.exceeded(), done) })
	result, err := collect(stream, command)
	close(done)
	watching.Wait()

	result.Duration = time.Since(started)
	if result.Exceeded == sandbox.NoLimit {
		result.Exceeded = limit
	}
	if result.Exceeded == sandbox.NoLimit && err == nil {
		result.Exceeded = c.guard.end(result.ExitCode)
	}
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	return result, c.guard.explain(err)
}

// watch has a running command killed when its time is up, a limit is exceeded or
// nobody waits for it any more. It returns the limit, when done is closed.
func watch(ctx context.Context, stream net.Conn, timeout time.Duration, exceeded <-chan sandbox.Limit, done <-chan struct{}) sandbox.Limit {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	limit := sandbox.NoLimit
	select {
	case <-done:
		return limit
	case <-timer.C:
		limit = sandbox.TimeLimit
	case limit = <-exceeded:
	case <-ctx.Done():
	}
	_ = stream.SetDeadline(time.Now().Add(killGrace))
	_ = writeFrame(stream, frameKill, nil) // the deadline ends the run if this fails
	<-done
	return limit
}

// collect reads the frames of a run up to its end.
func collect(stream net.Conn, command sandbox.Command) (sandbox.Result, error) {
	var (
		result sandbox.Result
		tail   []byte
		before frameKind // of what the log ends with
		taken  int
	)
	for {
		kind, data, err := readFrame(stream)
		if err != nil {
			return result, task.Wrap(task.Unavailable, err, "the sandbox died while a command ran")
		}
		switch kind {
		case frameStdout, frameStderr:
			if taken += len(data); taken > command.OutputLimit {
				return result, task.Errorf(task.Unavailable, "the sandbox sent more output than it was asked for")
			}
			result.Log = appendLines(result.Log, data, kind != before)
			before = kind
			if kind == frameStdout {
				result.Stdout = append(result.Stdout, data...)
			}
			if command.Output != nil {
				command.Output(sandbox.Stream(kind), data)
			}
		case frameTail:
			tail = data
		case frameEnd:
			var last end
			if err := json.Unmarshal(data, &last); err != nil {
				return result, task.Wrap(task.Unavailable, err, "the sandbox sent a bad end")
			}
			return finish(result, last, tail)
		default:
			return result, task.Errorf(task.Unavailable, "the sandbox sent an unknown frame")
		}
	}
}

// appendLines appends what was printed. If it is from the other of the two outputs, it begins with a
// line of its own: programs write lines in pieces, and who reads the log would miss the name of a
// failing test that stands behind half a line.
func appendLines(log, data []byte, other bool) []byte {
	if other && len(log) > 0 && log[len(log)-1] != '\n' {
		log = append(log, '\n')
	}
	return append(log, data...)
}

// longestCut is how much is left out besides, so that what is left out begins and
// ends with a line: half of a secret is one that nobody finds.
const longestCut = 4096

func wholeLines(head, tail []byte) (newHead, newTail []byte) {
	if at := bytes.LastIndexByte(head, '\n') + 1; len(head)-at <= longestCut {
		head = head[:at]
	}
	if at := bytes.IndexByte(tail[:min(len(tail), longestCut)], '\n') + 1; at > 0 {
		tail = tail[at:]
	}
	return head, tail
}

func finish(result sandbox.Result, last end, tail []byte) (sandbox.Result, error) {
	result.ExitCode, result.Bytes = last.ExitCode, last.Bytes
	result.Exceeded = sandbox.Limit(last.Exceeded)
	if last.Dropped > 0 || len(tail) > 0 {
		result.Cut = true // Stdout has no tail
		if last.Dropped > 0 {
			result.Log, tail = wholeLines(result.Log, tail)
			result.Log = append(result.Log, fmt.Sprintf("\n[%d bytes left out]\n", last.Dropped)...)
		}
		result.Log = append(result.Log, tail...)
	}
	if last.Error != "" {
		return result, received(task.Errorf(task.Unavailable, "the command could not be started: %s", last.Error), last.Exhausted)
	}
	return result, nil
}
