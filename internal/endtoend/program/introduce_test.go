package program

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// smallGitea is a Gitea that says who we are and which repositories there are, and no more.
func smallGitea(t *testing.T, login string, repositories ...string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/user", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"id": 1, "login": login})
	})
	mux.HandleFunc("GET /api/v1/user/repos", func(w http.ResponseWriter, r *http.Request) {
		var all []map[string]any
		for i, name := range repositories {
			owner, short, _ := strings.Cut(name, "/")
			all = append(all, map[string]any{"id": i + 1, "name": short, "full_name": name, "owner": map[string]any{"login": owner}})
		}
		if page := r.URL.Query().Get("page"); page != "" && page != "1" {
			all = nil
		}
		_ = json.NewEncoder(w).Encode(all)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// awaitedLine keeps what is written to it, and tells of the first line that has a text.
type awaitedLine struct {
	text  string
	found chan string // has room for one

	mu  sync.Mutex
	all strings.Builder
}

func (a *awaitedLine) Write(written []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all.Write(written)
	for line := range strings.Lines(a.all.String()) {
		if strings.HasSuffix(line, "\n") && strings.Contains(line, a.text) {
			select {
			case a.found <- line:
			default: // it was told
			}
			break
		}
	}
	return len(written), nil
}

// saysOnce starts a server and stops it when its log has a line with a text. It returns that line,
// "" if there is none, and the whole log. A server that neither says it nor ends is killed.
func saysOnce(t *testing.T, command *exec.Cmd, text string) (line, all string) {
	t.Helper()
	log := &awaitedLine{text: text, found: make(chan string, 1)}
	command.Stderr = log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() })
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }() // it is waited for below
	select {
	case line = <-log.found:
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("on SIGTERM it ends with %v", err)
		}
	case err := <-ended:
		t.Errorf("the server has ended: %v", err)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	return line, log.all.String()
}

// A server says in its log whom it acts as and which repositories it works on, or that there are
// none. A forge that is down does not keep it from starting.
func TestServerSaysWhomItActsAs(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, c := range map[string]struct {
		url, owner string
		says       []string
	}{
		"found":       {smallGitea(t, "toryo-bot", "team/app", "team/lib", "alice/notes"), "team", []string{"the server acts on a forge", "forge=gitea", "account=toryo-bot", "repositories=2", "team/app", "team/lib"}},
		"wrong owner": {smallGitea(t, "toryo-bot", "team/app"), "teem", []string{"no repository of the forge is worked on", "account=toryo-bot", "teem", "team/app"}},
		"another bot": {smallGitea(t, "someone", "team/app"), "team", []string{"acts as another account", "account=someone", "bot_name=toryo-bot"}},
		"down":        {closed.URL, "team", []string{"does not say whom the server acts as", "connection refused", "toryo doctor"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here := newPlace(t, "sqlite")
			here.environ = append(here.environ, "TORYO_LOG_LEVEL=info", "TORYO_GITEA_URL="+c.url, "TORYO_GITEA_OWNER="+c.owner, "TORYO_GITEA_BOT_NAME=toryo-bot",
				"TORYO_GITEA_TOKEN=hunter2hunter2")
			line, all := saysOnce(t, here.command(t, "serve", "--addr", "127.0.0.1:0"), c.says[0])
			for _, part := range c.says {
				if !strings.Contains(line, part) {
					t.Errorf("%q is missing in %q", part, line)
				}
			}
			if line == "" || strings.Contains(all, "hunter2") {
				t.Errorf("the log is\n%s", all)
			}
		})
	}
}

// A provider that wants a key is not said to refuse one where none is set.
func TestDoctorSaysThatNoKeyIsSet(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"message":"You did not provide an API key."}}`))
	}))
	t.Cleanup(site.Close)
	configuration := "llm: {provider: openai, model: m, base_url: '" + site.URL + "/v1'}"
	unset := []string{"TORYO_LLM_API_KEY=", "OPENAI_API_KEY="} // whoever runs the tests may have one
	said := newPlace(t, "sqlite").run(t, configuration, unset, "doctor", "--online")
	if !strings.Contains(said, "wants a key, and none is set") || strings.Contains(said, "does not accept the key") || !strings.Contains(said, "TORYO_LLM_API_KEY") {
		t.Errorf("without a key it says\n%s", said)
	}
	said = newPlace(t, "sqlite").run(t, configuration, append(unset, "TORYO_LLM_API_KEY=hunter2hunter2"), "doctor", "--online")
	if !strings.Contains(said, "does not accept the key") || strings.Contains(said, "hunter2") {
		t.Errorf("with a wrong key it says\n%s", said)
	}
}
