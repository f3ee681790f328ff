package endtoend

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/postgres"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/wire"
)

// plan says what a house is like.
type plan struct {
	servers  int    // on one database; 0 means 1
	agents   int    // each takes one task at a time
	database string // the URL of a PostgreSQL database; empty means SQLite
	settings string // more of the configuration, as YAML
	sandbox  string // the kind; empty means bubblewrap
	env      []string
	keys     map[int]string // of the model, by the number of the agent; empty means the one of all
}

// house is an installation in which scenarios happen.
type house struct {
	dir     string
	env     []string // of all processes
	servers []*process
	urls    []string // of the servers
	agents  []*process
	client  *wire.Client // of an administrator, to the first server
	store   store.Store  // to look at; what is done goes through the server
	door    *httptest.Server

	mutex      sync.Mutex
	keys       map[int]string    // of agents; see plan
	rejected   map[string]bool   // keys that the model does not accept
	stories    map[string]*story // by repository
	tasks      map[string]*story // by task
	background sync.WaitGroup
	failed     error // what went wrong in the background
}

// build makes a house and starts all that is in it.
func build(t *testing.T, p plan) *house {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
	h := &house{dir: t.TempDir(), env: append([]string{"TORYO_LLM_API_KEY=sk-scenario"}, p.env...), keys: p.keys, rejected: map[string]bool{}, stories: map[string]*story{}, tasks: map[string]*story{}}
	h.door = httptest.NewServer(h)
	t.Cleanup(h.door.Close)
	must(t, os.WriteFile(filepath.Join(h.dir, "toryo.yaml"), []byte(h.configuration(p)), 0o600))
	t.Cleanup(func() { h.close(t) })
	if p.database != "" {
		h.env = append(h.env, "TORYO_DATABASE_URL="+p.database)
	}
	for i := range max(p.servers, 1) {
		must(t, h.addServer(t.Context(), i))
	}
	token, err := h.toryo(t.Context(), "token", "create", "--role", "admin", "--name", "tester", "--data", h.data(0))
	must(t, err)
	h.client = &wire.Client{Server: h.urls[0], Token: token, HTTP: new(http.Client)}
	if p.database == "" {
		h.store, err = sqlite.Open(t.Context(), filepath.Join(h.data(0), "toryo.db"))
	} else {
		h.store, err = postgres.Open(t.Context(), p.database)
	}
	must(t, err)
	for i := range p.agents {
		must(t, h.addAgent(t.Context(), i))
	}
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// configuration is that of all processes but for what is said by flags.
func (h *house) configuration(p plan) string {
	text := `log: {level: info}
max_attempts: 20
leases: {duration: 1m, renew_every: 10s}
server: {requests_per_token: 0, requests_per_address: 0}
llm: {provider: openai, api: chat, model: scripted, base_url: ` + h.door.URL + `/v1, context_length: 200000, max_tokens: 4000, prices: {input: 1, output: 2}}
sandbox: {kind: ` + cmp.Or(p.sandbox, "bubblewrap") + `, command_timeout: 10m, snapshots: {enabled: false}}
`
	if p.database != "" {
		text += "database: {driver: postgres}\n"
	}
	return text + p.settings
}

func (h *house) data(server int) string { return filepath.Join(h.dir, fmt.Sprint("server", server)) }

func (h *house) agentData(agent int) string { return filepath.Join(h.dir, fmt.Sprint("agent", agent)) }

// addServer starts a server. Each has a data directory of its own, but the repositories
// of the board, which is no forge elsewhere, are common to them.
func (h *house) addServer(ctx context.Context, number int) error {
	port, err := testkit.FreePort()
	if err != nil {
		return err
	}
	address := fmt.Sprint("127.0.0.1:", port)
	common := filepath.Join(h.dir, "board")
	if err := errors.Join(os.MkdirAll(common, 0o700), os.MkdirAll(h.data(number), 0o700)); err != nil {
		return err
	}
	if err := os.Symlink(common, filepath.Join(h.data(number), "board")); err != nil {
		return err
	}
	server := &process{
		name: fmt.Sprint("server", number), dir: h.dir, env: h.env, ready: "listening on",
		args: []string{"serve", "--addr", address, "--data", h.data(number)},
	}
	h.servers, h.urls = append(h.servers, server), append(h.urls, "http://"+address)
	return server.start(ctx)
}

// addAgent starts an agent. It works for the last of the servers; what people do
// goes through the first.
func (h *house) addAgent(ctx context.Context, number int) error {
	oneTime, err := h.toryo(ctx, "agent", "token", "create", "--data", h.data(0))
	if err != nil {
		return err
	}
	name := fmt.Sprint("agent", number)
	agent := &process{
		name: name, dir: h.dir, ready: "asks",
		// What an agent has in its environment may be nowhere.
		env:  append([]string{houseVariable + "=" + h.door.URL, agentVariable + "=" + name, "TORYO_TEST_SECRET=s3cr3t-of-the-host"}, h.env...),
		args: []string{"agent", "--server", h.urls[len(h.urls)-1], "--name", name, "--enrol", oneTime, "--data", h.agentData(number)},
	}
	if key := h.keys[number]; key != "" {
		agent.env = append(agent.env, "TORYO_LLM_API_KEY="+key)
	}
	h.agents = append(h.agents, agent)
	return agent.start(ctx)
}

// close ends everything, and looks at what is left behind.
func (h *house) close(t *testing.T) {
	t.Helper()
	h.background.Wait()
	for _, one := range append(h.agents, h.servers...) {
		one.end(syscall.SIGTERM)
	}
	if h.store != nil {
		must(t, h.store.Close())
	}
	must(t, h.failed)
	for i := range h.agents {
		left, err := os.ReadDir(filepath.Join(h.agentData(i), "agent", "workspaces"))
		if err != nil && !errors.Is(err, os.ErrNotExist) || len(left) > 0 {
			t.Errorf("agent%d has left workspaces behind: %v, %v", i, left, err)
		}
	}
	if t.Failed() {
		for _, one := range append(h.servers, h.agents...) {
			t.Logf("%s says:\n%s", one.name, one.tail())
		}
	}
}

// ServeHTTP is the door of the house: agents tell of moments, and ask the model.
func (h *house) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		if h.rejects(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
			http.Error(w, `{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}`, http.StatusUnauthorized)
			return
		}
		of := h.of(r.Context(), r.Header.Get(llm.RunHeader))
		if of == nil {
			http.Error(w, "the model is asked for a run that nobody knows", http.StatusBadRequest)
			return
		}
		if err := of.asked(r.Context(), task.Phase(r.Header.Get(llm.PhaseHeader))); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		of.model.ServeHTTP(w, r)
		return
	}
	var at moment
	if err := json.NewDecoder(r.Body).Decode(&at); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	said, err := h.decide(r.Context(), at)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if said.Die {
		h.revive(at.Agent)
	}
	if err := json.NewEncoder(w).Encode(said); err != nil && !said.Die {
		h.later(func(context.Context) error { return err })
	}
}

// reject makes the model reject the broken key, or accept it again.
func (h *house) reject(rejected bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.rejected[brokenKey] = rejected
}

func (h *house) rejects(key string) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.rejected[key]
}

// of is the story that a run is part of. Reviews tell of no moments, so that theirs is found
// by the repository.
func (h *house) of(ctx context.Context, run string) *story {
	h.mutex.Lock()
	known := h.tasks[run]
	h.mutex.Unlock()
	if known != nil {
		return known
	}
	is, err := h.store.Task(ctx, task.ID(run))
	if err != nil {
		return nil
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.stories[is.Key.Repository]
}

// decide passes a moment on to the story that it is part of.
func (h *house) decide(ctx context.Context, at moment) (instruction, error) {
	h.mutex.Lock()
	of := h.stories[at.Repository]
	if of != nil {
		h.tasks[at.Task] = of
	}
	h.mutex.Unlock()
	if of == nil {
		return instruction{}, fmt.Errorf("there is no story in %s", at.Repository)
	}
	return of.decide(ctx, at)
}

// later does something that nobody waits for before the house is closed.
func (h *house) later(do func(ctx context.Context) error) {
	h.background.Go(func() {
		if err := do(context.Background()); err != nil {
			h.mutex.Lock()
			defer h.mutex.Unlock()
			h.failed = errors.Join(h.failed, err)
		}
	})
}

func (h *house) agentNamed(name string) *process {
	for _, agent := range h.agents {
		if agent.name == name {
			return agent
		}
	}
	return nil
}

// revive starts an agent again when it has ended.
func (h *house) revive(name string) { h.later(h.agentNamed(name).again) }

// start starts an agent that was stopped.
func (h *house) start(name string) { h.later(h.agentNamed(name).start) }

// stop lets an agent go.
func (h *house) stop(name string) { h.agentNamed(name).end(syscall.SIGTERM) }

// restartServers kills all servers and starts them again.
func (h *house) restartServers(ctx context.Context) error {
	for _, server := range h.servers {
		server.end(syscall.SIGKILL)
	}
	for _, server := range h.servers {
		if err := server.start(ctx); err != nil {
			return err
		}
	}
	return nil
}
