package connect_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// privateKey is a key in PEM as GitHub gives it.
func privateKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// conversions answers as GitHub does, once for each code.
func conversions(t *testing.T, answer any) *httptest.Server {
	t.Helper()
	used := map[string]bool{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /app-manifests/{code}/conversions", func(w http.ResponseWriter, r *http.Request) {
		code := r.PathValue("code")
		if used[code] || code != "c0de" {
			http.Error(w, `{"message":"Not Found"}`, http.StatusNotFound)
			return
		}
		used[code] = true
		w.WriteHeader(http.StatusCreated)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Log(err) // the client has read enough
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// What GitHub gives for the code becomes a configuration that is accepted: the number in the
// file, key and secret in files that nobody else can read, and no token beside them.
func TestAnAppIsConfigured(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	key := privateKey(t)
	github := conversions(t, map[string]any{
		"id": 4711, "slug": "toryo-team", "pem": key, "webhook_secret": "h00k-h00k", "client_secret": "never-used", "owner": map[string]any{"login": "team"},
	})
	client := forge.HTTPClient(nil)
	app, _, err := connect.Convert(t.Context(), client, github.URL, "c0de")
	if err != nil || app.ID != 4711 || app.Bot() != "toryo-team[bot]" || app.WebhookSecret.Reveal() != "h00k-h00k" {
		t.Fatalf("the App is %+v, %v", app, err)
	}
	if _, used, err := connect.Convert(t.Context(), client, github.URL, "c0de"); !used || task.CodeOf(err) != task.Invalid || strings.Contains(err.Error(), "c0de") {
		t.Errorf("a code that was used: %v", err)
	}
	before := "github:\n  owner: old\n  bot_name: old-bot\n  token_file: secrets/token\n  app_installation_id: 99\n"
	for name, text := range map[string]string{"toryo.yaml": before, filepath.Join("secrets", "token"): token} {
		path := filepath.Join(h.folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	answers := connect.Answers{Forge: task.GitHub, URL: "https://github.com", Owner: "team", Bot: "toryo-bot", App: app}
	for range 2 { // the second changes nothing
		if err := h.installer().Apply(t.Context(), answers); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range h.steps {
		if step.State != connect.Unchanged {
			t.Errorf("a step of the second run: %+v", step)
		}
	}
	c, report := config.Load(h.file(), nil, nil)
	if err := report.Err(); err != nil || len(report.Warnings) > 0 {
		t.Fatalf("the configuration: %v, %v", err, report.Warnings)
	}
	if c.GitHub.AppID != 4711 || c.GitHub.AppInstallationID != 0 || c.GitHub.AppPrivateKey.Reveal() != strings.TrimSpace(key) || c.GitHub.Token != "" ||
		c.GitHub.Owner != "team" || c.GitHub.BotName != "toryo-bot" || c.GitHub.AppName != "toryo-team" || c.GitHub.WebhookSecret.Reveal() != "h00k-h00k" {
		t.Errorf("the configuration says %+v", c.GitHub)
	}
	for name, text := range h.content() {
		if secret := strings.HasPrefix(name, filepath.Join("data", "secrets")); !secret && (strings.Contains(text, "h00k-h00k") || strings.Contains(text, "PRIVATE KEY")) {
			t.Errorf("a secret is in %s", name)
		} else if secret && !strings.HasPrefix(text, "-rw-------") && !strings.HasPrefix(text, "drwx------") {
			t.Errorf("others can read %s", name)
		}
	}
}

// An answer that is not one of GitHub's is refused, and nothing of it is repeated.
func TestOddAnswersAboutAnApp(t *testing.T) {
	t.Parallel()
	key := privateKey(t)
	good := func(change func(map[string]any)) map[string]any {
		answer := map[string]any{"id": 1, "slug": "app", "pem": key, "webhook_secret": nil}
		change(answer)
		return answer
	}
	for name, answer := range map[string]any{
		"no id":             good(func(a map[string]any) { delete(a, "id") }),
		"a slug with paths": good(func(a map[string]any) { a["slug"] = "../app" }),
		"no key":            good(func(a map[string]any) { a["pem"] = "squeak-squeak" }),
		"two lines":         good(func(a map[string]any) { a["webhook_secret"] = "squeak\nand more" }),
		"too long":          good(func(a map[string]any) { a["pem"] = strings.Repeat("squeak", 1<<20) }),
		"a list":            []string{"squeak"},
	} {
		_, used, err := connect.Convert(t.Context(), forge.HTTPClient(nil), conversions(t, answer).URL, "c0de")
		if !used || task.CodeOf(err) != task.Unavailable || strings.Contains(fmt.Sprint(err), "squeak") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if app, _, err := connect.Convert(t.Context(), forge.HTTPClient(nil), conversions(t, good(func(map[string]any) {})).URL, "c0de"); err != nil || app.WebhookSecret != redact.Secret("") {
		t.Errorf("an App without a webhook: %v", err)
	}
	for _, code := range []string{"", "../x", "a/b", strings.Repeat("x", 201), "a b"} {
		if _, _, err := connect.Convert(t.Context(), forge.HTTPClient(nil), "http://127.0.0.1:1", code); task.CodeOf(err) != task.Invalid {
			t.Errorf("the code %q: %v", code, err)
		}
	}
	if _, used, err := connect.Convert(t.Context(), forge.HTTPClient(nil), "http://127.0.0.1:1", "c0de"); used || task.CodeOf(err) != task.Unavailable || strings.Contains(err.Error(), "c0de") {
		t.Errorf("GitHub does not answer: %v", err)
	}
}

// The manifest asks for what docs/github.md lists, and for a webhook only where GitHub can
// reach the server.
func TestManifest(t *testing.T) {
	t.Parallel()
	made := connect.NewManifest("toryo", "https://toryo.example.com/", "/connect/github/callback", "https://github.com")
	if made.Redirect != "https://toryo.example.com/connect/github/callback" || made.Hook == nil || made.Hook.URL != "https://toryo.example.com/webhooks/github" || made.Public {
		t.Errorf("the manifest is %+v", made)
	}
	docs, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "github.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range made.Events {
		if !strings.Contains(string(docs), "`"+event+"`") {
			t.Errorf("docs/github.md does not name the event %s", event)
		}
	}
	for _, event := range []string{"issues", "pull_request", "pull_request_review_thread", "push", "check_run", "status", "label"} {
		if !slices.Contains(made.Events, event) {
			t.Errorf("the manifest does not ask for %s", event)
		}
	}
	for permission, want := range map[string]string{"contents": "write", "issues": "write", "pull_requests": "write", "statuses": "write", "checks": "read", "actions": "read", "workflows": "write", "metadata": "read"} {
		if made.Permissions[permission] != want {
			t.Errorf("the manifest asks for %s: %q", permission, made.Permissions[permission])
		}
	}
	if len(made.Permissions) != 8 {
		t.Errorf("the manifest asks for %v", made.Permissions)
	}
	if local := connect.NewManifest("toryo", "http://127.0.0.1:8750", "/back", "https://github.com"); local.Hook != nil || len(local.Events) > 0 {
		t.Errorf("GitHub cannot reach this server, but the manifest has %+v", local.Hook)
	}
	for _, test := range [][3]string{
		{"https://github.com", "", "https://github.com/settings/apps/new"},
		{"https://github.com/", "my org", "https://github.com/organizations/my%20org/settings/apps/new"},
		{"https://git.example.com", "team", "https://git.example.com/organizations/team/settings/apps/new"},
	} {
		if got := connect.Registration(test[0], test[1]); got != test[2] {
			t.Errorf("an App of %q is registered at %s", test[1], got)
		}
	}
	if got := connect.AppPage("https://github.com", "app[bot]"); got != "https://github.com/apps/app/installations/new" {
		t.Errorf("the App is installed at %s", got)
	}
	if got := connect.AppPage("https://git.example.com/", "app[bot]"); got != "https://git.example.com/github-apps/app/installations/new" {
		t.Errorf("the App is installed at %s", got)
	}
}
