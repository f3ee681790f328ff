package connectpage_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connectpage"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
)

// gitHub is a GitHub Enterprise Server that registers one App and has it installed at team.
type gitHub struct {
	*installation

	URL    string
	key    string       // of the App, in PEM
	status atomic.Int64 // with which it refuses to give the key; 0 if it does not
}

func newGitHub(h *installation) *gitHub {
	h.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	h.must(err)
	g := &gitHub{installation: h, key: string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}))}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v3/app-manifests/c0de/conversions", func(w http.ResponseWriter, _ *http.Request) {
		if status := g.status.Load(); status != 0 {
			w.WriteHeader(int(status))
			return
		}
		w.WriteHeader(http.StatusCreated)
		if err := json.NewEncoder(w).Encode(map[string]any{"id": 4711, "slug": "toryo-team", "pem": g.key, "webhook_secret": "h00k-h00k-h00k", "client_secret": "cl13nt-cl13nt"}); err != nil {
			h.Error(err)
		}
	})
	for path, answer := range map[string]string{
		"GET /api/v3/app":                                 `{"id": 4711, "slug": "toryo-team"}`,
		"GET /api/v3/orgs/team/installation":              `{"id": 12}`,
		"POST /api/v3/app/installations/12/access_tokens": `{"token": "ghs_1", "expires_at": "2100-01-01T00:00:00Z"}`,
		"GET /api/v3/installation/repositories":           `{"total_count": 1, "repositories": [{"id": 1, "name": "app", "full_name": "team/app", "owner": {"login": "team"}, "default_branch": "main"}]}`,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
	}
	mux.HandleFunc("GET /api/v3/meta", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Github-Enterprise-Version", "3.20.0") })
	server := httptest.NewServer(mux)
	h.Cleanup(server.Close)
	g.URL = server.URL
	return g
}

// begin sends the form of an App, and returns the way back on which GitHub sends people, and the
// page from which the manifest goes there.
func (g *gitHub) begin() (back, page string) {
	g.Helper()
	status, page := g.post("/connect/github/app", url.Values{"url": {g.URL}, "owner": {"team"}, "account": {"toryo-bot"}, "organisation": {"yes"}, "name": {""}})
	found := toGitHub.FindStringSubmatch(page)
	if status != http.StatusOK || found == nil || found[1] != g.URL+"/organizations/team/settings/apps/new" {
		g.Fatalf("no form for GitHub: %d %s", status, page)
	}
	state, err := url.QueryUnescape(found[2])
	g.must(err)
	return "/connect/github/callback?" + url.Values{"code": {"c0de"}, "state": {state}}.Encode(), page
}

var toGitHub = regexp.MustCompile(`action="([^"]+/settings/apps/new)\?state=([^"]+)"`)

// A GitHub App is registered by its manifest: what GitHub gives for the code becomes a
// configuration that is accepted, with the key and the secret in files.
func TestRegisterAnApp(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	github := newGitHub(h)
	back, page := github.begin()
	h.says(page, `"redirect_url":"`+h.url+`/connect/github/callback"`, `"name":"toryo-team"`, `"contents":"write"`, "pull_request_review_thread", h.url+"/webhooks/github")
	h.untouched()
	status, page := h.get(back)
	if status != http.StatusOK {
		t.Fatalf("the way back answers %d: %s", status, page)
	}
	h.says(page, "toryo-team[bot]", github.URL+"/github-apps/toryo-team/installations/new", "toryo up --config", filepath.Join(h.data(), "secrets", "github-app-key"))
	c := h.load()
	if c.GitHub.AppID != 4711 || c.GitHub.Owner != "team" || c.GitHub.BotName != "toryo-bot" || c.GitHub.AppName != "toryo-team" || c.GitHub.URL != github.URL ||
		c.GitHub.AppPrivateKey.Reveal() != strings.TrimSpace(github.key) || c.GitHub.WebhookSecret.Reveal() != "h00k-h00k-h00k" {
		t.Errorf("the configuration says %+v", c.GitHub)
	}
	adapter, err := site.OpenForge(c, task.GitHub) // as a server makes it
	h.must(err)
	if repositories, err := adapter.Repositories(t.Context()); err != nil || len(repositories) != 1 || repositories[0].Name != "team/app" {
		t.Errorf("a server with this configuration finds the repositories %v, %v", repositories, err)
	}
	h.onlyInSecrets("h00k-h00k-h00k", page)
	h.onlyInSecrets(strings.Split(github.key, "\n")[2], page)
	h.nowhere("cl13nt-cl13nt", page)
	if status, _ := h.get(back); status != http.StatusForbidden {
		t.Errorf("the same again answers %d", status)
	}
	if status, page := h.post("/connect/forge", url.Values{"forge": {"github"}, "url": {github.URL}, "token": {token}, "repositories": {"team/app"}, "webhook": {"no"}}); status != http.StatusConflict || !strings.Contains(page, "a GitHub App acts as the bot") {
		t.Errorf("a token beside the App answers %d", status)
	}
}

// What goes wrong before GitHub has given the key can be tried again.
func TestAnAppThatGitHubGivesLater(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	github := newGitHub(h)
	back, _ := github.begin()
	github.status.Store(http.StatusBadGateway)
	if status, page := h.get(back); status != http.StatusServiceUnavailable || !strings.Contains(page, "load this page again") {
		t.Errorf("GitHub is away, and the way back answers %d", status)
	}
	github.status.Store(0)
	if status, _ := h.get(back); status != http.StatusOK || h.load().GitHub.AppID != 4711 {
		t.Errorf("later the way back answers %d", status)
	}
}

// Who comes back from GitHub while somebody else connects something waits for that.
func TestTwoConnectAtOnce(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	asked, answer, done := make(chan struct{}), make(chan struct{}), make(chan int, 1)
	h.start(func(o *connectpage.Options) {
		o.Ask = func(context.Context, config.LLM, http.RoundTripper) error {
			close(asked)
			<-answer
			return nil
		}
	})
	github := newGitHub(h)
	back, _ := github.begin()
	go func() {
		status, _ := h.post("/connect/model", url.Values{"provider": {"openai"}, "model": {"m"}, "key": {key}})
		done <- status
	}()
	<-asked
	h.mu.Lock()
	pages := h.handler
	h.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/connect/github/callback" {
			close(answer) // the model is written now, which takes longer than to come here
		}
		pages.ServeHTTP(w, r)
	})
	h.mu.Unlock()
	second, page := h.get(back)
	if first := <-done; first != http.StatusOK || second != http.StatusOK {
		t.Errorf("they are answered %d and %d: %s", first, second, page)
	}
	if c := h.load(); c.GitHub.AppID != 4711 || c.LLM.Model != "m" {
		t.Errorf("the configuration says %+v and %+v", c.GitHub, c.LLM)
	}
}

// A variable that would go over what GitHub gives is found before an App is registered.
func TestVariablesGoOverAnApp(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.start(func(o *connectpage.Options) { o.Environ = []string{"TORYO_GITHUB_WEBHOOK_SECRET=x"} })
	status, page := h.post("/connect/github/app", url.Values{"url": {"http://127.0.0.1:1"}, "owner": {"team"}, "account": {"toryo-bot"}})
	if status != http.StatusConflict {
		t.Errorf("the form answers %d", status)
	}
	h.says(page, "TORYO_GITHUB_WEBHOOK_SECRET")
	h.untouched()
}
