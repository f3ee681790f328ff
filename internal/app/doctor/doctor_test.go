package doctor_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/task"
)

// engine answers on a socket as a container engine does.
func engine(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "engine") //nolint:usetesting // the path of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket := filepath.Join(folder, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	server.Start()
	t.Cleanup(server.Close)
	return "unix://" + socket
}

func TestContainerEngine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		address string
		status  doctor.Status
		found   string
	}{
		"there":           {engine(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"Version":"20.10.24"}`)) }), doctor.OK, "20.10.24"},
		"something else":  {engine(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }), doctor.Warning, "does not speak the Docker API"},
		"not there":       {"unix:///no/such/socket", doctor.Warning, "/no/such/socket"},
		"not an address":  {"://", doctor.Warning, "://"},
		"nobody on a tcp": {"tcp://127.0.0.1:1", doctor.Warning, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := doctor.ContainerEngine(c.address)(t.Context())
			if got.Status != c.status || !strings.Contains(got.Found, c.found) || (got.Status != doctor.OK && got.Hint == "") {
				t.Errorf("found %+v", got)
			}
		})
	}
}

// A check that hangs is cut off by its context, and that is a finding.
func TestEngineThatHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	address := engine(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := doctor.ContainerEngine(address)(ctx); got.Status != doctor.Warning {
		t.Errorf("found %+v", got)
	}
}

// The finding is about the sandbox that an agent would take, whatever else there is.
func TestSandboxIsTheConfiguredOne(t *testing.T) {
	t.Parallel()
	bubblewrap := doctor.Finding{Name: "bubblewrap", Status: doctor.OK}
	noEngine := doctor.Finding{Name: "container engine", Status: doctor.Warning, Hint: "install one:", Command: "sudo install"}
	weak := doctor.Landlock(func() (int, error) { return 7, nil })(t.Context())
	silent := task.Wrap(task.NotReady, errors.New("no socket"), "the Docker Engine does not answer").WithHint("install and start it")
	none := task.Errorf(task.NotReady, "no sandbox works here (docker: silent)").WithHint("install bubblewrap")
	for name, c := range map[string]struct {
		kind   string
		chosen string
		err    error
		ways   []doctor.Finding
		status doctor.Status
		says   []string
	}{
		"docker is configured and missing":    {"docker", "", silent, []doctor.Finding{noEngine, bubblewrap}, doctor.Missing, []string{"docker is configured", "does not answer: no socket", "sandbox.kind: auto", "bubblewrap works here", "install one: $ sudo install"}},
		"docker alone, and it is broken":      {"docker", "", silent, []doctor.Finding{{Name: "container engine", Status: doctor.OK}, weak}, doctor.Missing, []string{"does not answer: no socket → install and start it"}},
		"docker is configured and there":      {"docker", "docker", nil, nil, doctor.OK, []string{"docker, as configured"}},
		"the automatic choice":                {"auto", "bubblewrap", nil, []doctor.Finding{noEngine, bubblewrap}, doctor.OK, []string{"bubblewrap, which auto takes here"}},
		"nothing for the automatic choice":    {"auto", "", none, []doctor.Finding{noEngine}, doctor.Missing, []string{"no sandbox works here", "install bubblewrap"}},
		"landlock alone":                      {"auto", "", none, []doctor.Finding{noEngine, weak}, doctor.Missing, []string{"no sandbox works here", "landlock serves the demo"}},
		"landlock is configured and is there": {"landlock", "landlock", nil, []doctor.Finding{weak}, doctor.Warning, []string{"weak", "sandbox.kind: auto"}},
	} {
		got := doctor.Sandbox(t.Context(), c.kind, func(context.Context) (string, error) { return c.chosen, c.err }, c.ways...)
		if got.Status != c.status {
			t.Errorf("%s: %+v", name, got)
		}
		for _, part := range c.says {
			if !strings.Contains(got.Found+" → "+got.Hint+" $ "+got.Command, part) {
				t.Errorf("%s: %q is missing in %+v", name, part, got)
			}
		}
	}
}

// Only what matters for the configured kind is said about the others.
func TestWaysOfTheConfiguredKind(t *testing.T) {
	t.Parallel()
	ways := []doctor.Finding{{Name: "container engine", Status: doctor.OK}, {Name: "bubblewrap", Status: doctor.OK}, {Name: "landlock", Status: doctor.OK}}
	for kind, want := range map[string]int{"auto": 3, "docker": 1, "bubblewrap": 1, "landlock": 1, "kubernetes": 0} {
		if got := doctor.WaysOf(kind, ways); len(got) != want {
			t.Errorf("for %s there are %+v", kind, got)
		}
	}
	if got := doctor.WaysOf("docker", ways); got[0].Name != "container engine" {
		t.Errorf("for docker there is %+v", got)
	}
	ways[0].Status = doctor.Warning // which the finding about the sandbox says
	if got := doctor.WaysOf("docker", ways); len(got) != 0 {
		t.Errorf("for docker, which is missing, there is %+v", got)
	}
}

// Landlock is there to be seen, and says what it is not for.
func TestLandlockIsAWeakWay(t *testing.T) {
	t.Parallel()
	there := doctor.Landlock(func() (int, error) { return 7, nil })(t.Context())
	if there.Status != doctor.OK || !strings.Contains(there.Found, "ABI 7") || !strings.Contains(there.Found, "not for tasks from a forge") {
		t.Errorf("found %+v", there)
	}
	missing := doctor.Landlock(func() (int, error) { return 0, task.Errorf(task.NotReady, "this kernel has no Landlock") })(t.Context())
	if missing.Status != doctor.Warning || missing.Hint == "" {
		t.Errorf("found %+v", missing)
	}
}

func TestControlGroupsAreNamed(t *testing.T) {
	t.Parallel()
	if got := doctor.ControlGroups(func() (int, error) { return 2, nil }); got.Status != doctor.OK || !strings.Contains(got.Found, "version 2") {
		t.Errorf("found %+v", got)
	}
	got := doctor.ControlGroups(func() (int, error) { return 0, errors.New("not delegated") })
	if got.Status != doctor.Warning || !strings.Contains(got.Found, "not delegated") || !strings.Contains(got.Hint, "Delegate=yes") {
		t.Errorf("found %+v", got)
	}
}

// The hint is about what is missing, and not about what is there.
func TestHintForModel(t *testing.T) {
	t.Parallel()
	for want, llm := range map[string]config.LLM{
		"set llm.provider and llm.model": {},
		"set llm.model in toryo.yaml":    {Provider: "anthropic"},
		"put the key into":               {Provider: "anthropic", Model: "m"},
		"set llm.script":                 {Provider: "script"},
	} {
		if got := doctor.HintForModel(llm); !strings.HasPrefix(got, want) {
			t.Errorf("for %+v: %s", llm, got)
		}
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		llm    config.LLM
		status doctor.Status
	}{
		"none":                  {config.LLM{}, doctor.Warning},
		"no model":              {config.LLM{Provider: "anthropic", APIKey: "k"}, doctor.Warning},
		"no key":                {config.LLM{Provider: "anthropic", Model: "m"}, doctor.Warning},
		"all":                   {config.LLM{Provider: "anthropic", Model: "m", APIKey: "k"}, doctor.OK},
		"a server of one's own": {config.LLM{Provider: "openai", Model: "m", BaseURL: "http://127.0.0.1:11434/v1"}, doctor.OK},
		"scripted":              {config.LLM{Provider: "script", Script: "s.yaml"}, doctor.OK},
		"without its script":    {config.LLM{Provider: "script"}, doctor.Warning},
	} {
		if got := doctor.Model(t.Context(), c.llm, nil); got.Status != c.status || (got.Hint == "") != (c.status == doctor.OK) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	all := config.LLM{Provider: "anthropic", Model: "m", APIKey: "k"}
	for name, c := range map[string]struct {
		llm  config.LLM
		err  error
		want doctor.Finding
	}{
		"answers":        {all, nil, doctor.Finding{Name: "model", Status: doctor.OK, Found: "anthropic m answered"}},
		"wrong key":      {all, task.Errorf(task.BadConfig, "no such key").WithHint("check it"), doctor.Finding{Name: "model", Status: doctor.Missing, Found: "no such key", Hint: "check it", Command: "toryo init"}},
		"odd":            {all, errors.New("odd"), doctor.Finding{Name: "model", Status: doctor.Missing, Found: "odd", Hint: "see llm in toryo.yaml", Command: "toryo init"}},
		"not configured": {config.LLM{}, errors.New("it was asked"), doctor.Finding{Name: "model", Status: doctor.Warning, Found: "none is configured", Hint: doctor.HintForModel(config.LLM{}), Command: "toryo init"}},
	} {
		got := doctor.Model(t.Context(), c.llm, func(context.Context) (string, error) { return "answered", c.err })
		if !cmp.Equal(got, c.want) {
			t.Errorf("%s, asked: %+v", name, got)
		}
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	c := config.Default()
	if got := doctor.Links(c, "http://127.0.0.1:8750"); got.Status != doctor.OK {
		t.Errorf("with the board alone: %+v", got)
	}
	c.GitHub.Owner = "team"
	if got := doctor.Links(c, "http://127.0.0.1:8750"); got.Status != doctor.Warning || !strings.Contains(got.Hint, "server.public_url") {
		t.Errorf("with a forge: %+v", got)
	}
	c.Server.PublicURL = "https://toryo.example.com"
	if got := doctor.Links(c, c.Server.PublicURL); got.Status != doctor.OK || !strings.Contains(got.Found, "toryo.example.com") {
		t.Errorf("with an address for people: %+v", got)
	}
}

func TestDataDir(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]doctor.Status{
		folder:                              doctor.OK,
		filepath.Join(folder, "new", "one"): doctor.OK,
		file:                                doctor.Missing,
		filepath.Join(file, "below"):        doctor.Missing,
	} {
		if got := doctor.DataDir(path)(t.Context()); got.Status != status {
			t.Errorf("%s: %+v", path, got)
		}
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 1 {
		t.Errorf("the checks left %v, %v", left, err)
	}
}

func TestDatabase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want doctor.Finding
	}{
		"there":      {nil, doctor.Finding{Name: "database", Status: doctor.OK, Found: "postgres, seen"}},
		"with words": {task.Errorf(task.DatabaseDown, "it is down").WithHint("start it"), doctor.Finding{Name: "database", Status: doctor.Missing, Found: "postgres, it is down", Hint: "start it"}},
		"without":    {errors.New("odd"), doctor.Finding{Name: "database", Status: doctor.Missing, Found: "postgres, odd", Hint: "see database in toryo.yaml"}},
	} {
		got := doctor.Database("postgres", func(context.Context) (string, error) { return "seen", c.err })(t.Context())
		if !cmp.Equal(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// People see the command that fixes something on a line of its own, programs in a field.
func TestCommandsArePrinted(t *testing.T) {
	t.Parallel()
	finding := doctor.Finding{Name: "gitea", Status: doctor.Missing, Found: "no token", Hint: "make one:", Command: "toryo init"}
	var text strings.Builder
	if err := doctor.Print(&text, []doctor.Finding{finding}); err != nil {
		t.Fatal(err)
	}
	if want := "✗ gitea  no token\n         → make one:\n         $ toryo init\n"; text.String() != want {
		t.Errorf("it says\n%s", text.String())
	}
	encoded, err := json.Marshal(finding)
	if want := `{"name":"gitea","status":"missing","found":"no token","hint":"make one:","command":"toryo init"}`; err != nil || string(encoded) != want {
		t.Errorf("as JSON it is %s, %v", encoded, err)
	}
}

// Forges and other programs have said some of what is found: it cannot command the terminal, nor
// look like a finding of its own.
func TestFindingsCannotCommandTheTerminal(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	if err := doctor.Print(&text, []doctor.Finding{{Name: "gitea", Status: doctor.Missing, Found: "no\x1b[2J\n✓ gitea  fine", Hint: "see\r\nthere"}}); err != nil {
		t.Fatal(err)
	}
	if want := "✗ gitea  no[2J ✓ gitea fine\n         → see there\n"; text.String() != want {
		t.Errorf("it says\n%q", text.String())
	}
}

func TestHealthyMeansNothingMissing(t *testing.T) {
	t.Parallel()
	if !doctor.Healthy([]doctor.Finding{{Status: doctor.OK}, {Status: doctor.Warning}}) || doctor.Healthy([]doctor.Finding{{Status: doctor.OK}, {Status: doctor.Missing}}) {
		t.Error("a warning is not an illness, something missing is")
	}
}

// The board is one server's own, which matters when there may be several.
func TestBoard(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, driver := range []string{"sqlite", "postgres"} {
		if got := doctor.Board(driver, folder)(t.Context()); got.Status != doctor.OK {
			t.Errorf("an empty board on %s: %+v", driver, got)
		}
	}
	if err := os.MkdirAll(filepath.Join(folder, "team", "app.git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := doctor.Board("sqlite", folder)(t.Context()); got.Status != doctor.OK || !strings.Contains(got.Found, "1 repositories") {
		t.Errorf("a board on SQLite: %+v", got)
	}
	if got := doctor.Board("postgres", folder)(t.Context()); got.Status != doctor.Warning || got.Hint == "" {
		t.Errorf("a board on PostgreSQL: %+v", got)
	}
}
