package mirror_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	patch, err := s.FileDiff(t.Context(), item, "task1", got.Files[1], 1<<20)
	if err != nil || !strings.Contains(patch, "+one\n+two\n") || strings.Contains(patch, "odd") {
		t.Errorf("the diff of a file is %q, %v", patch, err)
	}
	if patch, err := s.FileDiff(t.Context(), item, "task1", got.Files[1], 20); err != nil || len(patch) != 20 {
		t.Errorf("a diff that is too long is %q, %v", patch, err)
	}

	run(t, work, "mv", "first.txt", "second.txt")
	run(t, work, "commit", "--quiet", "-m", "more")
	run(t, work, "push", "--quiet", "--force", "origin", "HEAD:"+task.WIPRef)
	item.Kind = task.Pull // what the pull request had is the commit below
	got, err = s.Changes(t.Context(), item, "task1")
	must(t, err)
	if diff := cmp.Diff([]mirror.ChangedFile{{Path: "second.txt", Before: "first.txt", Kind: "renamed"}}, got.Files); diff != "" || got.Base != head {
		t.Errorf("on a pull request it is compared with %s (-want +got):\n%s", got.Base, diff)
	}
	patch, err = s.FileDiff(t.Context(), item, "task1", got.Files[0], 1<<20)
	if err != nil || !strings.Contains(patch, "rename from first.txt") {
		t.Errorf("the diff of a file that was renamed is %q, %v", patch, err)
	}
}
