package mirror_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

// person is a clone of the forge's repository, as a person has it.
func (s *site) person(t testing.TB) (work string, push func(branch, file, text string) string) {
	t.Helper()
	work = t.TempDir()
	run(t, "", "clone", "--quiet", s.origin.path(repository.Name), work)
	return work, func(branch, file, text string) string {
		t.Helper()
		run(t, work, "checkout", "--quiet", "-B", branch)
		must(t, os.WriteFile(filepath.Join(work, file), []byte(text), 0o600))
		run(t, work, "add", "--all")
		run(t, work, "commit", "--quiet", "--message", branch)
		run(t, work, "push", "--quiet", "--force", "origin", branch)
		return run(t, work, "rev-parse", "HEAD")
	}
}

// Whether a branch merges is decided by its commit and that of the base, once for each pair.
func TestMerges(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *mirror.Options) { o.BaseAge = func(task.Repository) time.Duration { return 0 } })
	work, push := s.person(t)
	merges := func(head string) mirror.Merge {
		t.Helper()
		merge, err := s.Merges(t.Context(), repository, "main", "feature", head)
		must(t, err)
		return merge
	}
	head := push("feature", "same.txt", "ours\n")
	if is := merges(head); is.Conflicts {
		t.Errorf("in front of the base it is %+v", is)
	}
	run(t, work, "checkout", "--quiet", "main")
	push("main", "other.txt", "theirs\n")
	if is := merges(head); is.Conflicts {
		t.Errorf("behind the base it is %+v", is)
	}
	base := push("main", "same.txt", "theirs\n")
	s.Changed(repository) // else it is as it was seconds ago
	want := mirror.Merge{Base: base, Head: head, Conflicts: true}
	if is := merges(head); is != want {
		t.Errorf("with a conflict it is %+v, want %+v", is, want)
	}
	// What is known is not tried again: the tree that git would write is not written.
	written, _ := try(t, s.dir(), "merge-tree", "--write-tree", "--no-messages", "--name-only", base, head)
	tree, _, _ := strings.Cut(written, "\n")
	tree = filepath.Join(s.dir(), "objects", tree[:2], tree[2:])
	must(t, os.Remove(tree))
	if is := merges(head); is != want {
		t.Errorf("the second time it is %+v", is)
	}
	if _, err := os.Stat(tree); err == nil {
		t.Error("the merge was tried a second time")
	}
	_, err := s.Merges(t.Context(), repository, "gone", "feature", head)
	wantCode(t, err, task.NotFound)
	_, err = s.Merges(t.Context(), repository, "main", "gone", head)
	wantCode(t, err, task.NotFound)
	_, err = s.Merges(t.Context(), repository, "main", "feature", base)
	wantCode(t, err, task.Conflict)
}

// Nobody can resolve what has nothing in common.
func TestUnrelatedHistoriesAreNoConflict(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	work, push := s.person(t)
	run(t, work, "checkout", "--quiet", "--orphan", "feature")
	head := push("feature", "a.txt", "another beginning\n")
	if is, err := s.Merges(t.Context(), repository, "main", "feature", head); err != nil || is.Conflicts {
		t.Errorf("it is %+v, %v", is, err)
	}
}

// A head that we have published is known as ours.
func TestAMergeTellsWhoMadeTheHead(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *mirror.Options) { o.BaseAge = func(task.Repository) time.Duration { return 0 } })
	work := s.branch(t)
	must(t, os.WriteFile(filepath.Join(work, "same.txt"), []byte("ours\n"), 0o600))
	run(t, work, "add", "--all")
	run(t, work, "commit", "--quiet", "--message", "ours")
	run(t, work, "push", "--quiet", "origin", "toryo/1")
	made, err := s.Publish(t.Context(), publication("toryo/1", run(t, work, "rev-parse", "HEAD")))
	must(t, err)
	_, push := s.person(t)
	push("main", "same.txt", "theirs\n")
	if is, err := s.Merges(t.Context(), repository, "main", "toryo/1", made); err != nil || !is.Conflicts || !is.Own {
		t.Errorf("it is %+v, %v", is, err)
	}
}

// The task sees what others have pushed to its branch, and can publish on top of it.
func TestPublishOnTopOfAPersonsCommits(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	agent := s.branch(t)
	commit(t, agent, "a.txt")
	run(t, agent, "push", "--quiet", "origin", "toryo/1")
	first := run(t, agent, "rev-parse", "HEAD")
	_, push := s.person(t)
	theirs := push("toryo/1", "theirs.txt", "theirs\n")
	for range 2 { // asking again is answered in the same way
		err := s.publishing(t, publication("toryo/1", first))
		moved, is := errors.AsType[*task.MovedError](err)
		if !is || moved.Commit != theirs || task.CodeOf(err) != task.Conflict {
			t.Fatalf("it is %v", err)
		}
	}
	run(t, agent, "fetch", "--quiet", "origin", "toryo/1")
	run(t, agent, "merge", "--quiet", "--no-edit", "FETCH_HEAD")
	run(t, agent, "push", "--quiet", "origin", "toryo/1")
	made, err := s.Publish(t.Context(), publication("toryo/1", run(t, agent, "rev-parse", "HEAD")))
	must(t, err)
	if got := run(t, s.origin.path(repository.Name), "rev-parse", "toryo/1"); got != made {
		t.Errorf("the forge has %s, want %s", got, made)
	}
	run(t, s.origin.path(repository.Name), "merge-base", "--is-ancestor", theirs, made)
	if got := run(t, s.origin.path(repository.Name), "log", "-1", "--format=%s", theirs); got != "toryo/1" {
		t.Errorf("the person's commit says %q", got)
	}
}
