package limit

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"github.com/toryo-dev/toryo/internal/access"
)

// maxStrangers is how many connections one client may have on which nobody has shown
// a valid token or session yet. Each can hold the headers of a request. When there is
// one more, the oldest of them is closed: whoever is slow makes way.
const maxStrangers = 256

// Connections keeps those connections of a server on which nobody is known.
type Connections struct {
	mutex   sync.Mutex
	clients map[string]*list.List // of *connection, the oldest first
	all     map[net.Conn]*connection
}

// connection is one of a client.
type connection struct {
	in     *Connections
	conn   net.Conn
	client string
	place  *list.Element // nil when somebody is known on it
}

type connectionKey struct{}

// NewConnections makes Connections. [Connections.Opened] and [Connections.Changed] are for
// the server.
func NewConnections() *Connections {
	return &Connections{clients: make(map[string]*list.List), all: make(map[net.Conn]*connection)}
}

// Opened is called for each new connection, before its first request; see
// [http.Server.ConnContext].
func (c *Connections) Opened(ctx context.Context, conn net.Conn) context.Context {
	made := &connection{in: c, conn: conn, client: access.Network(conn.RemoteAddr().String())}
	oldest := c.add(made)
	if encrypted, is := oldest.(*tls.Conn); is {
		oldest = encrypted.NetConn() // to end TLS in order can take seconds
	}
	if oldest != nil {
		_ = oldest.Close() // whoever reads from it finds it closed
	}
	return context.WithValue(ctx, connectionKey{}, made)
}

func (c *Connections) add(made *connection) (tooMany net.Conn) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	of := c.clients[made.client]
	if of == nil {
		of = list.New()
		c.clients[made.client] = of
	}
	made.place = of.PushBack(made)
	c.all[made.conn] = made
	if of.Len() <= maxStrangers {
		return nil
	}
	oldest, _ := of.Front().Value.(*connection)
	c.leave(oldest)
	return oldest.conn
}

// Changed is called for each change of a connection's state; see [http.Server.ConnState].
func (c *Connections) Changed(conn net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if found := c.all[conn]; found != nil {
		c.leave(found)
	}
}

// Known says that somebody is known on the connection that a request came in on, whose
// context it is.
func Known(request context.Context) {
	c, found := request.Value(connectionKey{}).(*connection)
	if !found {
		return
	}
	c.in.mutex.Lock()
	defer c.in.mutex.Unlock()
	c.in.leave(c)
}

// leave takes a connection off the list.
func (c *Connections) leave(one *connection) {
	if one.place == nil {
		return
	}
	of := c.clients[one.client]
	of.Remove(one.place)
	one.place = nil
	delete(c.all, one.conn)
	if of.Len() == 0 {
		delete(c.clients, one.client)
	}
}
