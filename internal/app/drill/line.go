package drill

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
)

// line is an agent's way to the servers: each request goes to any of them, and
// now and then it does not arrive, its answer does not, either is late, a later
// request overtakes it, or it arrives twice, the second time perhaps much later.
type line struct {
	servers []*url.URL
	listen  net.Listener
	web     *http.Server
	cut     atomic.Int64 // until when nothing gets through, in Unix nanoseconds
	calm    atomic.Bool

	late   sync.WaitGroup // requests that arrive once more
	closed chan struct{}

	mu     sync.Mutex
	random *rand.Rand
	passed chan struct{} // closed when the next request has got through

	faults lineFaults
}

// lineFaults counts what happened to requests.
type lineFaults struct {
	requests, refused, lost, delayed, overtaken, doubled, repeated atomic.Int64
}

const (
	// largestDoubled is how large the body of a request may be that is sent twice.
	largestDoubled = 1 << 20
	// longestDelay is by how much a request is late at most, and longestRepeat how long after
	// it the second one arrives.
	longestDelay  = 2 * time.Second
	longestRepeat = 15 * time.Second
)

// newLine begins to listen. What happens to the first, second and so on request follows from
// the seed.
func newLine(servers []*url.URL, seed, number uint64) (*line, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is at once
	if err != nil {
		return nil, err
	}
	l := &line{
		servers: servers, listen: listener, passed: make(chan struct{}), closed: make(chan struct{}),
		random: rand.New(rand.NewPCG(seed, number)), //nolint:gosec // not for secrets
	}
	l.web = &http.Server{Handler: l, ReadHeaderTimeout: time.Minute}
	go func() { _ = l.web.Serve(listener) }() // ends in close
	return l, nil
}

func (l *line) url() string { return "http://" + l.listen.Addr().String() }

// close drops what is on its way.
func (l *line) close() error {
	err := l.web.Close()
	close(l.closed)
	l.late.Wait()
	return err
}

// number is a random one below a limit.
func (l *line) number(below int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.random.Int64N(below)
}

func (l *line) cutFor(pause time.Duration) { l.cut.Store(time.Now().Add(pause).UnixNano()) }

func (l *line) isCut() bool { return time.Now().UnixNano() < l.cut.Load() }

// endFaults ends all faults.
func (l *line) endFaults() {
	l.calm.Store(true)
	l.cut.Store(0)
}

func (l *line) forward() http.Handler {
	target := l.servers[l.number(int64(len(l.servers)))]
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // as if there were nothing in between
		},
		ErrorLog: log.New(io.Discard, "", 0), // what is cut off is counted
	}
}

// ServeHTTP passes a request on, or not.
func (l *line) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.faults.requests.Add(1)
	if l.isCut() {
		l.faults.refused.Add(1)
		panic(http.ErrAbortHandler)
	}
	chance := l.number(100)
	if l.calm.Load() || strings.HasPrefix(r.URL.Path, "/v1/agents") {
		chance = 100
	}
	switch {
	case chance < 3:
		l.faults.refused.Add(1)
		panic(http.ErrAbortHandler)
	case chance < 6:
		l.faults.lost.Add(1)
		l.forward().ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case chance < 9:
		l.faults.delayed.Add(1)
		_ = lifecycle.Sleep(r.Context(), time.Duration(l.number(int64(longestDelay)))) // then it is over anyway
	case chance < 12:
		l.faults.overtaken.Add(1)
		l.letPass(r)
	case chance < 15:
		if first := l.copied(r); first != nil {
			l.faults.doubled.Add(1)
			l.sendOnly(first)
		}
	case chance < 18:
		if second := l.copied(r); second != nil {
			l.faults.repeated.Add(1)
			l.repeatAfter(second, time.Duration(l.number(int64(longestRepeat))))
		}
	}
	l.forward().ServeHTTP(w, r)
	if l.isCut() {
		panic(http.ErrAbortHandler)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.passed)
	l.passed = make(chan struct{})
}

// letPass holds a request back until a later one has got through, but not for long.
func (l *line) letPass(r *http.Request) {
	l.mu.Lock()
	passed := l.passed
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.Context(), longestDelay)
	defer cancel()
	select {
	case <-passed:
	case <-ctx.Done():
	}
}

// copied is a request that can be sent beside the first, or nil. A request for a
// task is not doubled: the agent would be given two, which it did not ask for.
func (l *line) copied(r *http.Request) *http.Request {
	if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/v1/tasks/") || strings.HasSuffix(r.URL.Path, "/request") {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, largestDoubled+1))
	rest := io.Reader(bytes.NewReader(body))
	if err != nil || len(body) > largestDoubled {
		r.Body = io.NopCloser(io.MultiReader(rest, r.Body, failing{err}))
		return nil
	}
	r.Body = io.NopCloser(rest)
	other := r.Clone(r.Context())
	other.Body = io.NopCloser(bytes.NewReader(body))
	return other
}

// repeatAfter sends a request once more after a while, when perhaps its run is over.
func (l *line) repeatAfter(r *http.Request, pause time.Duration) {
	timer := time.NewTimer(pause)
	l.late.Go(func() {
		defer timer.Stop()
		select {
		case <-l.closed:
			return
		case <-timer.C:
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), longestRepeat)
		defer cancel()
		l.sendOnly(r.WithContext(ctx))
	})
}

// sendOnly passes a request on and drops the answer.
func (l *line) sendOnly(r *http.Request) {
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
