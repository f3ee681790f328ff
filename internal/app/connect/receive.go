package connect

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/task"
)

// Receiver waits for a webhook that is signed with a secret.
type Receiver interface {
	// Arrived is closed when one has come.
	Arrived() <-chan struct{}
	Close()
}

// Receive begins to wait for webhooks of a forge.
type Receive func(ctx context.Context, kind Kind, secret redact.Secret) (Receiver, error)

// maxTest is the most that is read of a webhook that is a test. That of a push names a few
// commits.
const maxTest = 4 << 20

// ListenAt waits for webhooks where the server will listen, while it does not run. With the
// files of a certificate and its key it speaks HTTPS.
func ListenAt(address, certFile, keyFile string) Receive {
	return func(ctx context.Context, kind Kind, secret redact.Secret) (Receiver, error) {
		listener, err := server.Listen(ctx, address)
		if err != nil {
			return nil, err
		}
		if certFile != "" {
			pair, err := tls.LoadX509KeyPair(certFile, keyFile)
			if err != nil {
				_ = listener.Close()
				return nil, task.Wrap(task.BadConfig, err, "the certificate of the server cannot be read")
			}
			listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
		}
		r := &receiver{arrived: make(chan struct{}), kind: kind, secret: secret}
		r.start(ctx, listener)
		return r, nil
	}
}

// receiver is a server that knows one address.
type receiver struct {
	kind    Kind
	secret  redact.Secret
	arrived chan struct{}
	once    sync.Once
	web     *http.Server
	running lifecycle.Group
}

func (r *receiver) start(ctx context.Context, listener net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhooks/"+string(r.kind.Forge), r.take)
	r.web = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	r.running.Start(ctx, func(context.Context) { _ = r.web.Serve(listener) }) // it ends with Close
}

// take answers one webhook. Anyone can send some: only one with the right signature counts.
func (r *receiver) take(to http.ResponseWriter, request *http.Request) {
	err := r.kind.signed(r.secret.Reveal(), request.Header)
	if err == nil {
		var body []byte
		if body, err = io.ReadAll(http.MaxBytesReader(to, request.Body, maxTest)); err == nil {
			_, err = r.kind.parse(r.secret.Reveal(), request.Header, body)
		}
	}
	if err != nil {
		to.WriteHeader(task.CodeOf(err).Info().Status)
		return
	}
	to.WriteHeader(http.StatusNoContent)
	r.once.Do(func() { close(r.arrived) })
}

// Arrived implements [Receiver].
func (r *receiver) Arrived() <-chan struct{} { return r.arrived }

// Close implements [Receiver].
func (r *receiver) Close() {
	_ = r.web.Close() // what is under way is of no use any more
	r.running.Stop()
}

// Watch waits for webhooks at a server that runs in this process.
func Watch(hooks *server.Webhooks) Receive {
	return func(_ context.Context, kind Kind, secret redact.Secret) (Receiver, error) {
		arrived, stop, err := hooks.Expect(kind.Forge, kind.Webhook(secret))
		if err != nil {
			return nil, err
		}
		return watched{arrived, stop}, nil
	}
}

// watched is a delivery that a running server waits for.
type watched struct {
	arrived <-chan struct{}
	stop    func()
}

// Arrived implements [Receiver].
func (w watched) Arrived() <-chan struct{} { return w.arrived }

// Close implements [Receiver].
func (w watched) Close() { w.stop() }
