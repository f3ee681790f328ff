package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// takeOverAfter is how long a request waits before its connection is taken over. What is answered
// sooner costs no more than other requests do.
const takeOverAfter = 100 * time.Millisecond

// longPolls are the requests that wait for something to happen, thousands of them at a time.
// While a handler runs, net/http keeps 10 kB of buffers for its connection, the request, and a
// goroutine with a stack of 16 kB, which the way to the handler takes. So a request that has waited
// for a moment takes its connection over (see [http.Hijacker]), and its handler returns:
//
//	handler      wait: starts run, takes the connection over, returns; nothing is answered
//	run          waits, writes the answer, and gives the connection back when something comes on it
//	watch        reads one byte, to see that the caller goes away
//	returned     is the listener on which net/http gets the connection back
//
// Requests over TLS, HTTP/2 and HTTP/1.0 wait in their handlers.
type longPolls struct {
	log          *slog.Logger
	durations    *metrics.Histogram
	problem      func(context.Context, error) *problem
	tracer       trace.Tracer
	writeTimeout time.Duration

	mutex    sync.Mutex
	returned *returned // nil while no connection may be taken over
	polls    map[*longPoll]struct{}
	running  sync.WaitGroup // those in polls, and those whose connection is not given back yet
}

// longPoll is one request.
type longPoll struct {
	route, path string
	begun       time.Time
	known       []byte // the hash of the caller's token
	cancel      context.CancelCauseFunc
	ended       chan struct{} // closed when there is an answer

	mutex  sync.Mutex
	output *requestOutput
	err    error
	over   bool     // there is an answer
	conn   net.Conn // nil if it was not taken over

	watched chan struct{} // closed when nobody reads from the connection
	early   []byte        // what has come already of the next request
}

var errCallerGone = errors.New("the caller is gone")

// start lets connections be taken over; they come back on the listener.
func (p *longPolls) start(back *returned) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.returned, p.polls = back, make(map[*longPoll]struct{})
}

// stop lets no more connections be taken over, and closes those that are answered from now on.
func (p *longPolls) stop() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.returned = nil
}

// finish waits until what was taken over is answered. When the context ends first, all of it is
// canceled.
func (p *longPolls) finish(ctx context.Context) error {
	done := make(chan struct{})
	go func() { defer close(done); p.running.Wait() }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	p.mutex.Lock()
	left := slices.Collect(maps.Keys(p.polls))
	p.mutex.Unlock()
	for _, one := range left {
		one.cancel(errStopping)
		one.close()
	}
	return ctx.Err()
}

// wait returns what get returns, which waits for something to happen. When the connection of the
// request is taken over meanwhile, it returns nothing that is sent.
func (p *longPolls) wait(ctx context.Context, w http.ResponseWriter, r *http.Request, get func(context.Context) (*requestOutput, error)) (*requestOutput, error) {
	answer, observed := w.(*observedWriter)
	if !observed || r.TLS != nil || r.Close || r.ProtoMajor != 1 || r.ProtoMinor != 1 {
		return get(ctx)
	}
	waiting, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	one := &longPoll{route: route(r), path: r.URL.Path, begun: time.Now(), known: caller(ctx).Hash, cancel: cancel, ended: make(chan struct{})}
	unfollow := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer unfollow()
	go p.run(waiting, one, get)
	timer := time.NewTimer(takeOverAfter)
	defer timer.Stop()
	select {
	case <-one.ended:
	case <-timer.C:
		if p.takeOver(one, answer) {
			trace.SpanFromContext(ctx).SetAttributes(attribute.Bool("toryo.answered_later", true)) // by tell
			return &requestOutput{Status: http.StatusNoContent}, nil
		}
		<-one.ended
	}
	return one.output, one.err
}

// run waits, and answers if the connection was taken over.
func (p *longPolls) run(ctx context.Context, one *longPoll, get func(context.Context) (*requestOutput, error)) {
	output, err := withoutPanic(ctx, get)
	one.mutex.Lock()
	one.output, one.err, one.over = output, err, true
	taken := one.conn != nil
	one.mutex.Unlock()
	close(one.ended)
	if !taken {
		one.cancel(nil)
		return
	}
	defer p.running.Done()
	back := p.answer(ctx, one)
	one.cancel(nil)
	if back != nil {
		back.give(one.conn, one.early, one.known)
	}
}

// withoutPanic turns a panic into an error, as happens to those of handlers.
func withoutPanic(ctx context.Context, get func(context.Context) (*requestOutput, error)) (output *requestOutput, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = panicError(fault)
		}
	}()
	return get(ctx)
}

func panicError(fault any) error {
	return task.Wrap(task.Internal, fmt.Errorf("panic: %v\n%s", fault, debug.Stack()), "a request caused a panic")
}

// takeOver takes the connection of a request over, unless there is an answer already or the
// server stops.
func (p *longPolls) takeOver(one *longPoll, from *observedWriter) bool {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	if one.over || !p.add(one) {
		return false
	}
	conn, buffered, err := from.takeOver()
	if err != nil {
		p.remove(one)
		p.running.Done()
		return false
	}
	one.conn, one.watched = conn, make(chan struct{})
	if n := buffered.Reader.Buffered(); n > 0 {
		one.early, _ = buffered.Peek(n) // it has as much
		one.early = bytes.Clone(one.early)
		close(one.watched)
		return true
	}
	go one.watch()
	return true
}

// add counts a request whose connection is about to be taken over.
func (p *longPolls) add(one *longPoll) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.returned == nil {
		return false
	}
	p.polls[one] = struct{}{}
	p.running.Add(1)
	return true
}

func (p *longPolls) remove(one *longPoll) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.polls, one)
}

// watch ends the wait when the caller goes away. A byte that comes is the first of the caller's
// next request, before which it waits for the answer to this one.
func (one *longPoll) watch() {
	defer close(one.watched)
	first := make([]byte, 1)
	n, err := one.conn.Read(first)
	if n > 0 {
		one.early = first
	} else if !errors.Is(err, os.ErrDeadlineExceeded) {
		one.cancel(errCallerGone)
	}
}

// unwatch ends watching.
func (one *longPoll) unwatch() {
	_ = one.conn.SetReadDeadline(time.Unix(1, 0)) // a connection that is closed is not read from either
	<-one.watched
	_ = one.conn.SetReadDeadline(time.Time{})
}

// close closes the connection if it was taken over.
func (one *longPoll) close() {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	if one.conn != nil {
		_ = one.conn.Close() // there is nobody to tell
	}
}

// answer writes the answer to a request whose connection was taken over. It returns the listener to
// which the connection is to be given back; nil if it is closed.
func (p *longPolls) answer(ctx context.Context, one *longPoll) (back *returned) {
	defer p.remove(one)
	defer func() {
		if fault := recover(); fault != nil { // nobody else would: it is no goroutine of net/http
			p.log.ErrorContext(ctx, "a request failed half-way", "error", panicError(fault))
			one.close()
			back = nil
		}
	}()
	response := p.response(ctx, one) //nolint:bodyclose // it is written, not received
	one.unwatch()
	p.tell(ctx, one, response.StatusCode)
	p.mutex.Lock()
	back = p.returned
	p.mutex.Unlock()
	response.Close = back == nil
	err := context.Cause(ctx)
	if !errors.Is(err, errCallerGone) {
		err = p.write(one.conn, response)
	}
	if err != nil && one.err == nil && one.output.Body != nil {
		p.log.WarnContext(ctx, "an answer did not reach its caller", "path", one.path, "error", err)
	}
	if err != nil || back == nil {
		one.close()
		return nil
	}
	return back
}

// tell counts, logs and traces a request that is over. The span of its handler ended when the
// connection was taken over.
func (p *longPolls) tell(ctx context.Context, one *longPoll, status int) {
	took := time.Since(one.begun)
	p.durations.Observe(took.Seconds(), one.route, strconv.Itoa(status))
	p.log.DebugContext(ctx, "request", "method", http.MethodPost, "path", one.path, "status", status, "took", took)
	_, span := p.tracer.Start(ctx, "wait for a task", trace.WithTimestamp(one.begun),
		trace.WithAttributes(attribute.String("http.route", one.route), attribute.Int("http.response.status_code", status)))
	span.End()
}

// response is the answer to a request as HTTP/1.1 has it. It says the same as that of a handler.
func (p *longPolls) response(ctx context.Context, one *longPoll) *http.Response {
	answer := &http.Response{ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}}
	var body bytes.Buffer
	err := one.err
	if err == nil {
		answer.Header.Set("Content-Type", "application/json")
		if answer.StatusCode = one.output.Status; one.output.Body == nil {
			return answer
		}
		encoder := json.NewEncoder(&body)
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(one.output.Body)
	}
	if err != nil {
		told := p.problem(ctx, err)
		answer.StatusCode = told.Status
		answer.Header.Set("Content-Type", wire.ProblemType)
		body.Reset()
		_ = told.write(&body) // texts and numbers, into memory
	}
	answer.ContentLength = int64(body.Len())
	answer.Body = io.NopCloser(&body)
	return answer
}

func (p *longPolls) write(to net.Conn, response *http.Response) error {
	var text bytes.Buffer
	if err := response.Write(&text); err != nil {
		return err
	}
	if err := to.SetWriteDeadline(time.Now().Add(p.writeTimeout)); err != nil {
		return err
	}
	if _, err := to.Write(text.Bytes()); err != nil {
		return err
	}
	return to.SetWriteDeadline(time.Time{})
}
