package transport

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
)

// Options says how to reach one installation. Only Name has to be set.
type Options struct {
	// Name tells the installations apart in the cache, such as "github".
	Name string
	// Next does the requests; nil means the network.
	Next http.RoundTripper
	// Cache keeps answers; nil means that none are kept.
	Cache Cache
	// Writes are the limits for writes of content. All of them hold.
	Writes []Limit
	// Reserve is how much of the forge's quota is left to writes: with less than
	// that remaining, reads wait.
	Reserve int
	// Tries is how often a GET is asked at most; 0 means 4.
	Tries int
	// LongestWait is the longest wait inside of one request; 0 means 30 seconds.
	LongestWait time.Duration
	Clock       Clock // nil means the real one
	Log         *slog.Logger
}

// GitHubWrites are the limits that GitHub sets for content.
var GitHubWrites = []Limit{{80, time.Minute}, {500, time.Hour}}

// Transport is an [http.RoundTripper] for one installation of a forge. It may be
// used by any number of goroutines.
type Transport struct {
	options Options
	gate    gate
	writes  *schedule
	counter counter
	failure failure
}

// New makes a transport.
func New(options Options) *Transport {
	if options.Next == nil {
		options.Next = network()
	}
	if options.Tries == 0 {
		options.Tries = 4
	}
	if options.LongestWait == 0 {
		options.LongestWait = 30 * time.Second
	}
	if options.Clock == nil {
		options.Clock = realClock{}
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	options.Next = forge.LimitResponses(options.Next, forge.MaxResponse)
	return &Transport{options: options, writes: newSchedule(options.Writes)}
}

// network is the default transport, which gives up on a forge that does not
// begin to answer.
func network() http.RoundTripper {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	base = base.Clone()
	base.ResponseHeaderTimeout = 30 * time.Second
	return base
}

// RoundTrip does a request, as [http.RoundTripper] says.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	switch {
	case request.Method == http.MethodGet || request.Method == http.MethodHead:
		return t.read(request)
	case isQuery(request):
		return t.ask(request, false)
	default:
		return t.write(request)
	}
}

// write does a write once, when the limits for content allow it.
func (t *Transport) write(request *http.Request) (*http.Response, error) {
	clock := t.options.Clock
	at, ok := t.writes.reserve(clock.Now(), t.options.LongestWait)
	if !ok {
		closeBody(request)
		return t.withhold(request, at.Sub(clock.Now())), nil
	}
	if err := t.wait(request.Context(), at.Sub(clock.Now())); err != nil {
		t.writes.release(at)
		closeBody(request)
		return nil, err
	}
	return t.ask(request, true)
}

// ask waits until the forge's limits allow it and then does the request once.
func (t *Transport) ask(request *http.Request, write bool) (*http.Response, error) {
	clock := t.options.Clock
	resource := resourceOf(request)
	reserve := t.options.Reserve
	if write {
		reserve = 0
	}
	wait := t.gate.wait(clock.Now(), resource, reserve)
	if wait > t.options.LongestWait {
		closeBody(request)
		return t.withhold(request, wait), nil
	}
	if err := t.wait(request.Context(), wait); err != nil {
		closeBody(request)
		return nil, err
	}
	t.counter.asked(write)
	answer, err := t.options.Next.RoundTrip(request)
	if err != nil {
		t.counter.failed.Add(1)
		t.noteFailure(request, err.Error())
		return nil, err
	}
	if refused(answer) {
		t.noteFailure(request, "status "+answer.Status)
	}
	t.learn(request, resource, answer)
	return answer, nil
}

// learn takes from an answer what it says about the forge's limits.
func (t *Transport) learn(request *http.Request, resource string, answer *http.Response) {
	if answer.StatusCode == http.StatusNotModified {
		t.counter.notModified.Add(1)
	}
	markSecondaryLimit(answer)
	if wait := t.gate.learn(t.options.Clock.Now(), resource, answer); wait > 0 {
		t.counter.limited.Add(1)
		t.options.Log.Warn("the forge asks for fewer requests", "forge", t.options.Name,
			"path", request.URL.Path, "status", answer.StatusCode, "wait", wait)
	}
}

// wait waits, but not longer than the request's context lasts.
func (t *Transport) wait(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return ctx.Err()
	}
	return t.options.Clock.Wait(ctx, wait)
}

// withhold answers in the forge's place, so that the client learns how long to
// wait without asking.
func (t *Transport) withhold(request *http.Request, wait time.Duration) *http.Response {
	t.counter.withheld.Add(1)
	const body = `{"message":"not sent: the limit of requests to this forge is reached"}`
	return &http.Response{
		Status:     "429 Too Many Requests",
		StatusCode: http.StatusTooManyRequests,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type": {"application/json"},
			"Retry-After":  {strconv.FormatInt(int64(math.Ceil(wait.Seconds())), 10)},
		},
		Body:          io.NopCloser(bytes.NewReader([]byte(body))),
		ContentLength: int64(len(body)),
		Request:       request,
	}
}

// closeBody does what a RoundTripper has to do with a body that it does not send.
func closeBody(request *http.Request) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
}
