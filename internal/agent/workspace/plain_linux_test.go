package workspace_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent/workspace"
)

// Programs inside may write to their repository, and cannot fetch what it lacks.
func TestTheRepositoryInsideIsCompleteAndACopy(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "a\n", "of-base.txt": "b\n"})
	s.Commit(t, "toryo/1", "ours", map[string]string{"ours.txt": "ours\n"})
	s.Commit(t, "main", "theirs", map[string]string{"of-base.txt": "theirs\n"})
	s.Seed(t, "toryo/1")
	w := s.prepare(t, nil)
	checkPlain(t, w.Workspace())
	if text := run(t, w.Workspace(), "show", "origin/main:of-base.txt"); text != "theirs" {
		t.Errorf("the base has %q", text)
	}
	if text := run(t, w.Workspace(), "show", "HEAD:ours.txt"); text != "ours" {
		t.Errorf("the branch has %q", text)
	}

	// What is verified finds the files of its commit, and nothing of an earlier save.
	put(t, w.Workspace(), "secret-notes.txt", "how the tests are to be deceived\n")
	save(t, w)
	notes := run(t, w.Workspace(), "hash-object", "secret-notes.txt")
	put(t, w.Workspace(), "secret-notes.txt", "nothing\n")
	saved := save(t, w)
	exported, err := w.Export(t.Context(), saved)
	if err != nil {
		t.Fatal(err)
	}
	checkPlain(t, exported.Dir())
	if text := run(t, exported.Dir(), "show", "HEAD:secret-notes.txt"); text != "nothing" {
		t.Errorf("the commit that is verified has %q", text)
	}
	if _, err := try(t, exported.Dir(), "cat-file", "-e", notes); err == nil {
		t.Error("what is verified finds what an earlier save had")
	}
}

// checkPlain looks at a repository as programs in a sandbox find it.
func checkPlain(t *testing.T, dir string) {
	t.Helper()
	run(t, dir, "fsck", "--strict", "--connectivity-only")
	if missing := run(t, dir, "rev-list", "--objects", "--all", "--missing=print"); strings.Contains(missing, "?") {
		t.Errorf("objects are missing: %s", missing)
	}
	if changed := run(t, dir, "status", "--porcelain"); changed != "" {
		t.Errorf("files differ from the repository: %s", changed)
	}
	put(t, dir, "a.txt", "z\n") // as long as it was
	if changed := run(t, dir, "status", "--porcelain"); changed != "M a.txt" {
		t.Errorf("after a change the status is %q", changed)
	}
	put(t, dir, "a.txt", "a\n")
	err := filepath.WalkDir(filepath.Join(dir, ".git"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if about, is := info.Sys().(*syscall.Stat_t); !is || about.Nlink != 1 {
			t.Errorf("%s is shared with other folders", name)
		}
		if entry.Name() == "alternates" {
			t.Error("objects of another folder are used")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Where a branch left its base long ago is found without the files of that time.
func TestABranchOfLongAgoIsNotFetchedWithItsFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "a\n"})
	s.Commit(t, "toryo/1", "ours", map[string]string{"ours.txt": "ours\n"})
	for i := range 12 {
		s.Commit(t, "main", "big", map[string]string{"big.bin": randomText(int64(i), 200_000)})
	}
	s.Commit(t, "main", "gone", map[string]string{"big.bin": "", "b.txt": "b\n"})
	s.Seed(t, "toryo/1")
	var dir string
	w := s.prepare(t, func(o *workspace.Options) { dir = o.Dir })
	diff, err := w.Diff(t.Context(), "")
	if err != nil || strings.Join(diff.Files, " ") != "ours.txt" {
		t.Errorf("the branch differs from where it left the base in %q, %v", diff.Files, err)
	}
	isSmall(t, dir)
}
