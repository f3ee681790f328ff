package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// Proxy is the gate of one sandbox.
type Proxy struct {
	list   *List
	log    *slog.Logger
	dialer func(trust Trust) *net.Dialer
	server *http.Server
	accept *handedIn

	admission admission
	refusals  refusals

	mutex  sync.Mutex
	policy sandbox.Policy
	open   map[*connection]bool
}

// connection is one connection to the outside, and where it goes.
type connection struct {
	net.Conn
	proxy *Proxy
	host  string
	port  int
}

// Close ends it and has the proxy forget it.
func (c *connection) Close() error {
	c.proxy.mutex.Lock()
	delete(c.proxy.open, c)
	c.proxy.mutex.Unlock()
	return c.Conn.Close()
}

const dialTimeout = 30 * time.Second

// New makes a gate with a policy.
func New(list *List, policy sandbox.Policy, log *slog.Logger) *Proxy {
	p := &Proxy{list: list, log: log, policy: policy, open: map[*connection]bool{},
		admission: admission{of: map[string]int{}}, refusals: refusals{seen: map[string]bool{}},
		accept: &handedIn{connections: make(chan net.Conn), closed: make(chan struct{})}}
	p.dialer = func(trust Trust) *net.Dialer { return &net.Dialer{Timeout: dialTimeout, Control: control(trust)} }
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: headerTimeout, IdleTimeout: keepTimeout, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)} // it would tell what programs inside send
	go func() { _ = p.server.Serve(p.accept) }() // until Close
	return p
}

// Serve takes over a connection from inside. One more than a sandbox may have is
// closed at once.
func (p *Proxy) Serve(inside net.Conn) { p.serve(inside, "") }

// serve takes over a connection of one of the sandboxes that share the proxy.
func (p *Proxy) serve(inside net.Conn, of string) {
	taken, ok := p.admission.admit(inside, of)
	if !ok {
		p.refusals.note(p.log, "too many connections", of, 0)
		_ = inside.Close()
		return
	}
	p.accept.hand(taken)
}

// SetPolicy changes the policy and cuts the connections that it does not allow.
func (p *Proxy) SetPolicy(policy sandbox.Policy) {
	var cut []*connection
	p.mutex.Lock()
	p.policy = policy
	for c := range p.open {
		if !p.allowed(c.host, c.port) {
			cut = append(cut, c)
		}
	}
	p.mutex.Unlock()
	for _, c := range cut {
		_ = c.Close()
	}
}

// Close cuts everything and takes no more connections.
func (p *Proxy) Close() error {
	p.SetPolicy(sandbox.NoNetwork)
	err := p.server.Close()
	_ = p.accept.Close()
	p.refusals.finish(p.log)
	return err
}

// allowed is called with the mutex held.
func (p *Proxy) allowed(host string, port int) bool {
	switch p.policy {
	case sandbox.OpenWorld:
		return true
	case sandbox.Registries:
		return p.list.Trust(host, port) != Unlisted
	default:
		return false
	}
}

// dial connects to the outside if the policy allows it.
func (p *Proxy) dial(ctx context.Context, host string, port int) (net.Conn, error) {
	p.mutex.Lock()
	allowed := p.allowed(host, port)
	p.mutex.Unlock()
	if !allowed {
		return nil, errRefused
	}
	outside, err := p.dialer(p.list.Trust(host, port)).DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: outside, proxy: p, host: host, port: port}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.allowed(host, port) { // the policy changed meanwhile
		_ = outside.Close()
		return nil, errRefused
	}
	p.open[c] = true
	return c, nil
}

// control is asked with each address that is about to be dialled.
func control(trust Trust) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return MayReach(to.Addr(), trust)
	}
}

// ServeHTTP answers one request of a program inside.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		p.tunnel(w, r)
		return
	}
	p.plain(w, r)
}

func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	host, port, ok := hostPort(r.Host, 443)
	if !ok {
		http.Error(w, "bad address", http.StatusBadRequest)
		return
	}
	outside, err := p.dial(r.Context(), host, port)
	if err != nil {
		p.refuse(w, host, port, err)
		return
	}
	defer func() { _ = outside.Close() }()
	inside, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "the connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	defer func() { _ = inside.Close() }()
	if _, err := io.WriteString(inside, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	within, without := busy{inside}, busy{outside}
	head, _ := buffered.Peek(buffered.Reader.Buffered()) // what came with the request
	var outward sync.WaitGroup
	outward.Go(func() {
		_, _ = io.Copy(without, io.MultiReader(bytes.NewReader(head), within)) // an error ends the tunnel
		if half, can := outside.(*connection).Conn.(*net.TCPConn); can {
			_ = half.CloseWrite()
		}
	})
	_, _ = io.Copy(within, without)
	_ = inside.Close()
	_ = outside.Close()
	outward.Wait()
}

// hopByHop are headers that concern one connection only.
var hopByHop = []string{"Proxy-Connection", "Proxy-Authorization", "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func (p *Proxy) plain(w http.ResponseWriter, r *http.Request) {
	host, port, ok := hostPort(r.URL.Host, 80)
	if !ok || r.URL.Scheme != "http" {
		http.Error(w, "this is a proxy: ask with CONNECT or an absolute http address", http.StatusBadRequest)
		return
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: 5 * time.Minute,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx, host, port) }}
	outward := r.Clone(r.Context())
	outward.RequestURI = ""
	for _, name := range hopByHop {
		outward.Header.Del(name)
	}
	answer, err := transport.RoundTrip(outward)
	if err != nil {
		p.refuse(w, host, port, err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	for _, name := range hopByHop {
		answer.Header.Del(name)
	}
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // the program inside sees a short answer if this fails
}

// refuse answers with what a person can act on; that the policy refused is told
// from that the outside did not answer.
func (p *Proxy) refuse(w http.ResponseWriter, host string, port int, err error) {
	w.Header().Set("Connection", "close") // what follows a refused CONNECT is no request
	if errors.Is(err, errRefused) {
		p.refusals.note(p.log, "network policy", host, port)
		http.Error(w, "toryo: the network policy of this sandbox does not allow "+host+":"+strconv.Itoa(port), http.StatusForbidden)
		return
	}
	http.Error(w, "toryo: "+host+" cannot be reached: "+err.Error(), http.StatusBadGateway)
}

func hostPort(address string, otherwise int) (string, int, bool) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return normal(address), otherwise, address != ""
	}
	port, err := strconv.Atoi(text)
	return normal(host), port, err == nil && host != "" && port > 0 && port < 65536
}

// handedIn is a listener for connections that are handed in.
type handedIn struct {
	connections chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

func (h *handedIn) hand(c net.Conn) {
	select {
	case h.connections <- c:
	case <-h.closed:
		_ = c.Close()
	}
}

func (h *handedIn) Accept() (net.Conn, error) {
	select {
	case c := <-h.connections:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

func (h *handedIn) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

func (h *handedIn) Addr() net.Addr { return &net.UnixAddr{Name: "sandbox", Net: "unix"} }
