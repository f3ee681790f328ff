package drill

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
)

// line is an agent's way to the servers: each request goes to any of them, and
// now and then it does not arrive, its answer does not, either is late, or it
// arrives twice.
type line struct {
	servers []*url.URL
	listen  net.Listener
	web     *http.Server
	cut     atomic.Int64 // until when nothing gets through, in Unix nanoseconds
	calm    atomic.Bool

	requests, refused, lost, delayed, doubled atomic.Int64
}

// faults is what happened on lines.
type faults struct{ requests, refused, lost, delayed, doubled int64 }

// largestDoubled is how large the body of a request may be that is sent twice.
const largestDoubled = 1 << 20

func newLine(servers []*url.URL) (*line, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is at once
	if err != nil {
		return nil, err
	}
	l := &line{servers: servers, listen: listener}
	l.web = &http.Server{Handler: l, ReadHeaderTimeout: time.Minute}
	go func() { _ = l.web.Serve(listener) }() // ends in close
	return l, nil
}

func (l *line) url() string  { return "http://" + l.listen.Addr().String() }
func (l *line) close() error { return l.web.Close() }

func (l *line) cutFor(pause time.Duration) { l.cut.Store(time.Now().Add(pause).UnixNano()) }

func (l *line) isCut() bool { return time.Now().UnixNano() < l.cut.Load() }

// heal ends all trouble.
func (l *line) heal() {
	l.calm.Store(true)
	l.cut.Store(0)
}

func (l *line) forward() http.Handler {
	target := l.servers[rand.IntN(len(l.servers))] //nolint:gosec // not for secrets
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // as if there were nothing in between
		},
		ErrorLog: nil,
	}
}

// ServeHTTP passes a request on, or not.
func (l *line) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.requests.Add(1)
	if l.isCut() {
		l.refused.Add(1)
		panic(http.ErrAbortHandler)
	}
	chance := rand.IntN(100) //nolint:gosec // not for secrets
	if l.calm.Load() || strings.HasPrefix(r.URL.Path, "/v1/agents") {
		chance = 100
	}
	switch {
	case chance < 3:
		l.refused.Add(1)
		panic(http.ErrAbortHandler)
	case chance < 6:
		l.lost.Add(1)
		l.forward().ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case chance < 9:
		l.delayed.Add(1)
		l.linger(r)
	case chance < 12:
		l.double(r)
	}
	l.forward().ServeHTTP(w, r)
	if l.isCut() {
		panic(http.ErrAbortHandler)
	}
}

// linger holds a request back for a while.
func (l *line) linger(r *http.Request) {
	_ = lifecycle.Sleep(r.Context(), time.Duration(rand.IntN(2000))*time.Millisecond) //nolint:gosec // not for secrets
}

// double sends a request a first time; nobody sees the answer. A request for a
// task is not doubled: the agent would be given two, which it did not ask for.
func (l *line) double(r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/v1/tasks/") || strings.HasSuffix(r.URL.Path, "/request") {
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, largestDoubled+1))
	rest := io.Reader(bytes.NewReader(body))
	if err != nil || len(body) > largestDoubled {
		r.Body = io.NopCloser(io.MultiReader(rest, r.Body, failing{err}))
		return
	}
	l.doubled.Add(1)
	first := r.Clone(r.Context())
	first.Body = io.NopCloser(bytes.NewReader(body))
	l.swallow(first)
	r.Body = io.NopCloser(rest)
}

// swallow passes a request on and loses the answer.
func (l *line) swallow(r *http.Request) {
	defer func() {
		if fault := recover(); fault != nil && !isAbort(fault) {
			panic(fault)
		}
	}()
	l.forward().ServeHTTP(httptest.NewRecorder(), r)
}

func isAbort(fault any) bool {
	err, is := fault.(error)
	return is && errors.Is(err, http.ErrAbortHandler)
}

// failing is a reader that fails, or that is at its end.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}
