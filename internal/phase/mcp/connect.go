package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toryo-dev/toryo/internal/phase/tool"
)

// Launchers start the commands of servers.
type Launchers struct {
	Sandbox Launcher
	Host    Launcher // nil means that nothing may run on the host
}

// Connections are the servers of a run. Close them when it ends.
type Connections struct {
	servers []*connection
	tools   []tool.Tool
}

// Connect starts or connects to the servers, all at the same time, and asks for
// their tools. A server that cannot be had is left out; the error says so for
// each, and the connections are good in any case.
func Connect(ctx context.Context, servers []Server, launchers Launchers, logger *slog.Logger) (*Connections, error) {
	c := &Connections{}
	names := newNames()
	lists := make([][]*sdk.Tool, len(servers))
	failures := make([]error, len(servers))
	var group sync.WaitGroup
	for i, server := range servers {
		launcher := launchers.Sandbox
		if server.OnHost {
			launcher = launchers.Host
		}
		// A server outlives the call that started it: it ends with Close.
		lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
		one := &connection{server: server, launcher: launcher, logger: logger, lasting: lasting, cancel: cancel}
		c.servers = append(c.servers, one)
		group.Go(func() { lists[i], failures[i] = one.begin(ctx) })
	}
	group.Wait()
	for i, list := range lists {
		for _, found := range list {
			c.tools = append(c.tools, newTool(c.servers[i], found, names))
		}
	}
	return c, errors.Join(failures...)
}

// Tools are the tools of all servers, in the order of the configuration.
func (c *Connections) Tools() []tool.Tool { return c.tools }

// Close ends all connections and the programs that were started.
func (c *Connections) Close() error {
	failures := make([]error, len(c.servers))
	var group sync.WaitGroup
	for i, server := range c.servers {
		group.Go(func() { failures[i] = server.close() })
	}
	group.Wait()
	return errors.Join(failures...)
}

// connection is one server. When it is lost, the next call connects anew.
type connection struct {
	server   Server
	launcher Launcher
	logger   *slog.Logger
	lasting  context.Context //nolint:containedctx // the life of the program, ended by close
	cancel   context.CancelFunc

	mu      sync.Mutex
	session *sdk.ClientSession
	stop    func() error
	closed  bool
}

func (c *connection) begin(ctx context.Context) ([]*sdk.Tool, error) {
	if err := c.server.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.server.timeout())
	defer cancel()
	session, err := c.get(ctx)
	if err != nil {
		return nil, err
	}
	var list []*sdk.Tool
	for found, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("list the tools of the MCP server %s: %w", c.server.Name, err)
		}
		if list = append(list, found); len(list) == mostTools {
			c.logger.Warn("the MCP server has more tools than a model is given", "server", c.server.Name, "given", mostTools)
			break
		}
	}
	return list, nil
}

// get returns the session, and makes it when there is none.
func (c *connection) get(ctx context.Context) (*sdk.ClientSession, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("the MCP server %s was closed", c.server.Name)
	}
	if c.session != nil {
		return c.session, nil
	}
	transport, stop, err := c.server.open(c.lasting, c.launcher) //nolint:contextcheck // the program outlives the call
	if err != nil {
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "toryo", Version: "1"}, &sdk.ClientOptions{Logger: c.logger})
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the MCP server %s: %w", c.server.Name, err), stop())
	}
	c.session, c.stop = session, stop
	return session, nil
}

// lost forgets a session that is of no more use.
func (c *connection) lost(session *sdk.ClientSession) {
	c.mu.Lock()
	if c.session != session {
		c.mu.Unlock()
		return
	}
	stop := c.stop
	c.session, c.stop = nil, nil
	c.mu.Unlock()
	if err := endBoth(session, stop); err != nil {
		c.logger.Warn("the rest of a lost MCP server", "server", c.server.Name, "error", err)
	}
}

func (c *connection) close() error {
	c.mu.Lock()
	session, stop := c.session, c.stop
	c.session, c.stop, c.closed = nil, nil, true
	c.mu.Unlock()
	defer c.cancel()
	if session == nil {
		return nil
	}
	return endBoth(session, stop)
}

// endBoth closes a session and stops its program. It does not wait for a server
// that hangs: the connection is gone either way.
func endBoth(session *sdk.ClientSession, stop func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- session.Close() }() // ends at the latest when the program is stopped
	select {
	case <-ended:
	case <-time.After(stopWithin):
	}
	return stop()
}
