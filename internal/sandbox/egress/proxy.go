package egress

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
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
	dialer *net.Dialer // for hosts of the list
	public *net.Dialer // for all others
	server *http.Server
	accept *handedIn

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

const (
	dialTimeout   = 30 * time.Second
	headerTimeout = 30 * time.Second
)

// New makes a gate with a policy.
func New(list *List, policy sandbox.Policy, log *slog.Logger) *Proxy {
	p := &Proxy{list: list, log: log, policy: policy, open: map[*connection]bool{},
		accept: &handedIn{connections: make(chan net.Conn), closed: make(chan struct{})}}
	p.dialer = &net.Dialer{Timeout: dialTimeout}
	p.public = &net.Dialer{Timeout: dialTimeout, Control: refuseInside}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: headerTimeout, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	go func() { _ = p.server.Serve(p.accept) }() // until Close
	return p
}

// Serve takes over a connection from inside.
func (p *Proxy) Serve(inside net.Conn) { p.accept.hand(inside) }

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
	return err
}

// allowed is called with the mutex held.
func (p *Proxy) allowed(host string, port int) bool {
	switch p.policy {
	case sandbox.OpenWorld:
		return true
	case sandbox.Registries:
		return p.list.Has(host, port)
	default:
		return false
	}
}

var errRefused = errors.New("the network policy of the sandbox does not allow this")

// dial connects to the outside if the policy allows it.
func (p *Proxy) dial(ctx context.Context, host string, port int) (net.Conn, error) {
	p.mutex.Lock()
	allowed := p.allowed(host, port)
	p.mutex.Unlock()
	if !allowed {
		return nil, errRefused
	}
	dialer := p.public
	if p.list.Has(host, port) {
		dialer = p.dialer
	}
	outside, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
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

// refuseInside is asked with the address after names were resolved, so that no
// name can lead to the host's own networks.
func refuseInside(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := meant(to.Addr()); !ip.IsGlobalUnicast() || ip.IsPrivate() || slices.ContainsFunc(inside, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return errRefused
	}
	return nil
}

// inside are networks that providers and clouds use for themselves, besides those
// that the standard library knows.
var inside = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15")}

// carriers are networks of IPv6 whose addresses stand for one of IPv4, which
// begins at the given byte.
var carriers = []struct {
	prefix netip.Prefix
	at     int
}{{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2}}

// meant is the address that is reached in the end.
func meant(ip netip.Addr) netip.Addr {
	for _, carrier := range carriers {
		if carrier.prefix.Contains(ip) {
			bytes := ip.As16()
			return netip.AddrFrom4([4]byte(bytes[carrier.at : carrier.at+4]))
		}
	}
	return ip.Unmap()
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
	var outward sync.WaitGroup
	outward.Go(func() {
		_, _ = io.Copy(outside, buffered) // an error ends the tunnel
		if half, can := outside.(*connection).Conn.(*net.TCPConn); can {
			_ = half.CloseWrite()
		}
	})
	_, _ = io.Copy(inside, outside)
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
		p.log.Info("a sandbox was refused a connection", "host", host, "port", port)
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
