package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// api speaks to the API server.
type api struct {
	cluster   cluster
	namespace string
	requests  *http.Client
	upgrades  *http.Client // for what becomes a WebSocket, which HTTP/2 does not do
}

const (
	answerLimit = 32 << 20
	dialTimeout = 10 * time.Second
)

func newAPI(at cluster, namespace string) *api {
	transport := func(http2 bool) *http.Transport {
		made := &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: at.tls.Clone(), ForceAttemptHTTP2: http2,
			DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
		}
		if http2 {
			made.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second}
		}
		return made
	}
	return &api{cluster: at, namespace: namespace, requests: &http.Client{Transport: transport(true)}, upgrades: &http.Client{Transport: transport(false)}}
}

// statusError is what the API server answers when it does not do what was asked.
type statusError struct {
	Status  int
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (s *statusError) Error() string {
	if s.Message == "" {
		return fmt.Sprintf("the API server answered with the status %d", s.Status)
	}
	return s.Message
}

// path is that of a resource in the namespace.
func (a *api) path(parts ...string) string {
	return "/api/v1/namespaces/" + a.namespace + "/" + strings.Join(parts, "/")
}

func (a *api) address(path string, query url.Values) *url.URL {
	address := a.cluster.server.JoinPath(path)
	address.RawQuery = query.Encode()
	return address
}

// request sends one and returns the answer, whose body the caller closes.
func (a *api) request(ctx context.Context, method, path string, query url.Values, kind string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.address(path, query).String(), content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", kind)
	}
	request.Header.Set("Accept", jsonKind)
	if err := a.authorize(request.Header); err != nil {
		return nil, err
	}
	answer, err := a.requests.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusBadRequest {
		defer func() { _ = answer.Body.Close() }()
		return nil, readStatus(answer)
	}
	return answer, nil
}

func (a *api) authorize(header http.Header) error {
	header.Set("User-Agent", "toryo")
	token, err := a.cluster.token()
	if err != nil {
		return fmt.Errorf("read the token: %w", err)
	}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return nil
}

func readStatus(answer *http.Response) error {
	said := &statusError{Status: answer.StatusCode}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err == nil && json.Unmarshal(text, said) != nil {
		said.Message = strings.TrimSpace(string(text[:min(len(text), 300)]))
	}
	return said
}

const (
	jsonKind  = "application/json"
	mergeKind = "application/merge-patch+json"
)

// call sends a request and reads the answer into a value, which may be nil.
func (a *api) call(ctx context.Context, method, path string, query url.Values, body, into any) error {
	kind := jsonKind
	if method == http.MethodPatch {
		kind = mergeKind
	}
	answer, err := a.request(ctx, method, path, query, kind, body)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerLimit))
	if err != nil {
		return err
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// retry repeats a call while the API server is away or busy, for a while. What it
// is used for can be done twice.
func (a *api) retry(ctx context.Context, howLong time.Duration, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, howLong)
	defer cancel()
	wait := 100 * time.Millisecond
	for {
		err := do()
		if err == nil || !isTemporary(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
			wait = min(2*wait, 2*time.Second)
		}
	}
}

// isTemporary reports whether asking again may help.
func isTemporary(err error) bool {
	if said, is := errors.AsType[*statusError](err); is {
		return said.Status == http.StatusTooManyRequests || said.Status >= http.StatusInternalServerError
	}
	return !errors.Is(err, context.Canceled) && isNetwork(err)
}

func isNetwork(err error) bool {
	_, is := errors.AsType[*url.Error](err)
	_, operation := errors.AsType[*net.OpError](err)
	return is || operation || errors.Is(err, io.ErrUnexpectedEOF)
}

// isDial reports whether nothing was sent, because nobody took the connection.
func isDial(err error) bool {
	operation, is := errors.AsType[*net.OpError](err)
	return is && operation.Op == "dial"
}

func isStatus(err error, status int) bool {
	said, is := errors.AsType[*statusError](err)
	return is && said.Status == status
}

// failed gives an error of the API its code.
func failed(err error, doing string) error {
	if _, coded := task.AsError(err); coded || errors.Is(err, context.Canceled) {
		return err
	}
	said, is := errors.AsType[*statusError](err)
	if !is {
		if isNetwork(err) || errors.Is(err, context.DeadlineExceeded) {
			return task.Wrap(task.NotReady, err, "the Kubernetes API server does not answer").
				WithHint("check sandbox.kubernetes.kubeconfig, and whether the cluster is up")
		}
		return task.Wrap(task.Unavailable, err, doing)
	}
	err = sandbox.WithTextReason(err, said.Message)
	switch said.Status {
	case http.StatusUnauthorized:
		return task.Wrap(task.Unauthorized, err, "the cluster does not know us: "+doing).WithHint("renew the token or the certificate of the kubeconfig")
	case http.StatusForbidden:
		return forbidden(said, doing)
	case http.StatusNotFound:
		return task.Wrap(task.NotFound, err, doing)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return task.Wrap(task.Invalid, err, doing)
	case http.StatusConflict:
		return task.Wrap(task.Conflict, err, doing)
	default:
		return task.Wrap(task.Unavailable, err, doing)
	}
}

// forbidden tells what the cluster has too little of from what it does not allow.
func forbidden(said *statusError, doing string) error {
	switch {
	case strings.Contains(said.Message, "exceeded quota"):
		return task.Wrap(task.TooMany, sandbox.Exhausted(said), "the quota of the namespace is used up: "+doing).
			WithHint("wait until other sandboxes end, run fewer at once, or raise the quota")
	case strings.Contains(said.Message, "RuntimeClass"):
		return task.Wrap(task.BadConfig, said, "the runtime class is not there: "+doing).WithHint("check sandbox.kubernetes.runtime_class")
	default:
		return task.Wrap(task.Forbidden, said, "the cluster does not allow it: "+doing).
			WithHint("give the agent's account the role in deploy/kubernetes/sandboxes.yaml")
	}
}
