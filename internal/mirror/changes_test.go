package mirror_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

// What a task has pushed so far is compared with where it left the base branch, also when that has
// gone on meanwhile, and file by file.
func TestChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	address := s.begin(t, "task1")
	item := task.Key{Forge: repository.Forge, Repository: repository.Name, Kind: task.Issue, Number: 1}
	if _, err := s.Changes(t.Context(), item, "task1"); task.CodeOf(err) != task.NotFound {
		t.Errorf("before anything was pushed: %v", err)
	}
	work := t.TempDir()
	run(t, "", "clone", "--quiet", address, work)
	base := run(t, work, "rev-parse", "HEAD")
	put := func(name, text string) { must(t, os.WriteFile(filepath.Join(work, name), []byte(text), 0o600)) }
	odd := "odd \"name\"\t\n→.txt"
	put("first.txt", "one\ntwo\n")
	put(odd, "x\n")
	put("binary", "a\x00b")
	run(t, work, "add", "-A")
	run(t, work, "commit", "--quiet", "-m", "work in progress")
	head := run(t, work, "rev-parse", "HEAD")
	run(t, work, "push", "--quiet", "--force", "origin", "HEAD:"+task.WIPRef)

	origin := t.TempDir()
	run(t, "", "clone", "--quiet", s.origin.path(repository.Name), origin)
	commit(t, origin, "later.txt")
	run(t, origin, "push", "--quiet", "origin", "HEAD:main")
	s.Changed(repository)
	must(t, s.Fetch(t.Context(), repository, 0))

	got, err := s.Changes(t.Context(), item, "task1")
	must(t, err)
	want := mirror.Changes{Base: base, Head: head, Files: []mirror.ChangedFile{
		{Path: "binary", Kind: "added", Binary: true}, {Path: "first.txt", Kind: "added", Added: 2}, {Path: odd, Kind: "added", Added: 1},
	}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(mirror.ChangedFile{}, "Version")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	patch, err := s.FileDiff(t.Context(), repository, got, got.Files[1], 1<<20)
	if err != nil || !strings.Contains(patch, "+one\n+two\n") || strings.Contains(patch, "odd") {
		t.Errorf("the diff of a file is %q, %v", patch, err)
	}
	if patch, err := s.FileDiff(t.Context(), repository, got, got.Files[1], 20); err != nil || len(patch) != 20 {
		t.Errorf("a diff that is too long is %q, %v", patch, err)
	}

	version := got.Files[1].Version
	put("first.txt", "one\n2\n") // as many lines as before
	run(t, work, "commit", "--quiet", "-a", "--amend", "-m", "work in progress")
	run(t, work, "push", "--quiet", "--force", "origin", "HEAD:"+task.WIPRef)
	got, err = s.Changes(t.Context(), item, "task1")
	must(t, err)
	if got.Files[1].Added != 2 || got.Files[1].Version == version || version == "" {
		t.Errorf("a file of which the content has changed is %+v, and had the version %q", got.Files[1], version)
	}
	head = got.Head

	run(t, work, "mv", "first.txt", "second.txt")
	run(t, work, "commit", "--quiet", "-m", "more")
	run(t, work, "push", "--quiet", "--force", "origin", "HEAD:"+task.WIPRef)
	item.Kind = task.Pull // what the pull request had is the commit below
	got, err = s.Changes(t.Context(), item, "task1")
	must(t, err)
	if diff := cmp.Diff([]mirror.ChangedFile{{Path: "second.txt", Before: "first.txt", Kind: "renamed"}}, got.Files, cmpopts.IgnoreFields(mirror.ChangedFile{}, "Version")); diff != "" || got.Base != head {
		t.Errorf("on a pull request it is compared with %s (-want +got):\n%s", got.Base, diff)
	}
	patch, err = s.FileDiff(t.Context(), repository, got, got.Files[0], 1<<20)
	if err != nil || !strings.Contains(patch, "rename from first.txt") {
		t.Errorf("the diff of a file that was renamed is %q, %v", patch, err)
	}
}

// The changes of a task on a pull request are its own: not what others push to the branch, whatever
// date their commits have, and not what a merge of the base brings.
func TestChangesOnAPullRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	people := t.TempDir()
	run(t, "", "clone", "--quiet", s.origin.path(repository.Name), people)
	run(t, people, "checkout", "--quiet", "-b", "feature")
	commit(t, people, "pull.txt")
	run(t, people, "push", "--quiet", "origin", "HEAD:refs/heads/feature")
	s.begin(t, "task1")
	seed := mirror.Seed{Repository: repository, Task: "task1", Generation: 1, Base: "main", Branches: []string{"feature"}}
	must(t, s.Seed(t.Context(), seed))
	item := task.Key{Forge: repository.Forge, Repository: repository.Name, Kind: task.Pull, Number: 1}
	if found, err := s.Changes(t.Context(), item, "task1"); task.CodeOf(err) != task.NotFound {
		t.Errorf("before anything was pushed: %+v, %v", found, err)
	}
	names := func() (all []string) {
		t.Helper()
		found, err := s.Changes(t.Context(), item, "task1")
		must(t, err)
		for _, file := range found.Files {
			all = append(all, file.Path)
		}
		return all
	}
	work := t.TempDir()
	run(t, "", "clone", "--quiet", "--branch", "feature", s.address("task1", "token-task1"), work)
	commit(t, work, "own.txt")
	run(t, work, "push", "--quiet", "--force", "origin", "HEAD:"+task.WIPRef)

	commit(t, people, "theirs.txt")
	future := exec.CommandContext(t.Context(), "git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--amend", "--no-edit")
	future.Dir, future.Env = people, append(os.Environ(), "GIT_COMMITTER_DATE=2037-01-01T00:00:00Z")
	must(t, future.Run())
	run(t, people, "push", "--quiet", "origin", "HEAD:refs/heads/feature")
	s.Changed(repository)
	must(t, s.Fetch(t.Context(), repository, 0))
	must(t, s.Seed(t.Context(), seed))
	if diff := cmp.Diff([]string{"own.txt"}, names()); diff != "" {
		t.Errorf("after a push of somebody else (-want +got):\n%s", diff)
	}

	run(t, people, "checkout", "--quiet", "main")
	commit(t, people, "news.txt")
	news := run(t, people, "rev-parse", "HEAD")
	run(t, people, "push", "--quiet", "origin", "HEAD:refs/heads/main")
	run(t, work, "fetch", "--quiet", s.origin.path(repository.Name), "main")
	below := run(t, work, "rev-parse", "HEAD^")
	run(t, work, "reset", "--quiet", "--hard", below)
	run(t, work, "merge", "--quiet", "--no-ff", "--no-commit", news)
	must(t, os.WriteFile(filepath.Join(work, "own.txt"), []byte("own"), 0o600))
	run(t, work, "add", "-A")
	run(t, work, "commit", "--quiet", "-m", "work in progress")
	run(t, work, "push", "--quiet", "--force", "origin", "HEAD:"+task.WIPRef)
	if diff := cmp.Diff([]string{"own.txt"}, names()); diff != "" {
		t.Errorf("after a merge of the base (-want +got):\n%s", diff)
	}
}
