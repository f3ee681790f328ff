// Package gitsite is a forge's repository, the server's mirror of it, and the git
// that the server gives to agents, all real, for tests of what agents do with it.
package gitsite

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

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

// Token is the token of the task's lease.
const Token = "lease-0123456789abcdef"

// Task is the one task that there is.
const Task task.ID = "task1"

var repository = task.Repository{Forge: task.Gitea, Name: "owner/name"}

// Site is a forge's repository, the server's mirror of it and the git that it
// serves to agents.
type Site struct {
	mirrors *mirror.Mirrors
	// Origin is the forge's repository, which is bare.
	Origin string
	root   string
	url    string

	mu        sync.Mutex
	tokens    map[string]mirror.Holder
	pushError error
}

// New makes a repository with the files on main; with none it is empty.
func New(t testing.TB, files map[string]string) *Site {
	t.Helper()
	return NewIn(t, t.TempDir(), files)
}

// NewIn is New with the server's mirror in a folder.
func NewIn(t testing.TB, root string, files map[string]string) *Site {
	t.Helper()
	s := &Site{Origin: filepath.Join(t.TempDir(), "origin.git"), root: root, tokens: map[string]mirror.Holder{}}
	Run(t, "", "init", "--quiet", "--bare", "--initial-branch=main", s.Origin)
	var err error
	s.mirrors, err = mirror.Open(t.Context(), mirror.Options{Root: s.root, Remote: func(context.Context, task.Repository) (forge.Remote, error) {
		return forge.Remote{URL: "file://" + s.Origin}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.mirrors.Stop)
	git := s.mirrors.Handler(s.authenticate)
	server := httptest.NewServer(http.StripPrefix("/git", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		git.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), checksKey{}, new(int))))
	})))
	t.Cleanup(server.Close)
	s.url = server.URL
	if files != nil {
		s.Commit(t, "main", "first", files)
	}
	return s
}

// checksKey is the key under which a request has the number of times that its token
// was checked. The second check is that of the hook, when a push is received.
type checksKey struct{}

func (s *Site) authenticate(ctx context.Context, _ task.ID, token string) (mirror.Holder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if checks, is := ctx.Value(checksKey{}).(*int); is {
		if *checks++; *checks > 1 && s.pushError != nil {
			return mirror.Holder{}, s.pushError
		}
	}
	holder, found := s.tokens[token]
	if !found {
		return mirror.Holder{}, task.Errorf(task.LeaseLost, "the run is over")
	}
	return holder, nil
}

// RefusePushes makes the hook refuse every push with the error; nil ends that.
func (s *Site) RefusePushes(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pushError = err
}

// ReplaceHook puts another script in the place of the mirror's hook for pushes.
func (s *Site) ReplaceHook(t testing.TB, script string) {
	t.Helper()
	hook := filepath.Join(s.root, "hooks", "pre-receive")
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
}

// Give gives a token the lease.
func (s *Site) Give(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token] = mirror.Holder{Task: Task, Generation: 1, Repository: repository}
}

// Take ends the lease of a token.
func (s *Site) Take(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, token)
}

// Commit changes files on a branch of the forge; an empty text removes one.
func (s *Site) Commit(t testing.TB, branch, message string, files map[string]string) string {
	t.Helper()
	work := t.TempDir()
	Run(t, "", "clone", "--quiet", s.Origin, work)
	if _, err := Try(t, work, "checkout", "--quiet", branch); err != nil {
		Run(t, work, "checkout", "--quiet", "-b", branch)
	}
	for name, text := range files {
		Put(t, work, name, text)
	}
	Run(t, work, "add", "--all", "--force")
	Run(t, work, "commit", "--quiet", "--allow-empty", "-m", message)
	Run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
	return Run(t, work, "rev-parse", "HEAD")
}

// Seed brings the mirror up to date and gives the task its refs.
func (s *Site) Seed(t testing.TB, branches ...string) {
	t.Helper()
	if err := s.mirrors.Fetch(t.Context(), repository, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.mirrors.Seed(t.Context(), mirror.Seed{Repository: repository, Task: Task, Base: "main", Branches: branches}); err != nil {
		t.Fatal(err)
	}
	s.Give(Token)
}

// CloneURL is where the agent finds the repository.
func (s *Site) CloneURL() string { return s.url + "/git/" + string(Task) + ".git" }

// Mirrored runs git in the mirror.
func (s *Site) Mirrored(t testing.TB, args ...string) string {
	t.Helper()
	return Run(t, filepath.Join(s.root, "gitea", "owner%2Fname.git"), args...)
}

// Space names a ref of the task in the mirror.
func Space(ref string) string { return "refs/namespaces/" + string(Task) + "/" + ref }

// Put writes a file; an empty text removes it.
func Put(t testing.TB, dir, name, text string) {
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

// Read reads a file.
func Read(t testing.TB, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Try runs git as a person would.
func Try(t testing.TB, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
	output, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

// Run is Try that must not fail.
func Run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	output, err := Try(t, dir, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}
