package doctor_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

func TestSandboxNeedsOneWay(t *testing.T) {
	t.Parallel()
	there := doctor.Finding{Name: "bubblewrap", Status: doctor.OK}
	gone := doctor.Finding{Name: "container engine", Status: doctor.Warning}
	if got := doctor.Sandbox(there, gone); got.Status != doctor.OK || got.Found != "bubblewrap" {
		t.Errorf("with one way: %+v", got)
	}
	if got := doctor.Sandbox(gone, gone); got.Status != doctor.Missing || got.Hint == "" {
		t.Errorf("with none: %+v", got)
	}
}

// Landlock is there to be seen, and is never enough by itself.
func TestLandlockIsAWeakWay(t *testing.T) {
	t.Parallel()
	gone := doctor.Finding{Name: "bubblewrap", Status: doctor.Warning}
	there := doctor.Landlock(func() (int, error) { return 7, nil })(t.Context())
	if there.Status != doctor.OK || !strings.Contains(there.Found, "ABI 7") || !strings.Contains(there.Found, "not for tasks from a forge") {
		t.Errorf("found %+v", there)
	}
	if got := doctor.Sandbox(gone, there); got.Status != doctor.Missing || !strings.Contains(got.Found, "landlock serves the demo") || got.Hint == "" {
		t.Errorf("with landlock alone: %+v", got)
	}
	if got := doctor.Sandbox(doctor.Finding{Name: "bubblewrap", Status: doctor.OK}, there); got.Status != doctor.OK || got.Found != "bubblewrap" {
		t.Errorf("with bubblewrap too: %+v", got)
	}
	missing := doctor.Landlock(func() (int, error) { return 0, task.Errorf(task.NotReady, "this kernel has no Landlock") })(t.Context())
	if missing.Status != doctor.Warning || missing.Hint == "" {
		t.Errorf("found %+v", missing)
	}
	if got := doctor.Sandbox(gone, missing); got.Status != doctor.Missing || strings.Contains(got.Found, "landlock") {
		t.Errorf("with nothing: %+v", got)
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
		"wrong key":      {all, task.Errorf(task.BadConfig, "no such key").WithHint("check it"), doctor.Finding{Name: "model", Status: doctor.Missing, Found: "no such key", Hint: "check it"}},
		"odd":            {all, errors.New("odd"), doctor.Finding{Name: "model", Status: doctor.Missing, Found: "odd", Hint: "see llm in toryo.yaml"}},
		"not configured": {config.LLM{}, errors.New("it was asked"), doctor.Finding{Name: "model", Status: doctor.Warning, Found: "none is configured", Hint: doctor.HintForModel(config.LLM{})}},
	} {
		got := doctor.Model(t.Context(), c.llm, func(context.Context) (string, error) { return "answered", c.err })
		if got != c.want {
			t.Errorf("%s, asked: %+v", name, got)
		}
	}
}

func TestForges(t *testing.T) {
	t.Parallel()
	self := func(_ context.Context, forge task.Forge) (string, error) {
		switch forge {
		case task.Gitea:
			return "Bot", nil
		case task.GitLab:
			return "someone", nil
		default:
			return "", errors.New("401")
		}
	}
	c := config.Default()
	if got := doctor.Examine(t.Context(), doctor.Forges(c, self)); len(got) != 1 || got[0].Status != doctor.Warning {
		t.Errorf("with none: %+v", got)
	}
	steps := []struct {
		change func()
		name   string
		status doctor.Status
		says   string
	}{
		{func() { c.GitHub.Owner = "team" }, "github", doctor.Missing, "TORYO_GITHUB_TOKEN"},
		{func() { c.GitHub.Token = "hunter2hunter2" }, "github", doctor.Missing, "github.bot_name"},
		{func() { c.GitHub.BotName = "bot" }, "github", doctor.Missing, "401"},
		{func() { c.GitHub = config.Default().GitHub }, "forge", doctor.Warning, "none"},
		{func() { c.Gitea.Token, c.Gitea.BotName = "hunter2hunter2", "bot" }, "gitea", doctor.OK, "knows us as Bot"},
		{func() {
			c.Gitea = config.Default().Gitea
			c.GitLab.Token, c.GitLab.BotName = "hunter2hunter2", "bot"
		}, "gitlab", doctor.Warning, "someone"},
	}
	for _, step := range steps {
		step.change()
		got := doctor.Examine(t.Context(), doctor.Forges(c, self))
		said := got[0].Found + got[0].Hint
		if len(got) != 1 || got[0].Name != step.name || got[0].Status != step.status || !strings.Contains(said, step.says) || strings.Contains(said, "hunter2") {
			t.Errorf("found %+v, want %s to be %s and say %q", got, step.name, step.status, step.says)
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
		if got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
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
