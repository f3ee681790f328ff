package egress

import (
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"
)

const (
	// mostConnections is how many connections a sandbox may have to the proxy at one
	// time, and mostOfAll how many all sandboxes may that share one proxy.
	mostConnections = 128
	mostOfAll       = 4096
	// idleTimeout is after how long without traffic a tunnel is cut.
	idleTimeout = 10 * time.Minute
	// headerTimeout is how long a request may take to come, and keepTimeout how long
	// the next one.
	headerTimeout = 10 * time.Second
	keepTimeout   = 15 * time.Second
	// headerBytes is how long the head of a request may be.
	headerBytes = 16 << 10
	// mostLogged is how many different refusals of one sandbox are logged.
	mostLogged = 20
)

// admission counts the connections of each sandbox.
type admission struct {
	mutex sync.Mutex
	all   int
	of    map[string]int
}

// admit takes a connection of a sandbox, or refuses it.
func (a *admission) admit(connection net.Conn, of string) (net.Conn, bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.of[of] >= mostConnections || a.all >= mostOfAll {
		return nil, false
	}
	a.all++
	a.of[of]++
	return &admitted{Conn: connection, done: sync.OnceFunc(func() {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		a.all--
		if a.of[of]--; a.of[of] == 0 {
			delete(a.of, of)
		}
	})}, true
}

// admitted is a connection that is counted until it is closed.
type admitted struct {
	net.Conn
	done func()
}

func (a *admitted) Close() error {
	a.done()
	return a.Conn.Close()
}

// busy is a connection that is cut when nothing has passed for a while, in either
// direction: of a long download nothing is heard from who asked for it.
type busy struct{ net.Conn }

func (b busy) Read(data []byte) (int, error) {
	_ = b.SetDeadline(time.Now().Add(idleTimeout)) // a connection that cannot be timed is one that is closed
	return b.Conn.Read(data)
}

func (b busy) Write(data []byte) (int, error) {
	_ = b.SetDeadline(time.Now().Add(idleTimeout))
	return b.Conn.Write(data)
}

// refusals logs what a sandbox was refused: each thing once, and not too many.
type refusals struct {
	mutex sync.Mutex
	seen  map[string]bool
	more  int
}

func (r *refusals) note(log *slog.Logger, what, host string, port int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	key := what + " " + net.JoinHostPort(host, strconv.Itoa(port))
	if r.seen[key] || len(r.seen) >= mostLogged {
		r.more++
		return
	}
	r.seen[key] = true
	log.Info("a sandbox was refused a connection", "reason", what, "host", host, "port", port)
}

// finish logs how many refusals were not logged.
func (r *refusals) finish(log *slog.Logger) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.more > 0 {
		log.Info("a sandbox was refused more connections", "count", r.more)
		r.more = 0
	}
}
