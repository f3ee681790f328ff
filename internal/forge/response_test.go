package forge_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestFailure(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	type header = map[string]string
	tests := []struct {
		name   string
		status int
		header header
		code   task.Code
		wait   time.Duration
	}{
		{"bad credential", 401, nil, task.Unauthorized, 0},
		{"not allowed", 403, nil, task.Forbidden, 0},
		{"not allowed, quota left", 403, header{"X-RateLimit-Remaining": "12"}, task.Forbidden, 0},
		{"quota used up", 403, header{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1893553505"}, task.Unavailable, time.Minute},
		{"secondary limit", 403, header{"Retry-After": "30"}, task.Unavailable, 30 * time.Second},
		{"too many requests", 429, header{"RateLimit-Reset": "1893553455"}, task.Unavailable, 10 * time.Second},
		{"too many requests, no hint", 429, nil, task.Unavailable, 0},
		{"a date to wait for", 429, header{"Retry-After": "Wed, 02 Jan 2030 03:04:35 GMT"}, task.Unavailable, 30 * time.Second},
		{"a wait in the past", 429, header{"X-RateLimit-Reset": "1"}, task.Unavailable, 0},
		{"an absurd wait", 429, header{"Retry-After": "99999999999"}, task.Unavailable, time.Hour},
		{"a negative wait", 429, header{"Retry-After": "-5"}, task.Unavailable, 0},
		{"a wait that is no number", 429, header{"Retry-After": "soon"}, task.Unavailable, 0},
		{"not there", 404, nil, task.NotFound, 0},
		{"gone", 410, nil, task.NotFound, 0},
		{"moved elsewhere", 301, nil, task.NotFound, 0},
		{"conflict", 409, nil, task.Conflict, 0},
		{"locked", 423, nil, task.Conflict, 0},
		{"not mergeable", 405, nil, task.Conflict, 0},
		{"invalid", 422, nil, task.Invalid, 0},
		{"bad request", 400, nil, task.Invalid, 0},
		{"too large", 413, nil, task.TooLarge, 0},
		{"fault", 500, nil, task.Unavailable, 0},
		{"not implemented", 501, nil, task.Unsupported, 0},
		{"bad gateway", 502, nil, task.Unavailable, 0},
		{"maintenance", 503, header{"Retry-After": "120"}, task.Unavailable, 2 * time.Minute},
		{"timeout", 504, nil, task.Unavailable, 0},
		{"a yes that cannot be read", 200, nil, task.Unavailable, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			answer := &http.Response{StatusCode: test.status, Header: http.Header{}}
			for name, value := range test.header {
				answer.Header.Set(name, value)
			}
			err := forge.Call{What: "do it", Now: now}.Failure(answer, errors.New("why"))
			if got := task.CodeOf(err); got != test.code {
				t.Errorf("code %s, want %s", got, test.code)
			}
			if got := forge.RetryAfter(err); got != test.wait {
				t.Errorf("wait %s, want %s", got, test.wait)
			}
		})
	}
}

// The network's own failures, over real connections.
func TestFailureOfTheNetwork(t *testing.T) {
	t.Parallel()
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(cut.Close)
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	tests := []struct {
		name    string
		ctx     context.Context //nolint:containedctx // the table is about contexts
		address string
		is      error
	}{
		{"the connection is cut", t.Context(), cut.URL, io.EOF},
		{"nobody listens", t.Context(), dead.URL, nil},
		{"the context ends", ended, cut.URL, context.Canceled},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			request, err := http.NewRequestWithContext(test.ctx, http.MethodPost, test.address+"/x?token=hunter2", nil)
			if err != nil {
				t.Fatal(err)
			}
			_, cause := forge.HTTPClient(nil).Do(request) //nolint:bodyclose // it fails
			err = forge.Call{What: "do it"}.Failure(nil, cause)
			if task.CodeOf(err) != task.Unavailable {
				t.Errorf("code %s: %v", task.CodeOf(err), err)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%v is not %v", err, test.is)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the query: %v", err)
			}
		})
	}
}

func TestLimitAnswers(t *testing.T) {
	t.Parallel()
	for _, length := range []bool{true, false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := strings.Repeat("x", len(r.URL.Path))
			if !length {
				w.(http.Flusher).Flush() // then the length is not announced
			}
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(server.Close)
		client := &http.Client{Transport: forge.LimitResponses(http.DefaultTransport, 10)}
		read := func(path string) error {
			answer, err := client.Get(server.URL + path)
			if err != nil {
				return err
			}
			defer func() { _ = answer.Body.Close() }()
			_, err = io.ReadAll(answer.Body)
			return err
		}
		if err := read("/23456789a"); err != nil {
			t.Errorf("an answer of the limit's size: %v", err)
		}
		err := forge.Call{What: "read"}.Failure(nil, read("/23456789ab"))
		if task.CodeOf(err) != task.TooLarge {
			t.Errorf("an answer past the limit, announced %v: %v", length, err)
		}
	}
}

func TestNoRedirectionIsFollowed(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/old", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/new", http.StatusMovedPermanently) })
	mux.HandleFunc("/new", func(http.ResponseWriter, *http.Request) { t.Error("the redirection was followed") })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	answer, err := forge.HTTPClient(nil).Get(server.URL + "/old")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if err := (forge.Call{What: "read"}).Failure(answer, nil); task.CodeOf(err) != task.NotFound {
		t.Errorf("a redirection is %v, want not_found", err)
	}
}

func TestFailureIsShort(t *testing.T) {
	t.Parallel()
	cause := errors.New(strings.Repeat("x\x00\n", 10<<20/3))
	err := forge.Call{What: "read"}.Failure(&http.Response{StatusCode: http.StatusInternalServerError}, cause)
	if len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x00\n") || !errors.Is(err, cause) {
		t.Errorf("an error of %d bytes: %.100q", len(err.Error()), err.Error())
	}
}

func TestRemoteHidesItsPassword(t *testing.T) {
	t.Parallel()
	remote := forge.Remote{URL: "https://forge.example/o/n.git", Username: "bot", Password: "hunter2"}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("fetch", "remote", remote)
	for _, text := range []string{remote.String(), remote.GoString(), log.String(), (&url.Error{Op: "x", URL: remote.String(), Err: io.EOF}).Error()} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("the password shows in %q", text)
		}
	}
}
