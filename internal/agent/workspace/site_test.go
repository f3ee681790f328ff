package workspace_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent/workspace"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

const token = "lease-0123456789abcdef"

var repository = mirror.Repository{Forge: task.Gitea, Name: "owner/name"}

// site is a forge's repository, the server's mirror of it and the git that it
// serves to agents.
type site struct {
	*mirror.Mirrors
	origin string // a bare repository
	root   string
	url    string

	mu     sync.Mutex
	tokens map[string]mirror.Holder
}

// newSite makes a repository with the files on main.
func newSite(t testing.TB, files map[string]string) *site {
	t.Helper()
	s := &site{origin: filepath.Join(t.TempDir(), "origin.git"), root: t.TempDir(), tokens: map[string]mirror.Holder{}}
	run(t, "", "init", "--quiet", "--bare", "--initial-branch=main", s.origin)
	var err error
	s.Mirrors, err = mirror.Open(t.Context(), mirror.Options{Root: s.root, Remote: func(context.Context, mirror.Repository) (forge.Remote, error) {
		return forge.Remote{URL: "file://" + s.origin}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	server := httptest.NewServer(http.StripPrefix("/git", s.Handler(s.authenticate)))
	t.Cleanup(server.Close)
	s.url = server.URL
	if files != nil {
		s.commit(t, "main", "first", files)
	}
	return s
}

func (s *site) authenticate(_ context.Context, token string) (mirror.Holder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	holder, found := s.tokens[token]
	if !found {
		return mirror.Holder{}, task.Errorf(task.LeaseLost, "the run is over")
	}
	return holder, nil
}

func (s *site) give(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token] = mirror.Holder{Task: "task1", Generation: 1, Repository: repository}
}

func (s *site) take(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, token)
}

// commit changes files on a branch of the forge; an empty text removes one.
func (s *site) commit(t testing.TB, branch, message string, files map[string]string) string {
	t.Helper()
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.origin, work)
	if _, err := try(t, work, "checkout", "--quiet", branch); err != nil {
		run(t, work, "checkout", "--quiet", "-b", branch)
	}
	for name, text := range files {
		put(t, work, name, text)
	}
	run(t, work, "add", "--all", "--force")
	run(t, work, "commit", "--quiet", "--allow-empty", "-m", message)
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
	return run(t, work, "rev-parse", "HEAD")
}

// seed brings the mirror up to date and gives the task its refs.
func (s *site) seed(t testing.TB, branches ...string) {
	t.Helper()
	if err := s.Fetch(t.Context(), repository, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Seed(t.Context(), mirror.Seed{Repository: repository, Task: "task1", Base: "main", Branches: branches}); err != nil {
		t.Fatal(err)
	}
	s.give(token)
}

func (s *site) options(t testing.TB) workspace.Options {
	return workspace.Options{Dir: filepath.Join(t.TempDir(), "run"), URL: s.url + "/git/task1.git", Token: token, Base: "main", Branch: "toryo/1"}
}

// prepare seeds the task and gives it a workspace.
func (s *site) prepare(t testing.TB, change func(*workspace.Options)) *workspace.Workspace {
	t.Helper()
	s.seed(t)
	options := s.options(t)
	if change != nil {
		change(&options)
	}
	w, err := workspace.Prepare(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Remove() })
	return w
}

// mirrored runs git in the mirror.
func (s *site) mirrored(t testing.TB, args ...string) string {
	t.Helper()
	return run(t, filepath.Join(s.root, "gitea", "owner%2Fname.git"), args...)
}

// space names a ref of the task in the mirror.
func space(ref string) string { return "refs/namespaces/task1/" + ref }

// put writes a file; an empty text removes it.
func put(t testing.TB, dir, name, text string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if text == "" {
		if err := os.RemoveAll(full); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// try runs git as a person would.
func try(t testing.TB, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
	output, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

func run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	output, err := try(t, dir, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}
