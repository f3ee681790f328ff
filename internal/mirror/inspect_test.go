package mirror_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

func found(t *testing.T, s *site, p mirror.Publication) []string {
	t.Helper()
	by := inspect.New(inspect.Options{Known: redact.New("correct-horse-battery"), Recognised: redact.New()})
	all, err := s.Inspect(t.Context(), p, by)
	must(t, err)
	var told []string
	for _, one := range all {
		told = append(told, string(one.Kind)+" "+one.Place())
	}
	return told
}

// What is new is told by what the forge has. A run that moves the refs of its own
// namespace hides nothing.
func TestInspectComparesWithTheForge(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	work := s.branch(t)
	tip := commit(t, work, ".drone.yml")
	run(t, work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/toryo/1", "HEAD:refs/heads/main", "HEAD:refs/tags/v1", "HEAD:refs/toryo/wip")
	want := []string{"protected_file .drone.yml"}
	if diff := cmp.Diff(want, found(t, s, publication("toryo/1", tip))); diff != "" {
		t.Error(diff)
	}
	_, err := s.Inspect(t.Context(), publication("toryo/1", run(t, work, "rev-parse", "HEAD^")), nil)
	wantCode(t, err, task.Conflict)

	// For a task on the issue, all that is on its branch is its work, however long it is
	// there. For one on a pull request, only what comes on top is.
	must(t, s.publishing(t, publication("toryo/1", tip)))
	must(t, s.Fetch(t.Context(), repository, 0))
	run(t, work, "fetch", "--quiet", "origin", "toryo/1")
	run(t, work, "reset", "--quiet", "--hard", "FETCH_HEAD") // what was published is what a run begins with
	next := commit(t, work, ".envrc")
	run(t, work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/toryo/1")
	if diff := cmp.Diff([]string{"protected_file .drone.yml", "protected_file .envrc"}, found(t, s, publication("toryo/1", next))); diff != "" {
		t.Error(diff)
	}
	onPull := publication("toryo/1", next)
	onPull.Item.Kind = task.Pull
	if diff := cmp.Diff([]string{"protected_file .envrc"}, found(t, s, onPull)); diff != "" {
		t.Error(diff)
	}
}

// What a person has pushed to the branch of an issue is not the work of the task.
func TestInspectLeavesAPersonsPushAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	work := s.branch(t)
	commit(t, work, "a.txt")
	run(t, work, "push", "--quiet", "origin", "toryo/1")
	_, push := s.person(t)
	push("toryo/1", ".drone.yml", "theirs\n")
	must(t, s.Fetch(t.Context(), repository, 0))
	run(t, work, "fetch", "--quiet", "origin", "toryo/1")
	run(t, work, "merge", "--quiet", "--no-edit", "FETCH_HEAD")
	tip := commit(t, work, ".envrc")
	run(t, work, "push", "--quiet", "origin", "toryo/1")
	if diff := cmp.Diff([]string{"protected_file .envrc"}, found(t, s, publication("toryo/1", tip))); diff != "" {
		t.Error(diff)
	}
}

// What may not be published is not what a later run begins with.
func TestRetract(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	work := s.branch(t)
	own := func() string {
		return run(t, s.dir(), "for-each-ref", "--format=%(objectname)", "refs/namespaces/task1/refs/heads/toryo/1")
	}
	first := commit(t, work, "b.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1")
	must(t, s.Retract(t.Context(), publication("toryo/1", run(t, work, "rev-parse", "HEAD^"))))
	if got := own(); got != first {
		t.Errorf("another commit was retracted: the branch is at %q", got)
	}
	must(t, s.Retract(t.Context(), publication("toryo/1", first)))
	if got := own(); got != "" {
		t.Errorf("the branch is at %q, want none", got)
	}
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1")
	must(t, s.publishing(t, publication("toryo/1", first)))
	must(t, s.Fetch(t.Context(), repository, 0))
	run(t, work, "fetch", "--quiet", "origin", "toryo/1")
	run(t, work, "reset", "--quiet", "--hard", "FETCH_HEAD")
	published := run(t, work, "rev-parse", "HEAD")
	second := commit(t, work, "b.txt")
	run(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/toryo/1")
	must(t, s.Retract(t.Context(), publication("toryo/1", second)))
	if got := own(); got != published {
		t.Errorf("the branch is at %q, want what the forge has: %s", got, published)
	}
}
