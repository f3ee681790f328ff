package mirror_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

// What a task has published is there for the next task at once, however old a
// mirror may be.
func TestPublishedIsThereForTheNextTask(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	_, tip := publish(t, s)
	must(t, s.Fetch(t.Context(), repository, time.Hour))
	must(t, s.Seed(t.Context(), mirror.Seed{Repository: repository, Task: "task2", Generation: 1, Base: "main", Branches: []string{"toryo/1"}}))
	if got := run(t, s.dir(), "for-each-ref", "--format=%(objectname)", "refs/namespaces/task2/refs/heads/toryo/1"); got != tip {
		t.Errorf("the next task sees the branch at %q, want %s", got, tip)
	}
}

// A task that names a commit gets this commit: if the mirror does not have it, the
// forge is asked, however old the mirror may be.
func TestSeedHasTheCommitsThatWereNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.origin.path(repository.Name), work)
	seed := mirror.Seed{Repository: repository, Task: "task2", Generation: 1, Base: "main"}
	see := func(ref string) string {
		return run(t, s.dir(), "for-each-ref", "--format=%(objectname)", "refs/namespaces/task2/"+ref)
	}
	for _, which := range []string{"a new branch", "a branch that moved"} {
		tip := commit(t, work, "c.txt")
		run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/feature")
		must(t, s.Fetch(t.Context(), repository, time.Hour)) // changes nothing: it was fetched a moment ago
		seed.Branches, seed.Commits = []string{"feature"}, map[string]string{"refs/heads/feature": tip}
		must(t, s.Seed(t.Context(), seed))
		if got := see("refs/heads/feature"); got != tip {
			t.Errorf("%s: the task sees it at %q, want %s", which, got, tip)
		}
	}
	fetches := s.Fetches()
	must(t, s.Seed(t.Context(), seed))
	if s.Fetches() != fetches {
		t.Error("what the mirror has was fetched again")
	}

	// The head of a pull request from a fork is no branch of the mirror.
	fork := commit(t, work, "d.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/pull/12/head")
	seed.Branches, seed.Refs, seed.Commits = nil, []string{"refs/pull/12/head"}, map[string]string{"refs/pull/12/head": fork}
	must(t, s.Seed(t.Context(), seed))
	if got := see("refs/pull/12/head"); got != fork {
		t.Errorf("the task sees the head of the fork at %q, want %s", got, fork)
	}

	// Somebody has pushed since the item was read: it has to be read again.
	next := commit(t, work, "e.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/feature", "HEAD:refs/pull/12/head")
	wantCode(t, s.Seed(t.Context(), seed), task.Conflict)
	seed.Branches, seed.Refs, seed.Commits = []string{"feature"}, nil, map[string]string{"refs/heads/feature": fork}
	wantCode(t, s.Seed(t.Context(), seed), task.Conflict)
	seed.Commits["refs/heads/feature"] = next
	must(t, s.Seed(t.Context(), seed))

	// The branch is gone, and its commit is not.
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/keep/it")
	run(t, work, "push", "--quiet", "origin", ":refs/heads/feature")
	seed.Task = "task3"
	must(t, s.Seed(t.Context(), seed))
	refs, err := s.Refs(t.Context(), repository, "task3")
	if err != nil || refs["refs/heads/feature"] != next || refs["refs/heads/main"] == "" {
		t.Errorf("the task has %v, %v; want feature at %s", refs, err, next)
	}

	// The commit is gone, with its branch or with the fork.
	gone := strings.Repeat("7", 40)
	seed.Commits["refs/heads/feature"] = gone
	wantNoCommit(t, s.Seed(t.Context(), seed), gone)
	seed.Branches, seed.Refs, seed.Commits = nil, []string{"refs/pull/13/head"}, map[string]string{"refs/pull/13/head": gone}
	wantNoCommit(t, s.Seed(t.Context(), seed), gone)
}

// wantNoCommit fails unless the error says that the forge does not have the commit.
func wantNoCommit(t testing.TB, err error, commit string) {
	t.Helper()
	if missing, is := errors.AsType[*task.NoCommitError](err); !is || missing.Commit != commit || task.CodeOf(err) != task.Unavailable {
		t.Errorf("%v, want that %s is missing", err, commit)
	}
}

// A forge that cannot be had has not said that it does not have a commit.
func TestAForgeThatFailsHasNotSaidWhatItLacks(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	gone := strings.Repeat("7", 40)
	s.origin.watch = func(r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			if err != nil || strings.Contains(string(body), gone) {
				panic(http.ErrAbortHandler)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
	}
	err := s.Seed(t.Context(), mirror.Seed{
		Repository: repository, Task: "task1", Generation: 1, Base: "main", Branches: []string{"gone"}, Commits: map[string]string{"refs/heads/gone": gone},
	})
	if _, is := errors.AsType[*task.NoCommitError](err); is || !forge.Temporary(err) {
		t.Errorf("a connection that breaks: %v", err)
	}
}

// What a run has pushed stays for the run that goes on, unless it could not be published: on
// top of what the forge has, and in place of what the task itself has published. A run that
// begins anew has what the forge has.
func TestSeedKeepsWhatCanBePublished(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.begin(t, "task1")
	pushed, published := publish(t, s)
	seed := mirror.Seed{Repository: repository, Task: "task1", Generation: 1, Base: "main", Branches: []string{"toryo/1"}}
	at := func() string {
		t.Helper()
		must(t, s.Seed(t.Context(), seed))
		refs, err := s.Refs(t.Context(), repository, "task1")
		must(t, err)
		return refs["refs/heads/toryo/1"]
	}
	if got := at(); got != published {
		t.Errorf("what was published is at %s, want %s", got, published)
	}
	run(t, s.dir(), "update-ref", "refs/namespaces/task1/refs/heads/toryo/1", pushed) // as a run does that commits again
	if got := at(); got != pushed {
		t.Errorf("what takes the place of what was published is at %s, want %s", got, pushed)
	}
	seed.Commits, seed.Anew = map[string]string{"refs/heads/toryo/1": published}, true
	if got := at(); got != published {
		t.Errorf("a run that begins anew has %s, want %s", got, published)
	}

	work := t.TempDir()
	run(t, "", "clone", "--quiet", s.origin.path(repository.Name), work)
	other := commit(t, work, "other.txt")
	run(t, work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/toryo/1")
	seed.Commits, seed.Anew = nil, false
	if got := at(); got != other {
		t.Errorf("after somebody has replaced it, it is at %s, want %s", got, other)
	}
	back := run(t, work, "rev-parse", "HEAD^")
	run(t, work, "push", "--quiet", "--force", "origin", "HEAD^:refs/heads/toryo/1")
	if got := at(); got != back {
		t.Errorf("after somebody has taken a commit back, it is at %s, want %s", got, back)
	}
}
