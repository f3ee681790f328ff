package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// boardHouse is a server with a board, a repository on it and people with tokens.
type boardHouse struct {
	house
	board  *board.Board
	source string
	tokens map[string]string
}

func newBoardHouse(t *testing.T) boardHouse {
	t.Helper()
	h := boardHouse{house: newHouse(t), source: filepath.Join(t.TempDir(), "source"), tokens: map[string]string{}}
	opened, err := board.Open(board.Options{Store: h.store, Folder: filepath.Join(t.TempDir(), "board")})
	must(t, err)
	h.board = opened
	h.server.registerBoard(opened)
	must(t, os.Mkdir(h.source, 0o700))
	h.git(t, h.source, "init", "-q", "-b", "main")
	h.write(t, h.source, "README.md", "one\ntwo\nthree\n")
	_, err = opened.Import(t.Context(), "team/app", h.source)
	must(t, err)
	for name, role := range map[string]access.Role{
		"root": access.Admin, "alice": access.Operator, "Bob Builder": access.Operator, "vera": access.Viewer, "machine": access.Agent,
	} {
		h.tokens[name] = h.namedToken(t, role, name)
	}
	return h
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h boardHouse) git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, output)
	}
	return strings.TrimSpace(string(output))
}

func (h boardHouse) write(t testing.TB, folder, path, content string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(folder, path), []byte(content), 0o600))
	h.git(t, folder, "add", "--", path)
	h.git(t, folder, "commit", "-q", "-m", "Change "+path)
}

// push puts a commit on the branch topic of the repository, as people do.
func (h boardHouse) push(t testing.TB, path, content string) {
	t.Helper()
	clone := t.TempDir()
	h.git(t, clone, "clone", "-q", h.board.Path("team/app"), ".")
	h.git(t, clone, "checkout", "-q", "-B", "topic")
	h.write(t, clone, path, content)
	h.git(t, clone, "push", "-q", "--force", "origin", "topic")
}

// request is one call of the API.
type request struct {
	who    string // whose token; "" sends none
	method string
	path   string // below /api/board/repositories
	body   any    // a string is sent as it is
	as     string
	user   string // of the machine
}

func (h boardHouse) do(t testing.TB, r request) (status int, answer string) {
	t.Helper()
	var body io.Reader
	switch given := r.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(given)
	default:
		encoded, err := json.Marshal(given)
		must(t, err)
		body = bytes.NewReader(encoded)
	}
	call, err := http.NewRequestWithContext(t.Context(), r.method, h.web.URL+boardPath+r.path, body)
	must(t, err)
	if r.who != "" {
		call.Header.Set("Authorization", "Bearer "+h.tokens[r.who])
	}
	if r.as != "" {
		call.Header.Set("X-Toryo-As", r.as)
	}
	if r.user != "" {
		call.Header.Set(wire.MachineUserHeader, r.user)
	}
	call.Header.Set("Content-Type", "application/json")
	got, err := h.web.Client().Do(call)
	must(t, err)
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	must(t, err)
	return got.StatusCode, string(text)
}

// call makes a call that succeeds and reads its answer.
func call[Answer any](t testing.TB, h boardHouse, status int, r request) Answer {
	t.Helper()
	got, text := h.do(t, r)
	if got != status {
		t.Fatalf("%s %s answers %d %s, want %d", r.method, r.path, got, text, status)
	}
	var answer Answer
	must(t, json.Unmarshal([]byte(text), &answer))
	return answer
}

const (
	get    = http.MethodGet
	post   = http.MethodPost
	patch  = http.MethodPatch
	remove = http.MethodDelete
)

func (h boardHouse) issue(t testing.TB, who, title string) wire.BoardItem {
	t.Helper()
	return call[wire.BoardItem](t, h, 201, request{who: who, method: post, path: "/team/app/issues", body: wire.NewBoardIssue{Title: title}})
}

// refused makes a call that is refused, with a problem that says why.
func (h boardHouse) refused(t testing.TB, name string, r request, code task.Code) {
	t.Helper()
	status, text := h.do(t, r)
	var problem wire.Problem
	if err := json.Unmarshal([]byte(text), &problem); err != nil {
		t.Errorf("%s: %v in %q", name, err, text)
		return
	}
	if status != code.Info().Status || problem.Code != string(code) || problem.Detail == "" {
		t.Errorf("%s answers %d %s, want %d %s", name, status, text, code.Info().Status, code)
	}
}
