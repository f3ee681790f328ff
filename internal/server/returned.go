package server

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
)

// returned is a listener: net/http gets connections on it that it had before, each when the next
// request begins on it. Who is at their other end has shown a token.
type returned struct {
	address net.Addr
	conns   chan net.Conn
	closed  chan struct{}

	mutex sync.Mutex
	over  bool                  // closed is closed
	idle  map[net.Conn]struct{} // nothing has come on them since they were answered
}

func newReturned(address net.Addr) *returned {
	return &returned{address: address, conns: make(chan net.Conn), closed: make(chan struct{}), idle: make(map[net.Conn]struct{})}
}

// give gives a connection back, on which something may have come already. Otherwise it waits until
// something comes, as long as a connection may be idle: net/http counts the time for the headers of
// a request from when it gets a connection. It passes over empty lines behind the body of a request
// (RFC 9112, 2.2) only on a connection that it had before, so they are taken away here. The token with the
// hash known was good on the connection.
func (r *returned) give(conn net.Conn, early, known []byte) {
	if before, is := conn.(*returnedConn); is { // each time one around the other would be without end
		conn, early = before.Conn, append(early, before.early...)
	}
	if early = bytes.TrimLeft(early, emptyLines); len(early) == 0 {
		early = r.await(conn)
	}
	if len(early) > 0 {
		select {
		case r.conns <- &returnedConn{Conn: conn, early: early, known: known}:
			return
		case <-r.closed:
		}
	}
	_ = conn.Close() // there is nobody to tell
}

// emptyLines are what empty lines consist of.
const emptyLines = "\r\n"

// await returns the first byte of the next request; none if there will be no such request.
func (r *returned) await(conn net.Conn) []byte {
	if !r.keep(conn) {
		return nil
	}
	defer r.drop(conn)
	if err := conn.SetReadDeadline(time.Now().Add(idleTimeout)); err != nil {
		return nil
	}
	first := make([]byte, 1)
	for {
		if n, _ := conn.Read(first); n == 0 { // whatever is wrong, there is no request
			return nil
		}
		if !bytes.Contains([]byte(emptyLines), first) {
			return first
		}
	}
}

// keep notes that a connection is idle, unless the listener is closed.
func (r *returned) keep(conn net.Conn) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.over {
		r.idle[conn] = struct{}{}
	}
	return !r.over
}

func (r *returned) drop(conn net.Conn) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.idle, conn)
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

// Close implements net.Listener. It closes the idle connections too.
func (r *returned) Close() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.over {
		r.over = true
		close(r.closed)
	}
	for conn := range r.idle {
		_ = conn.Close() // there is nobody to tell
	}
	return nil
}

type returnedKey struct{}

// opened marks the requests on a connection; see [http.Server.ConnContext].
func (*returned) opened(ctx context.Context, conn net.Conn) context.Context {
	if given, is := conn.(*returnedConn); is {
		return context.WithValue(ctx, returnedKey{}, given.known)
	}
	return ctx
}

// askedBefore reports whether a request shows the token that was good on its connection before,
// which has one request at a time. Thousands of agents may ask again at once. A proxy may have sent
// the request of somebody else on the same connection.
func askedBefore(r *http.Request) bool {
	known, _ := r.Context().Value(returnedKey{}).([]byte)
	return len(known) > 0 && bytes.Equal(known, access.Hash(bearerToken(r.Header.Get("Authorization"))))
}

// returnedConn is a connection from which something was read before it was given back.
type returnedConn struct {
	net.Conn
	early []byte
	known []byte
}

// Read implements net.Conn.
func (c *returnedConn) Read(p []byte) (int, error) {
	if len(c.early) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.early)
	c.early = c.early[n:]
	return n, nil
}

// CloseWrite lets the caller read the answer before the rest is closed; net/http looks for it.
func (c *returnedConn) CloseWrite() error {
	if half, is := c.Conn.(interface{ CloseWrite() error }); is {
		return half.CloseWrite()
	}
	return nil
}
