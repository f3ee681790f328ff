package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
)

// The channels of an exec: the first byte of each message names one.
const (
	channelStdin  byte = 0
	channelStdout byte = 1
	channelStderr byte = 2
	channelStatus byte = 3
)

// protocols are those of exec over WebSocket, the newer first. They differ in how
// standard input is closed, which we never do alone.
var protocols = []string{"v5.channel.k8s.io", "v4.channel.k8s.io"}

const pingEvery = 30 * time.Second

// stream is the standard streams of a process in a pod. It is read by one
// goroutine and written by one.
type stream struct {
	socket *websocket.Conn
	ctx    context.Context //nolint:containedctx // of the connection, which has no other
	cancel context.CancelFunc
	rest   []byte       // of the last message
	stderr guest.Stderr // what came on standard error
	status error        // how the process ended
}

// exec starts a process in a pod. The context bounds the start only.
func (a *api) exec(ctx context.Context, pod string, command []string) (*stream, error) {
	query := url.Values{"container": {containerName}, "command": command, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}
	header := http.Header{}
	if err := a.authorize(header); err != nil {
		return nil, err
	}
	address := a.address(a.path("pods", pod, "exec"), query).String()
	socket, answer, err := websocket.Dial(ctx, address, //nolint:bodyclose // the connection is the body
		&websocket.DialOptions{HTTPClient: a.upgrades, HTTPHeader: header, Subprotocols: protocols, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		if answer != nil && answer.StatusCode >= http.StatusBadRequest {
			return nil, readStatus(answer)
		}
		return nil, err
	}
	if socket.Subprotocol() == "" {
		_ = socket.CloseNow()
		return nil, errors.New("the API server does not speak exec over WebSocket: it is too old")
	}
	socket.SetReadLimit(-1) // whatever the other end takes for one message
	made := &stream{socket: socket}
	made.ctx, made.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go made.ping() //nolint:contextcheck // it lives until Close, and not as long as the start
	return made, nil
}

// ping keeps whatever is in between from taking the connection for dead, and finds
// out when it is.
func (s *stream) ping() {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(s.ctx, pingEvery)
		err := s.socket.Ping(ctx)
		cancel()
		if err != nil {
			_ = s.Close()
			return
		}
	}
}

// Read reads standard output.
func (s *stream) Read(data []byte) (int, error) {
	for len(s.rest) == 0 {
		_, message, err := s.socket.Read(s.ctx)
		if err != nil {
			return 0, errors.Join(s.ended(), err)
		}
		if len(message) == 0 {
			continue
		}
		switch message[0] {
		case channelStdout:
			s.rest = message[1:]
		case channelStderr:
			_, _ = s.stderr.Write(message[1:]) // it never fails
		case channelStatus:
			s.status = readExit(message[1:])
			return 0, errors.Join(s.ended(), io.EOF)
		}
	}
	n := copy(data, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// ended is what the process said when it failed.
func (s *stream) ended() error {
	said := strings.TrimSpace(string(s.stderr.Bytes()))
	if s.status == nil || said == "" {
		return s.status
	}
	return sandbox.WithTextReason(fmt.Errorf("%w: %s", s.status, said), said)
}

// Write writes to standard input. A message has to be one frame: the API server
// takes the first byte of every frame for a channel.
func (s *stream) Write(data []byte) (int, error) {
	for at := 0; at < len(data); at += longestMessage {
		part := data[at:min(len(data), at+longestMessage)]
		if err := s.socket.Write(s.ctx, websocket.MessageBinary, append([]byte{channelStdin}, part...)); err != nil {
			return at, err
		}
	}
	return len(data), nil
}

const longestMessage = 128 << 10

// Close cuts the connection.
func (s *stream) Close() error {
	s.cancel()
	return s.socket.CloseNow()
}

// readExit reads how a process ended; nil if it did well.
func readExit(text []byte) error {
	var said struct {
		Status, Message string
	}
	if err := json.Unmarshal(bytes.TrimSpace(text), &said); err != nil {
		return fmt.Errorf("read how the process ended: %w", err)
	}
	if said.Status == "Success" {
		return nil
	}
	return errors.New(said.Message)
}

// feed runs a process in a pod, gives it input and waits until it says with a line that it has
// taken it: what is sent before that, a program that reads ahead would take for input. The
// streams are the caller's then.
func (a *api) feed(ctx context.Context, pod string, command []string, input []byte) (*stream, error) {
	process, err := a.exec(ctx, pod, command)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = process.Close() })
	defer stop()
	if _, err = process.Write(input); err == nil {
		_, err = io.ReadFull(process, make([]byte, 1))
	}
	if err != nil {
		_ = process.Close()
		return nil, errors.Join(ctx.Err(), err)
	}
	return process, nil
}
