package llm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// errSilent ends a connection on which nothing came for too long.
var errSilent = errors.New("nothing came from the server for too long")

// Endpoint is where a model is and how it is to be used. Every adapter is made
// from one.
type Endpoint struct {
	Model         string
	BaseURL       string // "" for the vendor's own
	Key           string
	Own           bool // BaseURL is a server of a vendor, which has all of the vendor's API
	MaxTokens     int64
	ContextLength int64
	Temperature   *float64
	Prices        Prices
	Reasoning     Reasoning
	NoReasoning   bool // the model is known not to reason
	// Silence is for how long the server may send nothing; 0 means five minutes.
	Silence time.Duration
	// Transport carries the requests; nil means the standard one.
	Transport http.RoundTripper
}

// The defaults of an [Endpoint].
const (
	DefaultMaxTokens = 8192
	DefaultSilence   = 5 * time.Minute
)

// Limit is how long the answer to the request may be.
func (e Endpoint) Limit(request Request) int64 {
	switch {
	case request.MaxTokens > 0:
		return request.MaxTokens
	case e.MaxTokens > 0:
		return e.MaxTokens
	}
	return DefaultMaxTokens
}

// Info describes the endpoint's model.
func (e Endpoint) Info(provider string) Info {
	return Info{
		Provider: provider, Model: e.Model, ContextLength: e.ContextLength,
		MaxTokens: e.Limit(Request{}), Prices: e.Prices,
	}
}

// Vendor says that the server is a vendor's, and no compatible one.
func (e Endpoint) Vendor() bool { return e.BaseURL == "" || e.Own }

// Headers are the headers that tell a scripted server about the request. There
// are none for a vendor's own server.
func (e Endpoint) Headers(request Request) map[string]string {
	headers := map[string]string{}
	if e.Vendor() {
		return headers
	}
	if request.Run != "" {
		headers[RunHeader] = request.Run
	}
	if request.Phase != "" {
		headers[PhaseHeader] = string(request.Phase)
	}
	return headers
}

// HTTPClient returns a client that ends a call when the server is silent for too
// long, and that fills in the [Exchange] of the request's context. It has no
// limit for the whole call: an answer may take long as long as it comes. It follows no
// redirect: a key in a header other than Authorization would go along to another host.
func (e Endpoint) HTTPClient() *http.Client {
	transport := &watchedTransport{next: e.Transport, silence: e.Silence}
	if transport.next == nil {
		transport.next = http.DefaultTransport
	}
	if transport.silence == 0 {
		transport.silence = DefaultSilence
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Exchange is what an adapter wants to know of an HTTP answer besides its body.
type Exchange struct {
	mu     sync.Mutex
	status int
	header http.Header
}

// Answered returns status and headers of the answer; status is 0 when none came.
func (e *Exchange) Answered() (int, http.Header) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.status, e.header
}

// Scripted reports whether the answer is marked as coming from a script.
func (e *Exchange) Scripted() bool {
	_, header := e.Answered()
	return header.Get(ScriptedHeader) != ""
}

type exchangeKey struct{}

// WithExchange returns a context whose HTTP call fills in the exchange.
func WithExchange(ctx context.Context) (context.Context, *Exchange) {
	exchange := &Exchange{}
	return context.WithValue(ctx, exchangeKey{}, exchange), exchange
}

type watchedTransport struct {
	next    http.RoundTripper
	silence time.Duration
}

func (t *watchedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(t.silence, func() { cancel(errSilent) })
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		timer.Stop()
		err = t.explain(ctx, err)
		cancel(nil)
		return nil, err
	}
	if exchange, ok := ctx.Value(exchangeKey{}).(*Exchange); ok {
		exchange.mu.Lock()
		exchange.status, exchange.header = response.StatusCode, response.Header
		exchange.mu.Unlock()
	}
	response.Body = &watchedBody{ReadCloser: response.Body, transport: t, ctx: ctx, cancel: cancel, timer: timer}
	return response, nil
}

func (t *watchedTransport) explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// watchedBody lives as long as one answer; the context that it holds is that
// answer's own.
type watchedBody struct {
	io.ReadCloser
	transport *watchedTransport
	ctx       context.Context //nolint:containedctx // it is ended with the body
	cancel    context.CancelCauseFunc
	timer     *time.Timer
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.timer.Reset(b.transport.silence)
	}
	if err != nil && err != io.EOF { //nolint:errorlint // io.EOF is never wrapped by a reader
		err = b.transport.explain(b.ctx, err)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
