package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker/assignment"
)

// longPoll makes one request that waits for long, and is answered.
func (a *pollingAgent) longPoll(t *testing.T) {
	t.Helper()
	a.send(t, askForTask)
	a.room.awaitTaken(t, 1)
	a.room.hands.give()
	if answer, text := a.receive(t); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", answer.Status, text)
	}
	a.room.awaitTaken(t, 0)
}

// A proxy may send requests of others on a connection on which an agent has waited: they count as
// those of strangers do. The agent asks again however many there are.
func TestReturnedConnectionWithRequestsOfOthers(t *testing.T) {
	t.Parallel()
	room := newWaitingRoom(t)
	proxy, token := room.connect(t), room.token
	proxy.longPoll(t)
	client := access.Network(proxy.LocalAddr().String())
	if !room.server.strangers.Take(client, maxMet) {
		t.Fatal("there are requests of strangers")
	}
	room.token = agentToken(t, room.store, "other")
	proxy.send(t, askForMe)
	if answer, text := proxy.receive(t); answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("somebody else is answered %s %s", answer.Status, text)
	}
	room.token = token
	proxy.send(t, askForMe)
	if answer, text := proxy.receive(t); answer.StatusCode != http.StatusOK {
		t.Errorf("the agent is answered %s %s", answer.Status, text)
	}
}

// A connection that is given back may be idle for two minutes. Once a request begins on it, the
// headers come in ten seconds, as on every other.
func TestReturnedConnectionThatIsSlow(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		pause, closed time.Duration
		sends         string
	}{"idle": {0, 2 * time.Minute, ""}, "slow headers": {time.Minute, time.Minute + 10*time.Second, "G"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				back, web := newReturned(nil), (&Server{log: slog.New(slog.DiscardHandler)}).newHTTP()
				go func() { _ = web.Serve(back) }()
				defer func() { _ = web.Close() }()
				here, there := net.Pipe()
				begun := time.Now()
				go back.give(there, nil, nil)
				<-time.After(one.pause)
				if one.sends != "" {
					if _, err := io.WriteString(here, one.sends); err != nil {
						t.Fatal(err)
					}
				}
				if said, err := io.ReadAll(here); err != nil {
					t.Errorf("it is not closed: %s %v", said, err)
				}
				if after := time.Since(begun); after != one.closed {
					t.Errorf("it is closed after %v", after)
				}
			})
		})
	}
}

// What comes early each time stays in order, and costs no more each time.
func TestReturnedConnectionAgainAndAgain(t *testing.T) {
	t.Parallel()
	back := newReturned(nil)
	here, there := net.Pipe()
	defer func() { _ = here.Close() }()
	conn := there
	for _, early := range []string{"ef", "cd", "ab"} {
		go back.give(conn, []byte(early), nil)
		var err error
		if conn, err = back.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	given, is := conn.(*returnedConn)
	if !is || given.Conn != there {
		t.Errorf("it is %T around %T", conn, given.Conn)
	}
	read := make([]byte, 6)
	if _, err := io.ReadFull(conn, read); err != nil || string(read) != "abcdef" {
		t.Errorf("what came early is %q, %v", read, err)
	}
}

// A fault in the answer ends the one connection, and not the server.
func TestLongPollWhoseAnswerPanics(t *testing.T) {
	t.Parallel()
	room := newWaitingRoom(t)
	agent := room.connect(t)
	agent.send(t, askForTask)
	room.awaitTaken(t, 1)
	room.server.polls.problem = func(_ context.Context, _ error) *problem { panic("a fault") }
	room.hands.next <- func() (*assignment.Assignment, bool, error) { return nil, false, errors.New("no database") }
	if _, err := agent.answer.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is open: %v", err)
	}
	room.awaitTaken(t, 0)
	if err := room.stop(); err != nil {
		t.Error(err)
	}
}

// The trace of a request says how long it waited, and how it was answered.
func TestLongPollIsTraced(t *testing.T) {
	t.Parallel()
	room := newWaitingRoom(t)
	agent := room.connect(t)
	agent.send(t, askForTask)
	room.awaitTaken(t, 1)
	room.hands.next <- func() (*assignment.Assignment, bool, error) { return nil, false, nil }
	agent.receive(t)
	room.awaitTaken(t, 0)
	waitFor(t, func() bool { return len(room.spans.Ended()) == 2 })
	handler, wait := room.spans.Ended()[0], room.spans.Ended()[1]
	if handler.Name() == "wait for a task" { // the handler may end later
		handler, wait = wait, handler
	}
	if !slices.Contains(handler.Attributes(), attribute.Bool("toryo.answered_later", true)) {
		t.Errorf("the request has %v", handler.Attributes())
	}
	if !slices.Contains(wait.Attributes(), attribute.Int("http.response.status_code", http.StatusNoContent)) || wait.Parent().SpanID() != handler.SpanContext().SpanID() {
		t.Errorf("the wait has %v", wait.Attributes())
	}
	if took := wait.EndTime().Sub(wait.StartTime()); took < takeOverAfter {
		t.Errorf("it took %v", took)
	}
}

// A body in pieces, which the caller sends when it is told to, is read to its end before the
// connection is taken over: the next request is found behind it.
func TestLongPollWithABodyInPieces(t *testing.T) {
	t.Parallel()
	room := newWaitingRoom(t)
	agent := room.connect(t)
	write := func(text string) {
		t.Helper()
		if _, err := io.WriteString(agent, text); err != nil {
			t.Fatal(err)
		}
	}
	write(fmt.Sprintf("%s\r\nHost: toryo.example\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n", askForTask, room.token))
	if told, text := agent.receive(t); told.StatusCode != http.StatusContinue {
		t.Fatal(told.Status, text)
	}
	write("8\r\n{\"agent_\r\n8\r\nid\":\"a\"}\r\n0\r\n\r\n")
	room.awaitTaken(t, 1)
	room.hands.give()
	if answer, text := agent.receive(t); answer.StatusCode != http.StatusOK || !strings.Contains(text, "Fix the gate") {
		t.Errorf("%s %s", answer.Status, text)
	}
	agent.send(t, askForMe)
	if answer, text := agent.receive(t); answer.StatusCode != http.StatusOK {
		t.Errorf("%s %s", answer.Status, text)
	}
}

// brokenListener fails when it is told to.
type brokenListener struct {
	net.Listener
	fails chan struct{}
}

func (b brokenListener) Accept() (net.Conn, error) {
	<-b.fails
	return nil, errors.New("it is broken")
}

func (b brokenListener) Close() error { return nil }

// When a listener fails, nothing goes on: who waits is told that there is nothing.
func TestServeEndsWhenAListenerFails(t *testing.T) {
	t.Parallel()
	broken := brokenListener{fails: make(chan struct{})}
	room := newWaitingRoom(t, broken)
	waits, quiet := room.connect(t), room.connect(t)
	quiet.longPoll(t)
	waits.send(t, askForTask)
	room.awaitTaken(t, 1)
	close(broken.fails)
	if answer, _ := waits.receive(t); answer.StatusCode != http.StatusNoContent || !answer.Close {
		t.Errorf("%s, closed: %t", answer.Status, answer.Close)
	}
	if _, err := quiet.answer.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("a connection is open: %v", err)
	}
	if err := <-room.served; err == nil || !strings.Contains(err.Error(), "stopped listening") {
		t.Errorf("Serve returns %v", err)
	}
	if _, err := new(net.Dialer).DialContext(t.Context(), "tcp", room.address); err == nil {
		t.Error("something still listens")
	}
}
