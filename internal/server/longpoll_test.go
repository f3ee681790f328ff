package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// slowHandOut hands out what the test says, when it says so.
type slowHandOut struct {
	HandOut
	next    chan func() (*assignment.Assignment, bool, error)
	gone    chan error // why a wait ended without one
	drained chan struct{}
}

func (h *slowHandOut) Request(ctx context.Context, _ broker.Asker, _ time.Duration) (*assignment.Assignment, bool, error) {
	select {
	case answer := <-h.next:
		return answer()
	case <-ctx.Done():
		h.gone <- context.Cause(ctx)
		return nil, false, nil
	case <-h.drained:
		return nil, false, nil
	}
}

func (h *slowHandOut) Drain() { close(h.drained) }

func (h *slowHandOut) Renew() time.Duration { return time.Minute }

func (h *slowHandOut) give() {
	h.next <- func() (*assignment.Assignment, bool, error) {
		return &assignment.Assignment{Task: task.Task{ID: "x"}, Prompt: "Fix the gate"}, true, nil
	}
}

// waitingRoom is a server that is served, on which agents wait for a task.
type waitingRoom struct {
	server  *Server
	hands   *slowHandOut
	metrics *metrics.Registry
	store   store.Store
	address string
	token   string
	spans   *tracetest.SpanRecorder
	served  <-chan error // what Serve has returned
	stop    func() error // may be called again
}

func newWaitingRoom(t *testing.T, more ...net.Listener) *waitingRoom {
	t.Helper()
	database, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close() })
	room := &waitingRoom{
		hands:   &slowHandOut{next: make(chan func() (*assignment.Assignment, bool, error)), gone: make(chan error, 1), drained: make(chan struct{})},
		metrics: new(metrics.Registry), token: agentToken(t, database, "smith"), spans: tracetest.NewSpanRecorder(), store: database,
	}
	room.server = New(Options{
		Store: database, Log: slog.New(slog.DiscardHandler), Metrics: room.metrics, Traces: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(room.spans)), Now: time.Now, Version: "v1",
		HandOut: room.hands,
	})
	listener, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	room.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	room.served = served
	go func() { served <- room.server.Serve(ctx, append([]net.Listener{listener}, more...)...); close(served) }()
	room.stop = func() error { cancel(); return <-served }
	t.Cleanup(func() { _ = room.stop() })
	return room
}

func agentToken(t *testing.T, database store.Store, name string) string {
	t.Helper()
	token, err := access.Tokens{Store: database, Now: time.Now}.Create(t.Context(), access.Agent, name)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// pollingAgent is one connection to the server.
type pollingAgent struct {
	net.Conn
	room   *waitingRoom
	answer *bufio.Reader
}

func (w *waitingRoom) connect(t *testing.T) *pollingAgent {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &pollingAgent{conn, w, bufio.NewReader(conn)}
}

const (
	askForTask = "POST /v1/tasks/request?wait=1m HTTP/1.1"
	askForMe   = "GET /v1/me HTTP/1.1"
)

// send sends requests in one piece.
func (a *pollingAgent) send(t *testing.T, lines ...string) {
	t.Helper()
	var text strings.Builder
	for _, line := range lines {
		body := ""
		if strings.HasPrefix(line, http.MethodPost) {
			body = `{"agent_id":"a"}`
		}
		fmt.Fprintf(&text, "%s\r\nHost: toryo.example\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", line, a.room.token, len(body), body)
	}
	if _, err := io.WriteString(a, text.String()); err != nil {
		t.Fatal(err)
	}
}

// received is an answer without its body.
type received struct {
	StatusCode int
	Status     string
	Header     http.Header
	Close      bool
}

// receive reads one answer.
func (a *pollingAgent) receive(t *testing.T) (received, string) {
	t.Helper()
	answer, err := http.ReadResponse(a.answer, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return received{answer.StatusCode, answer.Status, answer.Header, answer.Close}, string(text)
}

// taken is how many connections are taken over; -1 while one is about to be.
func (w *waitingRoom) taken() int {
	w.server.polls.mutex.Lock()
	all := slices.Collect(maps.Keys(w.server.polls.polls))
	w.server.polls.mutex.Unlock()
	for _, one := range all {
		one.mutex.Lock()
		taken := one.conn != nil
		one.mutex.Unlock()
		if !taken {
			return -1
		}
	}
	return len(all)
}

// awaitTaken waits until so many connections are taken over.
func (w *waitingRoom) awaitTaken(t *testing.T, wanted int) {
	t.Helper()
	waitFor(t, func() bool { return w.taken() == wanted })
}

// waitFor waits until something is so.
func waitFor(t *testing.T, isSo func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	end := time.After(5 * time.Minute)
	for !isSo() {
		select {
		case <-ticker.C:
		case <-end:
			t.Fatal("nothing has happened for five minutes")
		}
	}
}

// An agent that has waited for long gets the same answer as one that is answered at once, and asks
// again on the same connection.
func TestLongPollAnswersAsOthers(t *testing.T) {
	t.Parallel()
	room := newWaitingRoom(t)
	agent := room.connect(t)
	for _, answer := range []func() (*assignment.Assignment, bool, error){
		func() (*assignment.Assignment, bool, error) {
			return &assignment.Assignment{Task: task.Task{ID: "x"}, Prompt: "<Fix> the gate"}, true, nil
		},
		func() (*assignment.Assignment, bool, error) { return nil, false, nil },
		func() (*assignment.Assignment, bool, error) {
			return nil, false, task.Errorf(task.Unavailable, "not now")
		},
		func() (*assignment.Assignment, bool, error) { panic("a fault") },
	} {
		agent.send(t, askForTask)
		room.hands.next <- answer
		quick, quickText := agent.receive(t)
		agent.send(t, askForTask)
		room.awaitTaken(t, 1)
		room.hands.next <- answer
		long, longText := agent.receive(t)
		room.awaitTaken(t, 0)
		for _, one := range []received{quick, long} {
			one.Header.Del("Date")
		}
		if quickText != longText || quick.Status != long.Status || fmt.Sprint(quick.Header) != fmt.Sprint(long.Header) || long.Close {
			t.Errorf("at once: %s %v %s\nlater: %s %v %s", quick.Status, quick.Header, quickText, long.Status, long.Header, longText)
		}
	}
	agent.send(t, askForMe)
	if me, text := agent.receive(t); me.StatusCode != http.StatusOK || !strings.Contains(text, "smith") {
		t.Errorf("%s %s", me.Status, text)
	}
	shown := room.metrics.String()
	for _, status := range []string{"200", "204", "503", "500"} {
		if counted := `toryo_http_request_seconds_count{route="POST /v1/tasks/request",status="` + status + `"} 2`; !strings.Contains(shown, counted) {
			t.Errorf("the metrics do not have %s:\n%s", counted, shown)
		}
	}
}

// The wait ends when the agent goes away.
func TestLongPollEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	room := newWaitingRoom(t)
	agent := room.connect(t)
	agent.send(t, askForTask)
	room.awaitTaken(t, 1)
	if err := agent.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-room.hands.gone; !errors.Is(err, errCallerGone) {
		t.Errorf("the wait ended: %v", err)
	}
	room.awaitTaken(t, 0)
}

// What is sent before the answer is there is answered after it, whenever it comes.
func TestLongPollKeepsWhatComesEarly(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"with the request": true, "while it waits": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			room := newWaitingRoom(t)
			agent := room.connect(t)
			if early {
				agent.send(t, askForTask, askForMe, askForMe)
				room.awaitTaken(t, 1)
			} else {
				agent.send(t, askForTask)
				room.awaitTaken(t, 1)
				agent.send(t, askForMe, askForMe)
			}
			room.hands.give()
			if first, text := agent.receive(t); first.StatusCode != http.StatusOK || !strings.Contains(text, "Fix the gate") {
				t.Errorf("%s %s", first.Status, text)
			}
			for range 2 {
				if next, text := agent.receive(t); next.StatusCode != http.StatusOK || !strings.Contains(text, "smith") {
					t.Errorf("%s %s", next.Status, text)
				}
			}
		})
	}
}

// When the server stops, those who wait are told that there is nothing, and their connections are
// closed, as are those of agents that have not asked again.
func TestServeStopsLongPolls(t *testing.T) {
	t.Parallel()
	room := newWaitingRoom(t)
	waits, quiet := room.connect(t), room.connect(t)
	quiet.send(t, askForTask)
	room.awaitTaken(t, 1)
	room.hands.give()
	quiet.receive(t)
	room.awaitTaken(t, 0)
	waits.send(t, askForTask)
	room.awaitTaken(t, 1)
	begun := time.Now()
	if err := room.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > stopTimeout {
		t.Errorf("stopping took %s", took)
	}
	if answer, _ := waits.receive(t); answer.StatusCode != http.StatusNoContent || !answer.Close {
		t.Errorf("%s, closed: %t", answer.Status, answer.Close)
	}
	for _, agent := range []*pollingAgent{waits, quiet} {
		if _, err := agent.answer.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("a connection is open: %v", err)
		}
	}
}

// When those who wait are not answered in time, their waits are ended and their connections closed.
func TestLongPollsAreGivenUp(t *testing.T) {
	t.Parallel()
	room := newWaitingRoom(t)
	agent := room.connect(t)
	agent.send(t, askForTask)
	room.awaitTaken(t, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := room.server.polls.finish(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
	if why := <-room.hands.gone; !errors.Is(why, errStopping) {
		t.Errorf("the wait ended for %v", why)
	}
	if text, _ := io.ReadAll(agent.answer); strings.Contains(string(text), "Fix the gate") {
		t.Errorf("a task came: %s", text)
	}
	room.awaitTaken(t, 0)
}

// A connection that its caller does not keep, such as that of what speaks HTTP/1.0, is not taken over: it is
// closed behind the answer.
func TestLongPollOnAConnectionThatIsNotKept(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"HTTP/1.0":          strings.Replace(askForTask, "HTTP/1.1", "HTTP/1.0", 1),
		"Connection: close": askForTask + "\r\nConnection: close",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			room := newWaitingRoom(t)
			agent := room.connect(t)
			agent.send(t, request)
			<-time.After(3 * takeOverAfter)
			if taken := room.taken(); taken != 0 {
				t.Errorf("%d connections are taken over", taken)
			}
			room.hands.give()
			if answer, text := agent.receive(t); answer.StatusCode != http.StatusOK || !strings.Contains(text, "Fix the gate") {
				t.Errorf("%s %s", answer.Status, text)
			}
			if _, err := agent.answer.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("the connection is open: %v", err)
			}
		})
	}
}

// Empty lines between two requests are passed over, whenever they come.
func TestEmptyLinesBetweenRequests(t *testing.T) {
	t.Parallel()
	room := newWaitingRoom(t)
	agent := room.connect(t)
	agent.send(t, askForTask)
	room.awaitTaken(t, 1)
	lines := func() {
		t.Helper()
		if _, err := io.WriteString(agent, "\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	lines()
	room.hands.give()
	agent.receive(t)
	lines()
	agent.send(t, askForMe)
	if answer, text := agent.receive(t); answer.StatusCode != http.StatusOK || !strings.Contains(text, "smith") {
		t.Errorf("%s %s", answer.Status, text)
	}
}
