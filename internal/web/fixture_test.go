package web

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestMain(m *testing.M) {
	code := m.Run()
	testkit.StopBrowser()
	os.Exit(code)
}

const (
	bot      = "toryo"
	password = "a long pass phrase"
)

// house is the pages on a real database and a real board, reached over real HTTP.
type house struct {
	pages *Pages
	web   *httptest.Server
	store store.Store
	board *board.Board
	log   *strings.Builder
	file  string // of the database
	raw   *sql.DB
}

type with func(*Options)

func newHouse(t testing.TB, options ...with) *house {
	t.Helper()
	folder := t.TempDir()
	file := testkit.SQLite(t, sqlite.Open)
	database, err := sqlite.Open(t.Context(), file)
	must(t, err)
	t.Cleanup(func() { must(t, database.Close()) })
	h := &house{store: database, log: new(strings.Builder), file: file}
	h.board, err = board.Open(board.Options{Store: database, Folder: filepath.Join(folder, "board"), Bot: bot})
	must(t, err)
	must(t, h.board.AddUser(t.Context(), bot, forge.WriteAccess))
	all := Options{
		Store: database, Log: slog.New(slog.DiscardHandler), Now: time.Now, Version: "v1", Board: h.board,
		LookEvery: 20 * time.Millisecond,
	}
	for _, set := range options {
		set(&all)
	}
	h.pages = New(all)
	h.web = httptest.NewServer(h.pages)
	t.Cleanup(h.web.Close)
	t.Cleanup(h.pages.Stop) // before the server, which waits for live pages
	for login, role := range map[string]access.Role{"alice": access.Operator, "bob": access.Operator, "vera": access.Viewer, "root": access.Admin} {
		must(t, h.pages.accounts.Create(t.Context(), login, role, ""))
	}
	return h
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// repository puts a repository on the board: team/app, with a file and a branch
// that changes it.
func (h *house) repository(t testing.TB) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "source")
	must(t, os.Mkdir(source, 0o700))
	git(t, source, "init", "-q", "-b", "main")
	commit(t, source, "gate.go", "package gate\n\nfunc Open() string {\n\treturn \"squeak\"\n}\n")
	_, err := h.board.Import(t.Context(), "team/app", source)
	must(t, err)
}

func git(t testing.TB, folder string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, output)
	}
}

func write(t testing.TB, folder, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, path)), 0o700))
	must(t, os.WriteFile(filepath.Join(folder, path), []byte(content), 0o600))
}

func commit(t testing.TB, folder, path, content string) {
	t.Helper()
	write(t, folder, path, content)
	git(t, folder, "add", "--", path)
	git(t, folder, "commit", "-q", "-m", "Change "+path)
}

// push puts a change of gate.go on the branch fix, as an agent's work is published.
func (h *house) push(t testing.TB, content string) {
	t.Helper()
	h.pushAll(t, "fix", map[string]string{"gate.go": content})
}

// pushAll puts changes of several files on a branch.
func (h *house) pushAll(t testing.TB, branch string, files map[string]string) {
	t.Helper()
	clone := t.TempDir()
	git(t, clone, "clone", "-q", h.board.Path("team/app"), ".")
	git(t, clone, "checkout", "-q", "-B", branch)
	for path, content := range files {
		write(t, clone, path, content)
	}
	git(t, clone, "add", "--all")
	git(t, clone, "commit", "-q", "-m", "Change it")
	git(t, clone, "push", "-q", "origin", branch)
}

// visitor is someone with a browser that runs no scripts.
type visitor struct {
	t      testing.TB
	house  *house
	client *http.Client
	header http.Header
}

// visitor makes one who is signed in; "" is nobody.
func (h *house) visitor(t testing.TB, login string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	v := &visitor{t: t, house: h, client: &http.Client{Jar: jar}, header: http.Header{"Accept": {"text/html"}}}
	if login != "" {
		path, err := h.pages.Invite(t.Context(), login, access.Viewer)
		must(t, err)
		if status, _ := v.get(path); status != http.StatusOK {
			t.Fatalf("%s cannot enter: %d", login, status)
		}
	}
	return v
}

func (v *visitor) do(method, path string, form url.Values) (status int, page string) {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), method, v.house.web.URL+path, strings.NewReader(form.Encode()))
	must(v.t, err)
	request.Header = v.header.Clone()
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := v.client.Do(request)
	must(v.t, err)
	defer func() { _ = answer.Body.Close() }()
	var text strings.Builder
	_, err = readAll(&text, answer)
	must(v.t, err)
	return answer.StatusCode, text.String()
}

func (v *visitor) get(path string) (int, string) {
	v.t.Helper()
	return v.do(http.MethodGet, path, nil)
}

func (v *visitor) post(path string, form url.Values) (int, string) {
	v.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	return v.do(http.MethodPost, path, form)
}

// audit returns the audit log, newest first, as lines.
func (h *house) audit(t testing.TB) []string {
	t.Helper()
	entries, err := h.store.ListAudit(t.Context(), "", 0)
	must(t, err)
	var lines []string
	for _, e := range entries {
		lines = append(lines, e.Actor+" "+e.Action+" "+e.Subject+" "+e.Outcome)
	}
	return lines
}

// task makes a task for an issue of team/app that an agent holds.
func (h *house) runningTask(t testing.TB, number int64, title string) task.Task {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	key := task.Key{Forge: task.Board, Repository: "team/app", Kind: task.Issue, Number: number}
	made, _, err := h.store.Assign(ctx, store.NewTask{Key: key, Type: task.Development, Role: "BACKENDCODER", Title: title, Reason: task.ReasonAssigned}, nil)
	must(t, err)
	held, err := h.store.Claim(ctx, []store.Claim{{Task: made.ID, Generation: made.Generation, Agent: "mill", TokenHash: []byte{1}, ExpiresAt: time.Now().Add(time.Hour)}}, nil)
	must(t, err)
	if len(held) != 1 {
		t.Fatal("the task was not claimed")
	}
	return held[0]
}

// execute runs a statement on the database: the store has no way to make what happened on other days.
func (h *house) execute(t testing.TB, statement string, args ...any) {
	t.Helper()
	if h.raw == nil {
		var err error
		h.raw, err = sql.Open("sqlite", h.file+"?_pragma=busy_timeout(5000)")
		must(t, err)
		t.Cleanup(func() { _ = h.raw.Close() })
	}
	for i, arg := range args {
		if kind := reflect.ValueOf(arg); kind.Kind() == reflect.String {
			args[i] = kind.String()
		}
	}
	_, err := h.raw.ExecContext(t.Context(), statement, args...)
	must(t, err)
}

func readAll(into *strings.Builder, answer *http.Response) (int64, error) {
	return io.Copy(into, answer.Body)
}
