package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toryo-dev/toryo/internal/task"
)

// Server is one entry of mcp_servers: a command to talk to over its standard
// input and output, or the URL of a server that speaks streamable HTTP.
type Server struct {
	Name        string
	Command     []string
	Environment map[string]string
	URL         string
	Headers     map[string]string
	// OnHost runs the command beside the agent instead of in the sandbox.
	OnHost bool
	// Timeout is for one call, and for the start; 0 means one minute.
	Timeout time.Duration
}

const defaultTimeout = time.Minute

func (s Server) timeout() time.Duration {
	if s.Timeout <= 0 {
		return defaultTimeout
	}
	return s.Timeout
}

// Validate says what is wrong with the entry.
func (s Server) Validate() error {
	switch {
	case s.Name == "":
		return task.Errorf(task.BadConfig, "mcp_servers: a server has no name")
	case (len(s.Command) == 0) == (s.URL == ""):
		return task.Errorf(task.BadConfig, "mcp_servers.%s: give either a command or a url", s.Name)
	}
	return nil
}

// Process is a program that was started, by its standard input and output.
type Process struct {
	Input  io.WriteCloser
	Output io.ReadCloser
	// Stop ends the program and waits until it has ended.
	Stop func() error
}

// Launcher starts programs. The program lives until it is stopped, or until the
// context ends.
type Launcher interface {
	Launch(ctx context.Context, command []string, environment map[string]string) (Process, error)
}

// Host launches programs on this machine, with nothing of the agent's own
// environment but the search path.
type Host struct{}

// stopWithin is how long a program has to end by itself.
const stopWithin = 2 * time.Second

// Launch implements [Launcher].
func (Host) Launch(ctx context.Context, command []string, environment map[string]string) (Process, error) {
	program := exec.CommandContext(ctx, command[0], command[1:]...)
	program.Env = []string{"PATH=" + os.Getenv("PATH")}
	for key, value := range environment {
		program.Env = append(program.Env, key+"="+value)
	}
	program.WaitDelay = stopWithin
	input, err := program.StdinPipe()
	if err != nil {
		return Process{}, err
	}
	output, err := program.StdoutPipe()
	if err != nil {
		return Process{}, err
	}
	if err := program.Start(); err != nil {
		return Process{}, err
	}
	return Process{Input: input, Output: output, Stop: func() error { return stop(program, input) }}, nil
}

// stop closes the program's input, which asks it to end, and makes it end when it
// does not.
func stop(program *exec.Cmd, input io.Closer) error {
	_ = input.Close() // closed already is fine
	timer := time.AfterFunc(stopWithin, func() { _ = program.Process.Kill() })
	defer timer.Stop()
	_ = program.Wait() // how it ended does not matter any more
	return nil
}

// open makes the connection to a server.
func (s Server) open(ctx context.Context, launcher Launcher) (sdk.Transport, func() error, error) {
	if s.URL != "" {
		client := &http.Client{Transport: headers{s.Headers}, CheckRedirect: sameHost}
		return &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, MaxRetries: -1, DisableStandaloneSSE: true}, func() error { return nil }, nil
	}
	if launcher == nil {
		return nil, nil, task.Errorf(task.NotReady, "mcp_servers.%s: there is nothing that could run its command", s.Name)
	}
	process, err := launcher.Launch(ctx, s.Command, s.Environment)
	if err != nil {
		return nil, nil, fmt.Errorf("start the MCP server %s: %w", s.Name, err)
	}
	return &sdk.IOTransport{Reader: &bounded{ReadCloser: process.Output}, Writer: process.Input}, process.Stop, nil
}

// headers adds configured headers to every request.
type headers struct{ values map[string]string }

func (h headers) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	for key, value := range h.values {
		request.Header.Set(key, value)
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		answer.Body = &bounded{ReadCloser: answer.Body}
	}
	return answer, err
}

// sameHost keeps the configured headers, which are secrets, with the server that
// they are for.
func sameHost(request *http.Request, via []*http.Request) error {
	if from := via[0].URL; request.URL.Host != from.Host || request.URL.Scheme != from.Scheme {
		return fmt.Errorf("the server leads to %s, where its headers do not belong", request.URL.Host)
	}
	if len(via) >= 10 {
		return errors.New("the server leads on without end")
	}
	return nil
}

// longestMessage is how many bytes a message of a server may have: one line.
const longestMessage = 16 << 20

// bounded is what a server sends, up to a message that is too long.
type bounded struct {
	io.ReadCloser
	line int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if end := bytes.LastIndexByte(p[:n], '\n'); end >= 0 {
		b.line = n - end - 1
	} else {
		b.line += n
	}
	if b.line > longestMessage {
		return 0, fmt.Errorf("a message of the MCP server has more than %d MB", longestMessage>>20)
	}
	return n, err
}
