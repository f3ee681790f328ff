package program

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
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
			command := here.command(t, "serve", "--addr", "127.0.0.1:0")
			stderr, err := command.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			found := false
			for lines := bufio.NewScanner(stderr); !found && lines.Scan(); {
				all.WriteString(lines.Text() + "\n")
				found = strings.Contains(lines.Text(), c.says[0])
				for _, part := range c.says {
					if found && !strings.Contains(lines.Text(), part) {
						t.Errorf("%q is missing in %s", part, lines.Text())
					}
				}
			}
			if !found || strings.Contains(all.String(), "hunter2") {
				t.Errorf("the log is\n%s", all.String())
			}
			if err := command.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = command.Wait() // the pipe is closed, and what it says is of no interest
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
