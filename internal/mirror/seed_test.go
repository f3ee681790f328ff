package mirror_test

import (
	"testing"
	"time"

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
}
