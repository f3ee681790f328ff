package connectpage_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"html"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/app/connectpage"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testkit/forgesetup"
	"github.com/toryo-dev/toryo/internal/web"
)

const (
	bot   = "toryo-bot"
	token = "t0k3n-t0k3n-t0k3n"
	key   = "k3y-k3y-k3y-k3y"
)

// installation is a server with pages on a real database, an administrator with a browser, a
// configuration file, and a forge in memory behind an address at which a Gitea answers.
type installation struct {
	*testing.T

	folder   string
	database string
	store    store.Store
	forge    *forgesetup.Forge
	address  string // of the forge
	page     *connectpage.Page
	url      string
	browser  *http.Client
	log      *lockedBuffer
	environ  []string
	opened   error // that the adapter cannot be made
	answer   error // of the model
	asked    config.LLM
	through  http.RoundTripper // by which the model was asked

	mu      sync.Mutex
	handler http.Handler
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	gitea := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/version" {
			_, _ = io.WriteString(w, `{"version":"1.24.0"}`)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(gitea.Close)
	h := &installation{
		T: t, folder: t.TempDir(), database: testkit.SQLite(t, sqlite.Open), forge: forgesetup.New(bot, "team/app", "team/web"), address: gitea.URL, log: &lockedBuffer{},
	}
	h.forge.Token = token
	h.must(os.Mkdir(h.data(), 0o700))
	var err error
	h.store, err = sqlite.Open(t.Context(), h.database)
	h.must(err)
	t.Cleanup(func() { _ = h.store.Close() })
	running := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		handler := h.handler
		h.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(running.Close)
	h.url = running.URL
	h.start()
	return h
}

func (h *installation) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *installation) data() string { return filepath.Join(h.folder, "data") }
func (h *installation) file() string { return filepath.Join(h.folder, "toryo.yaml") }

// load reads the configuration as the server does when it starts.
func (h *installation) load() config.Config {
	h.Helper()
	file := h.file()
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		file = ""
	}
	loaded, report := config.Load(file, h.environ, map[string]string{"data_dir": h.data()})
	h.must(report.Err())
	for _, warning := range report.Warnings {
		if !strings.HasSuffix(warning.Key, ".model") { // nothing is known of the models of the tests
			h.Errorf("warning: %v", warning)
		}
	}
	return loaded
}

// start starts the server, or starts it again: with what the configuration says now.
func (h *installation) start(change ...func(*connectpage.Options)) {
	h.Helper()
	running := h.load()
	log := slog.New(slog.NewTextHandler(h.log, nil))
	hooks := &server.Webhooks{
		Forges: map[task.Forge]server.Webhook{}, Seen: h.store, Changes: items.NewFeed(items.NewSnapshots(nil, items.DefaultAges, nil)), Log: log, Now: time.Now,
	}
	if running.Gitea.WebhookSecret != "" {
		hooks.Forges[task.Gitea] = webhookOf(running)
	}
	options := connectpage.Options{
		File: h.file(), Given: h.file(), Environ: h.environ, Overrides: map[string]string{"data_dir": h.data()}, Running: running, Command: "toryo up --config " + h.file(), OwnAgent: true, URL: h.url,
		Open: func(c config.Config, of task.Forge, _ *http.Client) (forge.Forge, error) {
			return h.forge.As(connect.TokenOf(c, of).Reveal()), h.opened
		},
		Client: connectpage.NewClient(), API: func(address string) string { return address + "/api/v3" },
		Ask: func(_ context.Context, llm config.LLM, through http.RoundTripper) error {
			h.asked, h.through = llm, through
			return h.answer
		},
		Scope: func(c config.Config) func(task.Forge, string) bool {
			return func(_ task.Forge, name string) bool { return strings.HasPrefix(name, c.Gitea.Owner+"/") }
		},
		NeedsModel: func(config.Config) bool { return true },
		Webhooks:   hooks, Events: func(context.Context) ([]web.WebhookRepository, error) { return nil, nil }, Store: h.store,
		Now: time.Now, Random: rand.Reader, Wait: 10 * time.Second, Log: log,
	}
	for _, set := range change {
		set(&options)
	}
	h.page = connectpage.New(options)
	pages := web.New(web.Options{Store: h.store, Log: log, Now: time.Now, Version: "v1", Connecting: h.page})
	h.Cleanup(pages.Stop)
	mux := http.NewServeMux()
	hooks.Register(mux)
	mux.Handle("/", pages)
	h.mu.Lock()
	h.handler = mux
	h.mu.Unlock()
	jar, err := cookiejar.New(nil)
	h.must(err)
	h.browser = &http.Client{Jar: jar}
	path, err := pages.Invite(h.Context(), "root", access.Admin)
	h.must(err)
	if status, _ := h.do(http.MethodGet, path, nil); status != http.StatusOK {
		h.Fatalf("the administrator cannot enter: %d", status)
	}
}

// do sends a request and returns the page as people read it.
func (h *installation) do(method, path string, form url.Values) (status int, page string) {
	h.Helper()
	request, err := http.NewRequestWithContext(h.Context(), method, h.url+path, strings.NewReader(form.Encode()))
	h.must(err)
	request.Header.Set("Accept", "text/html")
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := h.browser.Do(request)
	h.must(err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	h.must(err)
	return answer.StatusCode, html.UnescapeString(string(text))
}

func (h *installation) get(path string) (int, string) {
	h.Helper()
	return h.do(http.MethodGet, path, nil)
}

func (h *installation) post(path string, form url.Values) (int, string) {
	h.Helper()
	return h.do(http.MethodPost, path, form)
}

// says makes sure that texts are on a page.
func (h *installation) says(page string, texts ...string) {
	h.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			h.Errorf("%q is not on the page", text)
		}
	}
}

// onlyInSecrets makes sure that a secret is in files that nobody else can read, and nowhere
// else: not in another file of the installation, in the database, in the log or on the page.
func (h *installation) onlyInSecrets(secret string, pages ...string) {
	h.Helper()
	found := false
	for _, folder := range []string{h.folder, filepath.Dir(h.database)} {
		h.must(filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(text, []byte(secret)) {
				return err
			}
			info, err := entry.Info()
			if filepath.Dir(path) != filepath.Join(h.data(), "secrets") || info.Mode().Perm() != 0o600 {
				h.Errorf("a secret is in %s with the mode %s", path, info.Mode())
			}
			found = true
			return err
		}))
	}
	if !found {
		h.Error("the secret is in no file")
	}
	h.nowhere(secret, pages...)
}

// nowhere makes sure that a secret is neither in the log nor on pages, nor in a file outside of
// the folder of the secrets.
func (h *installation) nowhere(secret string, pages ...string) {
	h.Helper()
	if strings.Contains(h.log.String(), secret) {
		h.Errorf("a secret is in the log: %s", h.log)
	}
	_, now := h.get("/connect")
	for _, page := range append(pages, now) {
		if strings.Contains(page, secret) {
			h.Error("a secret is on the page")
		}
	}
}

// untouched makes sure that nothing was written.
func (h *installation) untouched() {
	h.Helper()
	left, err := os.ReadDir(h.folder)
	h.must(err)
	inside, err := os.ReadDir(h.data())
	h.must(err)
	if len(left) != 1 || len(inside) != 0 || len(h.forge.Written()) > 0 {
		h.Errorf("%v, %v and %v are written", left, inside, h.forge.Written())
	}
}
