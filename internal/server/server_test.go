package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/wire"
)

// house is a server on a real database, reached over real HTTP.
type house struct {
	server *Server
	web    *httptest.Server
	store  store.Store
	log    *bytes.Buffer
}

func newHouse(t *testing.T) house {
	t.Helper()
	database, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close() })
	return houseOn(t, database)
}

func houseOn(t *testing.T, database store.Store) house {
	t.Helper()
	log := new(bytes.Buffer)
	s := New(Options{
		Store: database, Log: slog.New(slog.NewTextHandler(log, nil)), Metrics: new(metrics.Registry),
		Traces: noop.NewTracerProvider(), Now: time.Now, Version: "v1",
	})
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return house{server: s, web: web, store: database, log: log}
}

func (h house) token(t *testing.T, role access.Role) string {
	t.Helper()
	return h.namedToken(t, role, "a "+string(role))
}

func (h house) namedToken(t *testing.T, role access.Role, name string) string {
	t.Helper()
	token, err := access.Tokens{Store: h.store, Now: time.Now}.Create(t.Context(), role, name)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (h house) client(token string) *wire.Client {
	return &wire.Client{Server: h.web.URL, Token: token, HTTP: h.web.Client()}
}

func (h house) get(t *testing.T, path, token string) (status int, header http.Header, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.web.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := h.web.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

func (h house) assign(t *testing.T) task.Task {
	t.Helper()
	made, _, err := h.store.Assign(t.Context(), store.NewTask{
		Key:  task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: 7},
		Type: task.Development, Title: "Fix the gate", Reason: task.ReasonAssigned,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, _, body := h.get(t, path, ""); status != http.StatusOK || body != "ok\n" {
			t.Errorf("%s answers %d %q", path, status, body)
		}
	}
	h = newHouse(t) // what /readyz has found out holds for a moment
	if err := h.store.Close(); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := h.get(t, "/healthz", ""); status != http.StatusOK {
		t.Errorf("without a database /healthz answers %d: the process is alive", status)
	}
	if status, _, body := h.get(t, "/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "database_down") {
		t.Errorf("without a database /readyz answers %d %s", status, body)
	}
}

// Every operation in the OpenAPI document wants a token, whatever is added later.
func TestEveryOperationWantsAToken(t *testing.T) {
	t.Parallel()
	h := newBoardHouse(t).house
	h.server.registerReviews(review.New(review.Options{Store: h.store, Now: time.Now, Log: h.server.log}))
	_, _, text := h.get(t, "/openapi.json", "")
	var document struct {
		Paths map[string]map[string]struct{ Security []map[string][]string }
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Paths) == 0 {
		t.Fatal("the document has no paths")
	}
	revoked := h.token(t, access.Admin)
	h.revokeAll(t)
	for path, operations := range document.Paths {
		for method, operation := range operations {
			if len(operation.Security) == 0 {
				t.Errorf("%s %s says not that it wants a token", method, path)
			}
			concrete := strings.NewReplacer("{id}", "x", "{", "", "}", "").Replace(path)
			for name, token := range map[string]string{"no token": "", "a wrong token": "toryo_x", "a revoked token": revoked, "not a token": "x"} {
				request, err := http.NewRequestWithContext(t.Context(), strings.ToUpper(method), h.web.URL+concrete, nil)
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Authorization", "Bearer "+token)
				answer, err := h.web.Client().Do(request)
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
				if answer.StatusCode != http.StatusUnauthorized || answer.Header.Get("WWW-Authenticate") == "" ||
					answer.Header.Get("Content-Type") != wire.ProblemType {
					t.Errorf("%s %s with %s answers %s, %s", method, path, name, answer.Status, answer.Header.Get("Content-Type"))
				}
			}
		}
	}
}

func (h house) revokeAll(t *testing.T) {
	t.Helper()
	tokens, err := h.store.ListTokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		if err := h.store.RevokeToken(t.Context(), token.ID, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMe(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, role := range access.Roles {
		me, err := h.client(h.token(t, role)).Me(t.Context())
		if err != nil || me != (wire.Me{Name: "a " + string(role), Role: string(role), Version: "v1"}) {
			t.Errorf("%s is %+v, %v", role, me, err)
		}
	}
}

func TestAgentSeesNoTasksOfOthers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	made := h.assign(t)
	_, err := h.client(h.token(t, access.Agent)).Task(t.Context(), made.ID)
	if task.CodeOf(err) != task.Forbidden {
		t.Errorf("an agent that holds nothing gets %v", err)
	}
}

func TestTasks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	made := h.assign(t)
	token := h.token(t, access.Viewer)

	got, err := h.client(token).Task(t.Context(), made.ID)
	if err != nil || got.Item != "board:team/app#7" || got.State != "queued" || got.ReasonText != "the bot was assigned" {
		t.Errorf("the task is %+v, %v", got, err)
	}
	for path, want := range map[string]string{
		"/v1/tasks":                                        made.Title,
		"/v1/tasks?state=queued":                           made.Title,
		"/v1/tasks?state=done":                             `"tasks":[]`,
		"/v1/tasks?repository=team/other":                  `"tasks":[]`,
		"/v1/tasks/" + string(made.ID) + "/events":         `"to":"queued"`,
		"/v1/tasks/" + string(made.ID) + "/events?after=1": `"events":[]`,
	} {
		if status, _, body := h.get(t, path, token); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s answers %d %s; want %s in it", path, status, body, want)
		}
	}
}

func TestBadRequestsAreProblems(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	token := h.token(t, access.Viewer)
	for path, want := range map[string]struct {
		status int
		code   task.Code
	}{
		"/v1/tasks/none":        {http.StatusNotFound, task.NotFound},
		"/v1/tasks/none/events": {http.StatusNotFound, task.NotFound},
		"/v1/tasks?limit=0":     {http.StatusUnprocessableEntity, task.Invalid},
		"/v1/tasks?limit=many":  {http.StatusUnprocessableEntity, task.Invalid},
		"/v1/tasks?state=lost":  {http.StatusUnprocessableEntity, task.Invalid},
		"/nothing/here":         {http.StatusNotFound, task.NotFound},
	} {
		status, header, body := h.get(t, path, token)
		var problem wire.Problem
		if err := json.Unmarshal([]byte(body), &problem); err != nil {
			t.Errorf("%s: %v in %s", path, err, body)
		}
		if status != want.status || problem.Code != string(want.code) || problem.Status != want.status ||
			problem.Detail == "" || header.Get("Content-Type") != wire.ProblemType {
			t.Errorf("%s answers %d %s %s", path, status, header.Get("Content-Type"), body)
		}
	}
}

// faulty is a store some of whose calls fail in ways that nobody foresaw.
type faulty struct {
	store.Store
	fault func() (task.Task, error)
}

func (f faulty) Task(context.Context, task.ID) (task.Task, error) { return f.fault() }

func TestFaultsOfOursAreLoggedAndNotShown(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func() (task.Task, error){
		"error": func() (task.Task, error) { return task.Task{}, errors.New("the inner secret") },
		"panic": func() (task.Task, error) { panic("the inner secret") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := houseOn(t, faulty{newHouse(t).store, fault})
			status, header, body := h.get(t, "/v1/tasks/x", h.token(t, access.Viewer))
			if status != http.StatusInternalServerError || header.Get("Content-Type") != wire.ProblemType {
				t.Errorf("answers %d %s", status, header.Get("Content-Type"))
			}
			if strings.Contains(body, "inner secret") || !strings.Contains(h.log.String(), "inner secret") {
				t.Errorf("the caller sees %s, the log has %s", body, h.log)
			}
			if status, _, _ := h.get(t, "/healthz", ""); status != http.StatusOK {
				t.Errorf("afterwards the server answers %d", status)
			}
		})
	}
}

func TestMetricsCountRoutesNotPaths(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	token := h.token(t, access.Viewer)
	for _, id := range []string{"a", "b", "c"} {
		h.get(t, "/v1/tasks/"+id, token)
	}
	h.get(t, `/no"such\{page}`, "")
	_, header, body := h.get(t, "/metrics", "")
	values := testkit.ParseMetrics(t, body)
	if values[`toryo_http_request_seconds_count{route="GET /v1/tasks/{id}",status="404"}`] != 3 ||
		values[`toryo_http_request_seconds_count{route="/",status="404"}`] != 1 {
		t.Errorf("the metrics are\n%s", body)
	}
	for _, want := range []string{
		"# HELP toryo_http_request_seconds How long requests took, by route and status.",
		"# TYPE toryo_http_request_seconds histogram",
		`toryo_http_request_seconds_bucket{route="GET /v1/tasks/{id}",status="404",le="60"} 3`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("%s is not in the metrics", want)
		}
	}
	if strings.Contains(body, "such") || !strings.HasPrefix(header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("the metrics are %s\n%s", header.Get("Content-Type"), body)
	}
}

// Every agent with a valid token is in one of the numbers, also if this server does not know
// the reason for which it takes no tasks.
func TestMetricsCountEveryAgent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.token(t, access.Agent)
	agents, err := h.store.ListAgents(t.Context())
	if err == nil {
		err = h.store.AgentIs(t.Context(), agents[0].Token, store.Condition{Unable: "reason_of_a_newer_agent"}, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _, body := h.get(t, "/metrics", "")
	if got := testkit.ParseMetrics(t, body)[`toryo_agents{unable="other"}`]; got != 1 {
		t.Errorf("the metrics count %v agents with another reason\n%s", got, body)
	}
}

func TestListenSaysWhatToDo(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, address := range []string{taken.Addr().String(), "nonsense", "127.0.0.1:99999"} {
		_, err := Listen(t.Context(), address)
		coded, _ := task.AsError(err)
		if task.CodeOf(err) != task.AddressInUse || coded.Hint == "" {
			t.Errorf("listening on %s gives %v", address, err)
		}
	}
}

// A request that is under way when the server is told to stop is answered; the
// server says that it is not ready any more, and then is gone.
func TestServeStopsGracefully(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	h := newHouse(t)
	slow := houseOn(t, faulty{h.store, func() (task.Task, error) {
		close(entered)
		<-leave
		return task.Task{ID: "x", Title: "slow"}, nil
	}})
	token := slow.token(t, access.Viewer)
	listener, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- slow.server.Serve(ctx, listener) }()

	answered := make(chan error, 1)
	client := wire.Client{Server: "http://" + listener.Addr().String(), Token: token, HTTP: new(http.Client)}
	go func() {
		got, err := client.Task(t.Context(), "x")
		if err == nil && got.Title != "slow" {
			err = errors.New("the answer is wrong")
		}
		answered <- err
	}()
	<-entered
	stop()
	<-slow.server.stopping
	if status, _, _ := slow.get(t, "/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("while stopping /readyz answers %d", status)
	}
	close(leave)
	if err := <-answered; err != nil {
		t.Errorf("the request that was under way: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Serve returns %v", err)
	}
	if _, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		t.Error("something still listens")
	}
}
