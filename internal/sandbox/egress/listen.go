package egress

import (
	"context"
	"fmt"
	"net"
)

// Listen has a proxy serve what connects to an address, for sandboxes that reach
// it over a network. It returns when the context ends, and closes the proxy.
func (p *Proxy) Listen(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	defer func() { _ = p.Close() }()
	for {
		connection, err := listener.Accept()
		if ctx.Err() != nil {
			return nil // it was asked to end
		}
		if err != nil {
			return fmt.Errorf("take a connection: %w", err)
		}
		p.serve(connection, hostOf(connection))
	}
}

// hostOf tells sandboxes apart that reach the proxy over a network.
func hostOf(connection net.Conn) string {
	host, _, err := net.SplitHostPort(connection.RemoteAddr().String())
	if err != nil {
		return ""
	}
	return host
}
