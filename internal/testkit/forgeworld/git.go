package forgeworld

import (
	"bytes"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
)

// git runs git in the repository's bare folder.
func (r *Repo) git(t testing.TB, input string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = r.folder
	command.Stdin = strings.NewReader(input)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_INDEX_FILE="+filepath.Join(r.folder, "index-of-the-test"),
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	var out, problem bytes.Buffer
	command.Stdout, command.Stderr = &out, &problem
	err := command.Run()
	if err != nil {
		t.Logf("git %s: %v %s", strings.Join(args, " "), err, problem.String())
	}
	return out.String(), err
}

func (r *Repo) mustGit(t testing.TB, input string, args ...string) string {
	t.Helper()
	out, err := r.git(t, input, args...)
	if err != nil {
		t.Errorf("git %s failed", strings.Join(args, " "))
	}
	return out
}

// NewRepo makes a private repository without a commit.
func (w *World) NewRepo(t testing.TB, name string) *Repo {
	t.Helper()
	repo := &Repo{ID: w.NextID(), Name: name, world: w, Access: map[*User]accessLevel{}}
	repo.folder = filepath.Join(w.folder, strings.ReplaceAll(name, "/", "+")+".git")
	if err := os.MkdirAll(repo.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	repo.mustGit(t, "", "init", "-q", "--bare", "--initial-branch=main", ".")
	repo.mustGit(t, "", "config", "http.receivepack", "true")
	w.Repos = append(w.Repos, repo)
	return repo
}

// Branch returns the commit of a branch, or "".
func (r *Repo) Branch(t testing.TB, name string) string {
	t.Helper()
	out := r.mustGit(t, "", "for-each-ref", "--format=%(objectname)", "refs/heads/"+name)
	return strings.TrimSpace(out)
}

// HasCommit reports whether there is such a commit.
func (r *Repo) HasCommit(t testing.TB, commit string) bool {
	t.Helper()
	out := r.mustGit(t, commit+"\n", "cat-file", "--batch-check=%(objecttype)")
	return strings.TrimSpace(out) == "commit"
}

// SetBranch makes a branch or moves it.
func (r *Repo) SetBranch(t testing.TB, name, commit string) {
	t.Helper()
	r.mustGit(t, "", "update-ref", "refs/heads/"+name, commit)
}

// Commit commits files to a branch, which is made from main if it is missing.
func (r *Repo) Commit(t testing.TB, branch string, files map[string]string) string {
	t.Helper()
	parent := r.Branch(t, branch)
	if parent == "" {
		parent = r.Branch(t, "main")
	}
	arguments := []string{"commit-tree", "-m", "Change files"}
	if parent == "" {
		r.mustGit(t, "", "read-tree", "--empty")
	} else {
		r.mustGit(t, "", "read-tree", parent)
		arguments = append(arguments, "-p", parent)
	}
	for path, content := range files {
		blob := strings.TrimSpace(r.mustGit(t, content, "hash-object", "-w", "--stdin"))
		r.mustGit(t, "", "update-index", "--add", "--cacheinfo", "100644,"+blob+","+path)
	}
	tree := strings.TrimSpace(r.mustGit(t, "", "write-tree"))
	commit := strings.TrimSpace(r.mustGit(t, "", append(arguments, tree)...))
	r.SetBranch(t, branch, commit)
	return commit
}

// HeadCommit is the head of a pull request.
func (i *Item) HeadCommit(t testing.TB) string {
	t.Helper()
	if i.headAtEnd != "" {
		return i.headAtEnd
	}
	return i.Repo.Branch(t, i.Head)
}

// BaseCommit is where the head of a pull request left its base.
func (i *Item) BaseCommit(t testing.TB) string {
	t.Helper()
	if i.baseAtEnd != "" {
		return i.baseAtEnd
	}
	return strings.TrimSpace(i.Repo.mustGit(t, "", "merge-base", "refs/heads/"+i.Base, i.HeadCommit(t)))
}

// Patch is what a pull request changes.
func (i *Item) Patch(t testing.TB) string {
	t.Helper()
	return i.Repo.mustGit(t, "", "diff", i.BaseCommit(t), i.HeadCommit(t))
}

// CanMerge reports whether git can merge a pull request by itself.
func (i *Item) CanMerge(t testing.TB) bool {
	t.Helper()
	_, err := i.Repo.git(t, "", "merge-tree", "--write-tree", i.Repo.Branch(t, i.Base), i.HeadCommit(t))
	return err == nil
}

// Merge merges a pull request that can be, with a commit of its own.
func (i *Item) Merge(t testing.TB) {
	t.Helper()
	base, head := i.Repo.Branch(t, i.Base), i.HeadCommit(t)
	tree := strings.TrimSpace(i.Repo.mustGit(t, "", "merge-tree", "--write-tree", base, head))
	commit := strings.TrimSpace(i.Repo.mustGit(t, "", "commit-tree", "-m", "Merge", "-p", base, "-p", head, tree))
	i.End(t, forge.Merged)
	i.Repo.SetBranch(t, i.Base, commit)
}

// ServeGit serves a repository at "/owner/name.git/..." to whoever has a token as
// password. It takes the lock itself.
func (w *World) ServeGit(writer http.ResponseWriter, request *http.Request) {
	name, rest, found := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), ".git/")
	_, password, _ := request.BasicAuth()
	w.Lock()
	user := w.Tokens[password]
	var repo *Repo
	if user != nil && found {
		repo = w.Seen(name, user)
	}
	w.Unlock()
	switch {
	case user == nil:
		writer.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(writer, "who are you?", http.StatusUnauthorized)
	case repo == nil:
		http.NotFound(writer, request)
	default:
		program, err := exec.LookPath("git")
		if err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
		backend := &cgi.Handler{
			Path: program, Args: []string{"http-backend"}, Dir: repo.folder,
			Env: []string{"GIT_PROJECT_ROOT=" + repo.folder, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=" + user.Login, "PATH_INFO=/" + rest},
		}
		backend.ServeHTTP(writer, request)
	}
}
