package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/transport"
	"github.com/toryo-dev/toryo/internal/task"
)

// clock is a clock on which waiting takes no time: it moves on at once.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

func newClock() *clock { return &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.waits = append(c.waits, d)
	return nil
}

// memory is a cache in memory, which fails on request.
type memory struct {
	mu      sync.Mutex
	answers map[string]transport.CachedResponse
	broken  atomic.Bool
}

func (m *memory) Get(_ context.Context, key string) (transport.CachedResponse, bool, error) {
	if m.broken.Load() {
		return transport.CachedResponse{}, false, errors.New("the cache is broken")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, found := m.answers[key]
	return answer, found, nil
}

func (m *memory) Put(_ context.Context, key string, answer transport.CachedResponse) error {
	if m.broken.Load() {
		return errors.New("the cache is broken")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answers == nil {
		m.answers = map[string]transport.CachedResponse{}
	}
	m.answers[key] = answer
	return nil
}

// testTransport is a transport to a real server that answers as the test says.
type testTransport struct {
	*transport.Transport
	clock  *clock
	cache  *memory
	client *http.Client
	url    string
	log    *bytes.Buffer
}

func newTestTransport(t *testing.T, change func(*transport.Options), handler http.HandlerFunc) *testTransport {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	w := &testTransport{clock: newClock(), cache: &memory{}, url: server.URL, log: &bytes.Buffer{}}
	options := transport.Options{Name: "github", Cache: w.cache, Clock: w.clock, Log: slog.New(slog.NewTextHandler(w.log, nil))}
	if change != nil {
		change(&options)
	}
	w.Transport = transport.New(options)
	w.client = forge.HTTPClient(w.Transport)
	return w
}

// reply is an answer that was read.
type reply struct {
	status int
	header http.Header
	body   string
}

func (w *testTransport) do(t *testing.T, method, path string) (reply, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer hunter2")
	answer, err := w.client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return reply{answer.StatusCode, answer.Header, string(body)}, err
}

func (w *testTransport) get(t *testing.T, path string, status int, body string) reply {
	t.Helper()
	answer, err := w.do(t, http.MethodGet, path)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	if answer.status != status || answer.body != body {
		t.Fatalf("GET %s: %d %q, want %d %q", path, answer.status, answer.body, status, body)
	}
	return answer
}

func TestConditionalRequests(t *testing.T) {
	t.Parallel()
	var version atomic.Int64
	for _, by := range []string{"ETag", "Last-Modified"} {
		w := newTestTransport(t, nil, func(w http.ResponseWriter, r *http.Request) {
			value := fmt.Sprintf(`"v%d"`, version.Load())
			w.Header().Set("X-RateLimit-Remaining", "77")
			w.Header().Set("X-RateLimit-Reset", "1893553505")
			w.Header().Set(by, value)
			if r.Header.Get("If-None-Match") == value || r.Header.Get("If-Modified-Since") == value {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Link", `<next>; rel="next"`)
			w.Header().Set("Set-Cookie", "session=1")
			_, _ = fmt.Fprintf(w, `[%d]`, version.Load())
		})
		before := version.Load()
		first := fmt.Sprintf("[%d]", before)
		w.get(t, "/a?page=1", 200, first)
		answer := w.get(t, "/a?page=1", 200, first)
		if answer.header.Get("Link") == "" || answer.header.Get("Content-Type") != "application/json" || answer.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: the headers of the kept answer are %v", by, answer.header)
		}
		w.get(t, "/a?page=2", 200, first) // another page is another answer
		version.Add(1)
		w.get(t, "/a?page=1", 200, fmt.Sprintf("[%d]", before+1))
		w.get(t, "/a?page=1", 200, fmt.Sprintf("[%d]", before+1))
		if got := w.Counts(); got.Requests != 5 || got.NotModified != 2 {
			t.Errorf("%s: %+v, want 5 requests, 2 of them not modified", by, got)
		}
		for key := range w.cache.answers {
			if strings.Contains(key, "page") || strings.Contains(key, "hunter2") {
				t.Errorf("the key %q shows the request", key)
			}
		}
	}
}

func TestNotKept(t *testing.T) {
	t.Parallel()
	tests := map[string]http.HandlerFunc{
		"half-written JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = io.WriteString(w, `{"a":`)
		},
		"an error": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.WriteHeader(http.StatusNotFound)
		},
		"no-store": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Cache-Control", "private, no-store")
		},
		"nothing to compare": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") },
	}
	for name, handler := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTestTransport(t, nil, handler)
			if _, err := w.do(t, http.MethodGet, "/"); err != nil {
				t.Fatal(err)
			}
			if len(w.cache.answers) != 0 {
				t.Errorf("kept %v", w.cache.answers)
			}
		})
	}
}

func TestNotKeptIfAskedNotTo(t *testing.T) {
	t.Parallel()
	w := newTestTransport(t, nil, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("ETag", `"1"`) })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Cache-Control", "no-store")
	answer, err := w.client.Do(request)
	if err != nil || answer.Body.Close() != nil || len(w.cache.answers) != 0 {
		t.Errorf("kept %v, %v", w.cache.answers, err)
	}
}

func TestBrokenCacheCostsRequestsOnly(t *testing.T) {
	t.Parallel()
	w := newTestTransport(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"1"`)
		_, _ = io.WriteString(w, "x")
	})
	w.cache.broken.Store(true)
	w.get(t, "/", 200, "x")
	w.get(t, "/", 200, "x")
}

// TestReadsAreRepeated makes the forge fail in many ways before it answers.
func TestReadsAreRepeated(t *testing.T) {
	t.Parallel()
	tests := map[string]http.HandlerFunc{
		"fault":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"bad gateway": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"timeout":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGatewayTimeout) },
		"cut":         func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"cut in the body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"limited": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		},
	}
	for name, fail := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			handler := func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) < 3 {
					fail(w, r)
					return
				}
				_, _ = io.WriteString(w, "whole")
			}
			w := newTestTransport(t, nil, handler)
			w.get(t, "/", 200, "whole")
			if got := w.Counts().Repeats; got != 2 {
				t.Errorf("%d repeats, want 2", got)
			}
			if len(w.clock.waits) < 2 {
				t.Errorf("waited %v, want a pause before each repeat", w.clock.waits)
			}
			asked.Store(-100)
			if _, err := w.do(t, http.MethodPost, "/"); err == nil && asked.Load() != -99 {
				t.Errorf("a write was sent %d times", asked.Load()+100)
			}
		})
	}
}

func TestReadsGiveUp(t *testing.T) {
	t.Parallel()
	w := newTestTransport(t, func(o *transport.Options) { o.Tries = 3 }, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	w.get(t, "/", 503, "")
	if got := w.Counts().Requests; got != 3 {
		t.Errorf("%d requests, want 3", got)
	}
}

func TestTooLargeIsNotRepeated(t *testing.T) {
	t.Parallel()
	w := newTestTransport(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(forge.MaxResponse+1))
	})
	_, err := w.do(t, http.MethodGet, "/")
	if got := task.CodeOf(forge.Call{What: "read"}.Failure(nil, err)); got != task.TooLarge {
		t.Errorf("code %s of %v", got, err)
	}
	if got := w.Counts().Requests; got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
}

func TestLargeAnswersPass(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 10<<20)
	w := newTestTransport(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"1"`)
		_, _ = io.WriteString(w, large)
	})
	w.get(t, "/", 200, large)
	if len(w.cache.answers) != 0 {
		t.Error("an answer of 10 MB was kept")
	}
}

// TestForgeLimits checks that one refusal holds for all requests after it.
func TestForgeLimits(t *testing.T) {
	t.Parallel()
	type header = map[string]string
	tests := []struct {
		name   string
		status int
		header header
		body   string
		wait   string
	}{
		{"quota used up", 403, header{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1893554045", "Date": "Wed, 02 Jan 2030 03:04:05 GMT"}, "", "600"},
		{"quota, clocks apart", 403, header{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1893554045", "Date": "Wed, 02 Jan 2030 03:04:35 GMT"}, "", "570"},
		{"GitLab's quota", 429, header{"RateLimit-Remaining": "0", "RateLimit-Reset": "1893554045", "Date": "Wed, 02 Jan 2030 03:04:05 GMT"}, "", "600"},
		{"quota in seconds", 429, header{"RateLimit-Remaining": "0", "RateLimit-Reset": "90"}, "", "90"},
		{"asked to wait", 429, header{"Retry-After": "120"}, "", "120"},
		{"secondary, told by its text", 403, nil, `{"message":"You have exceeded a secondary rate limit."}`, "60"},
		{"maintenance", 503, header{"Retry-After": "300"}, "", "300"},
		{"an absurd wait", 429, header{"Retry-After": "9999999999"}, "", "3600"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			w := newTestTransport(t, nil, func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) > 1 {
					_, _ = io.WriteString(w, "ok")
					return
				}
				for name, value := range test.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			w.get(t, "/a", test.status, test.body)
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				answer, err := w.do(t, method, "/b")
				if err != nil {
					t.Fatal(err)
				}
				if answer.status != http.StatusTooManyRequests || answer.header.Get("Retry-After") != test.wait {
					t.Errorf("%s in the pause: %d, wait %q, want 429 and %s", method, answer.status, answer.header.Get("Retry-After"), test.wait)
				}
			}
			if asked.Load() != 1 {
				t.Errorf("the forge was asked %d times, want once", asked.Load())
			}
			_ = w.clock.Wait(t.Context(), time.Hour)
			w.get(t, "/b", 200, "ok")
			if got := w.Counts(); got.Withheld != 2 || got.Limited != 1 {
				t.Errorf("%+v, want 2 withheld, 1 limited", got)
			}
		})
	}
}

func TestReserveIsForWrites(t *testing.T) {
	t.Parallel()
	w := newTestTransport(t, func(o *transport.Options) { o.Reserve = 50 }, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Remaining", "50")
		w.Header().Set("X-RateLimit-Reset", "600")
	})
	w.get(t, "/", 200, "")
	if answer, err := w.do(t, http.MethodGet, "/"); err != nil || answer.status != http.StatusTooManyRequests {
		t.Errorf("a read into the reserve: %v %v", answer, err)
	}
	if answer, err := w.do(t, http.MethodPost, "/"); err != nil || answer.status != 200 {
		t.Errorf("a write from the reserve: %v %v", answer, err)
	}
}

func TestWriteLimitsHoldInEveryWindow(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var at []time.Time
	limits := []transport.Limit{{Count: 8, Per: time.Minute}, {Count: 30, Per: time.Hour}}
	var w *testTransport
	w = newTestTransport(t, func(o *transport.Options) { o.Writes = limits; o.LongestWait = 2 * time.Hour },
		func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, w.clock.Now())
		})
	for range 100 {
		if _, err := w.do(t, http.MethodPost, "/"); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range limits {
		for i := range at {
			if j := i + limit.Count; j < len(at) && at[j].Sub(at[i]) < limit.Per {
				t.Fatalf("writes %d to %d came within %s", i, j, at[j].Sub(at[i]))
			}
		}
	}
	if span := at[len(at)-1].Sub(at[0]); span > 4*time.Hour {
		t.Errorf("100 writes took %s: more than the limits ask for", span)
	}
}

func TestWritesBeyondTheLimitAreWithheld(t *testing.T) {
	t.Parallel()
	w := newTestTransport(t, func(o *transport.Options) { o.Writes = transport.GitHubWrites }, func(http.ResponseWriter, *http.Request) {})
	for i := range 81 {
		answer, err := w.do(t, http.MethodPost, "/")
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 200, false: 429}[i < 80]; answer.status != want {
			t.Fatalf("write %d: status %d, want %d", i+1, answer.status, want)
		}
		if i == 80 && answer.header.Get("Retry-After") != "60" {
			t.Errorf("wait %q, want 60", answer.header.Get("Retry-After"))
		}
	}
}

func TestQueriesAreNoWrites(t *testing.T) {
	t.Parallel()
	w := newTestTransport(t, func(o *transport.Options) { o.Writes = []transport.Limit{{Count: 1, Per: time.Hour}} }, func(http.ResponseWriter, *http.Request) {})
	post := func(query string) int {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/graphql", strings.NewReader(`{"query":"`+query+`"}`))
		answer, err := w.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	for _, step := range []struct {
		query string
		want  int
	}{{"query { viewer { login } }", 200}, {"mutation { x }", 200}, {"{ viewer { login } }", 200}, {"mutation { x }", 429}} {
		if got := post(step.query); got != step.want {
			t.Errorf("%s: %d, want %d", step.query, got, step.want)
		}
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	w := newTestTransport(t, func(o *transport.Options) {
		o.Clock = nil // the real one
		o.Writes = []transport.Limit{{Count: 1, Per: 20 * time.Second}}
	}, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	if _, err := w.do(t, http.MethodPost, "/"); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		ctx, cancel := context.WithCancel(t.Context())
		request, _ := http.NewRequestWithContext(ctx, method, w.url, strings.NewReader("{}"))
		go cancel()
		answer, err := w.client.Do(request)
		if err == nil {
			_ = answer.Body.Close()
			t.Fatalf("%s answered %d after its context ended", method, answer.StatusCode)
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", method, err)
		}
	}
	// The moment that the write did not use is free for another.
	if got := w.Counts().Writes; got != 1 {
		t.Errorf("%d writes, want 1", got)
	}
}

// A context may end in the moment in which a refusal comes in. Whoever ended it
// is to hear of that, not of a forge that is not there.
func TestContextEndsAsTheAnswerComes(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	w := newTestTransport(t, func(o *transport.Options) {
		o.Next = roundTripper(func(request *http.Request) (*http.Response, error) {
			answer, err := http.DefaultTransport.RoundTrip(request)
			cancel()
			return answer, err
		})
	}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, w.url, http.NoBody)
	answer, err := w.client.Do(request)
	if err == nil {
		_ = answer.Body.Close()
		t.Fatalf("answered %d after its context ended", answer.StatusCode)
	}
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A refusal that is too large to be held still has its connection when it is asked again,
// or when nobody is there any more who asks.
func TestLargeRefusalsAreClosed(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		asked int
		fails error
	}{
		"asked again":      {asked: 2},
		"the context ends": {asked: 1, fails: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			refusal := &closes{Reader: strings.NewReader(strings.Repeat("x", 10<<20))}
			asked := 0
			w := newTestTransport(t, func(o *transport.Options) {
				o.Next = roundTripper(func(request *http.Request) (*http.Response, error) {
					if asked++; asked == 1 {
						if x.fails != nil {
							cancel()
						}
						return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: refusal, Request: request}, nil
					}
					if refusal.count != 1 {
						t.Errorf("the refusal is closed %d times before it is asked again", refusal.count)
					}
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: request}, nil
				})
			}, func(http.ResponseWriter, *http.Request) {})
			request, _ := http.NewRequestWithContext(ctx, http.MethodGet, w.url, http.NoBody)
			answer, err := w.client.Do(request)
			if err == nil {
				_ = answer.Body.Close()
			}
			if !errors.Is(err, x.fails) || asked != x.asked || refusal.count != 1 {
				t.Errorf("asked %d times, want %d; it fails with %v, want %v; the refusal is closed %d times", asked, x.asked, err, x.fails, refusal.count)
			}
		})
	}
}

// closes counts how often it is closed.
type closes struct {
	io.Reader
	count int
}

func (c *closes) Close() error {
	c.count++
	return nil
}

// roundTripper is a function that does a request.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestNoCredentialShows(t *testing.T) {
	t.Parallel()
	w := newTestTransport(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3000")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	w.get(t, "/x?private_token=hunter2", 429, "")
	w.cache.broken.Store(true)
	w.get(t, "/x?private_token=hunter2", 429, `{"message":"not sent: the limit of requests to this forge is reached"}`)
	if strings.Contains(w.log.String(), "hunter2") || !strings.Contains(w.log.String(), "path=/x") {
		t.Errorf("the log is %s", w.log)
	}
}
