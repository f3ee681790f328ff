package mirror_test

import (
	"context"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

const password = "hunter2-0123456789"

// origin is a forge's git server: real repositories behind git http-backend and
// basic authentication.
type origin struct {
	*httptest.Server
	root    string
	fetches atomic.Int64 // upload-pack requests that carried a negotiation
	watch   func(r *http.Request)
}

func newOrigin(t testing.TB) *origin {
	t.Helper()
	o := &origin{root: t.TempDir()}
	backend := &cgi.Handler{
		Path: gitPath(t), Args: []string{"http-backend"}, Dir: o.root,
		Env: []string{"GIT_PROJECT_ROOT=" + o.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=bot", "HOME=/nonexistent"},
	}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, given, _ := r.BasicAuth()
		if user != "bot" || given != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/moved/") {
			http.Redirect(w, r, "http://elsewhere.invalid"+r.URL.Path, http.StatusMovedPermanently)
			return
		}
		if o.watch != nil {
			o.watch(r)
		}
		if r.URL.Query().Get("service") == "git-upload-pack" {
			o.fetches.Add(1)
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(o.Close)
	return o
}

func gitPath(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal("the git program is missing")
	}
	return path
}

func (o *origin) remote(_ context.Context, r task.Repository) (forge.Remote, error) {
	return forge.Remote{URL: o.URL + "/" + r.Name + ".git", Username: "bot", Password: password}, nil
}

// path is where the repository is on disk.
func (o *origin) path(name string) string { return filepath.Join(o.root, name+".git") }

// add makes a repository with some commits on main.
func (o *origin) add(t testing.TB, name string, commits int) {
	t.Helper()
	dir := o.path(name)
	run(t, "", "init", "--quiet", "--bare", "--initial-branch=main", dir)
	run(t, dir, "config", "http.receivepack", "true")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", dir, work)
	run(t, work, "checkout", "--quiet", "-B", "main")
	for range commits {
		commit(t, work, "a.txt")
	}
	run(t, work, "push", "--quiet", "origin", "main")
}

var commits atomic.Int64

// commit changes a file and returns the hash of the commit.
func commit(t testing.TB, work, file string) string {
	t.Helper()
	text := strings.Repeat("line ", int(commits.Add(1))) + "\n"
	if err := os.WriteFile(filepath.Join(work, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, work, "add", "-A")
	run(t, work, "commit", "--quiet", "-m", "change "+file)
	return run(t, work, "rev-parse", "HEAD")
}

// try runs git as an agent or a person would.
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

// leases tells tokens apart as the store would.
type leases struct {
	mu      sync.Mutex
	holders map[string]mirror.Holder
	asked   int // since watch
	watched func(asked int, holders map[string]mirror.Holder)
}

func (l *leases) authenticate(_ context.Context, _ task.ID, token string) (mirror.Holder, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.watched != nil {
		l.watched(l.asked, l.holders)
	}
	holder, found := l.holders[token]
	if !found {
		return mirror.Holder{}, task.Errorf(task.LeaseLost, "the run is over")
	}
	return holder, nil
}

func (l *leases) give(token string, holder mirror.Holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holders[token] = holder
}

// watch lets the test change who holds what just before the n-th question.
func (l *leases) watch(watched func(asked int, holders map[string]mirror.Holder)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked, l.watched = 0, watched
}

func (l *leases) questions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// site is a forge, a mirror of it, and the mirror's server.
type site struct {
	*mirror.Mirrors
	origin *origin
	leases *leases
	root   string
	url    string
}

var repository = task.Repository{Forge: task.Gitea, Name: "owner/name"}

func newSite(t testing.TB, change func(*mirror.Options)) *site {
	t.Helper()
	s := &site{origin: newOrigin(t), leases: &leases{holders: map[string]mirror.Holder{}}, root: t.TempDir()}
	s.origin.add(t, repository.Name, 3)
	s.open(t, change)
	return s
}

func (s *site) open(t testing.TB, change func(*mirror.Options)) {
	t.Helper()
	options := mirror.Options{Root: s.root, Remote: s.origin.remote}
	if change != nil {
		change(&options)
	}
	var err error
	if s.Mirrors, err = mirror.Open(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	server := httptest.NewServer(http.StripPrefix("/git", s.Handler(s.leases.authenticate)))
	t.Cleanup(server.Close)
	s.url = server.URL
}

// begin fetches, seeds a task and returns the address that its agent clones.
func (s *site) begin(t testing.TB, id task.ID) string {
	t.Helper()
	if err := s.Fetch(t.Context(), repository, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Seed(t.Context(), mirror.Seed{Repository: repository, Task: id, Base: "main"}); err != nil {
		t.Fatal(err)
	}
	s.leases.give("token-"+string(id), mirror.Holder{Task: id, Generation: 1, Repository: repository})
	return s.address(id, "token-"+string(id))
}

// branch begins the task task1 and returns a clone of its repository with the task's branch
// checked out.
func (s *site) branch(t testing.TB) string {
	t.Helper()
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.begin(t, "task1"), work)
	run(t, work, "checkout", "--quiet", "-b", "toryo/1")
	return work
}

func (s *site) address(id task.ID, token string) string {
	return strings.Replace(s.url, "http://", "http://agent:"+token+"@", 1) + "/git/" + string(id) + ".git"
}

func (s *site) dir() string { return filepath.Join(s.root, "gitea", "owner%2Fname.git") }
