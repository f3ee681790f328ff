package server

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// returned is a listener: net/http gets connections on it that it had before. Who is at their other
// end has shown a token.
type returned struct {
	address net.Addr
	conns   chan net.Conn
	closed  chan struct{}
	closing sync.Once

	mutex sync.Mutex
	quiet map[net.Conn]struct{} // given back, and nothing has come on them since
}

func newReturned(address net.Addr) *returned {
	return &returned{address: address, conns: make(chan net.Conn), closed: make(chan struct{}), quiet: make(map[net.Conn]struct{})}
}

// give gives a connection back on which something may have come already.
func (r *returned) give(conn net.Conn, early []byte) {
	if len(early) > 0 {
		conn = &earlyConn{Conn: conn, early: early}
	}
	select {
	case r.conns <- conn:
	case <-r.closed:
		_ = conn.Close() // there is nobody to tell
	}
}

// Accept implements net.Listener.
func (r *returned) Accept() (net.Conn, error) {
	select {
	case conn := <-r.conns:
		return conn, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (r *returned) Addr() net.Addr { return r.address }

// Close implements net.Listener. It closes the connections on which nothing has come too: for some
// seconds net/http would wait for them, as it does for new ones.
func (r *returned) Close() error {
	r.closing.Do(func() { close(r.closed) })
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for conn := range r.quiet {
		_ = conn.Close() // there is nobody to tell
	}
	return nil
}

// changed is called for each change of a connection's state; see [http.Server.ConnState].
func (r *returned) changed(conn net.Conn, state http.ConnState) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if state == http.StateNew {
		r.quiet[conn] = struct{}{}
	} else {
		delete(r.quiet, conn)
	}
}

type returnedKey struct{}

// opened marks the requests on a connection; see [http.Server.ConnContext].
func (*returned) opened(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, returnedKey{}, true)
}

// isReturned reports whether a request came on a connection on which somebody has shown a token
// before, and which has one request at a time. Thousands of agents may ask again at once.
func isReturned(request context.Context) bool { return request.Value(returnedKey{}) != nil }

// earlyConn is a connection from which something was read before it was given back.
type earlyConn struct {
	net.Conn
	early []byte
}

// Read implements net.Conn.
func (c *earlyConn) Read(p []byte) (int, error) {
	if len(c.early) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.early)
	c.early = c.early[n:]
	return n, nil
}
