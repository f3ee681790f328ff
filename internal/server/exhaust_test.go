package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
)

// patience is how long a test waits for what is to happen at once.
const patience = 5 * time.Minute

// serve runs a server with webhooks on an address of its own.
func serve(t *testing.T, database store.Store, bodyTimeout time.Duration) string {
	t.Helper()
	hooks, _ := newWebhooks(database, &heard{})
	s := server.New(server.Options{
		Store: database, Log: slog.New(slog.DiscardHandler), Metrics: new(metrics.Registry), Traces: noop.NewTracerProvider(),
		Now: time.Now, Version: "v1", Webhooks: hooks, BodyTimeout: bodyTimeout,
	})
	listener, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// answered is the status of the answer that is on the connection, or 0 when the
// server has closed it. It fails if the server keeps it waiting.
func answered(connection net.Conn) (int, error) {
	answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, err
	case err != nil:
		return 0, nil //nolint:nilerr // closed, in whatever way the other side saw it
	}
	return answer.StatusCode, answer.Body.Close()
}

const unsignedHead = "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"

var someSignature = "X-Hub-Signature-256: sha256=" + strings.Repeat("00", 32) + "\r\nX-Gitea-Signature: " + strings.Repeat("00", 32) + "\r\n"

// Those who send webhooks that nobody signed make the server hold a bounded number
// of bytes, however many they are, and the others are told to come again.
func TestHalfSentWebhooksAreBounded(t *testing.T) { //nolint:paralleltest // it looks at the memory of the process
	address := serve(t, openStore(t), time.Hour)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const clients, half = 60, 3 << 20
	statuses := make(chan int, clients)
	for i := range clients {
		connection := dial(t, address)
		path := []string{"/webhooks/github", "/webhooks/gitea"}[i%2]
		go func() {
			_, _ = fmt.Fprintf(connection, unsignedHead+"%s\r\n", path, 20<<20, someSignature) // an error shows below
			_, _ = io.CopyN(connection, zeros{}, half)
			status, err := answered(connection)
			if err != nil {
				status = -1
			}
			statuses <- status
		}()
	}
	// 26 MB of 180 are held; whoever sent the rest is not kept waiting.
	for range clients - 26/3 - 1 {
		if status := <-statuses; status != http.StatusServiceUnavailable && status != 0 {
			t.Fatalf("answered %d while the server is full", status)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 64<<20 {
		t.Errorf("%d MB are held for those who are not known", held>>20)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Whoever sends half a body, or sends one byte after the other, is given up. So is
// whoever sends half the headers, which no test waits for.
func TestSlowBodiesAreGivenUp(t *testing.T) {
	t.Parallel()
	address := serve(t, openStore(t), 100*time.Millisecond)
	for _, path := range []string{"/webhooks/github", "/webhooks/gitea", "/webhooks/gitlab", "/v1/agents/enrol", "/v1/tasks/request", "/v1/tasks/x/events", "/nothing", "/git/x.git/git-receive-pack"} {
		for name, send := range map[string]func(net.Conn){
			"half a body": func(c net.Conn) { _, _ = io.WriteString(c, "{") },
			"a trickle": func(c net.Conn) {
				for {
					if _, err := c.Write([]byte(" ")); err != nil {
						return
					}
				}
			},
		} {
			t.Run(name+" to "+path, func(t *testing.T) {
				t.Parallel()
				connection := dial(t, address)
				if _, err := fmt.Fprintf(connection, unsignedHead+"%sX-Gitlab-Token: %s\r\n\r\n", path, 20<<20, someSignature, secret); err != nil {
					t.Fatal(err)
				}
				go send(connection)
				reader := bufio.NewReader(connection)
				if answer, err := http.ReadResponse(reader, nil); err == nil {
					_, _ = io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
				}
				// Then the connection is closed: nothing is held.
				if _, err := io.Copy(io.Discard, reader); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the server waits without end")
				}
			})
		}
	}
}

// Nothing is read of a webhook that has no signature: it is refused while its body
// is still to come.
func TestUnsignedWebhooksAreNotRead(t *testing.T) {
	t.Parallel()
	address := serve(t, openStore(t), time.Hour)
	for path, header := range map[string]string{
		"/webhooks/github": "X-Hub-Signature-256: sha256=00\r\n", "/webhooks/gitea": "", "/webhooks/gitlab": "X-Gitlab-Token: guess\r\n",
	} {
		connection := dial(t, address)
		if _, err := fmt.Fprintf(connection, unsignedHead+"%s\r\n", path, 20<<20, header); err != nil {
			t.Fatal(err)
		}
		if status, err := answered(connection); status != http.StatusUnauthorized || err != nil {
			t.Errorf("%s answers %d, %v", path, status, err)
		}
	}
}

// A client that opens connections and says nothing loses the oldest of them; those
// on which somebody is known stay.
func TestSilentConnectionsMakeWay(t *testing.T) {
	t.Parallel()
	database := openStore(t)
	address := serve(t, database, time.Hour)
	token, err := access.Tokens{Store: database, Now: time.Now}.Create(t.Context(), access.Viewer, "v")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(connection net.Conn) int {
		if _, err := fmt.Fprintf(connection, "GET /v1/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", token); err != nil {
			return 0
		}
		status, _ := answered(connection)
		return status
	}
	known := dial(t, address)
	if status := ask(known); status != http.StatusOK {
		t.Fatalf("answered %d", status)
	}
	first := dial(t, address)
	// It stays open for two minutes by itself, which is longer than a test waits.
	if _, err := io.WriteString(first, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if status, err := answered(first); status != http.StatusOK || err != nil {
		t.Fatalf("answered %d, %v", status, err)
	}
	const crowd = 400
	for range crowd {
		dial(t, address)
	}
	if status, err := answered(first); status != 0 || err != nil {
		t.Errorf("the oldest connection is still open: %d, %v", status, err)
	}
	if status := ask(known); status != http.StatusOK {
		t.Errorf("a client that is known is answered %d", status)
	}
	if status := ask(dial(t, address)); status != http.StatusOK {
		t.Errorf("a new client is answered %d", status)
	}
}
