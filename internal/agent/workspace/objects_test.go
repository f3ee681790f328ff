package workspace_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Git finds nothing wrong with a commit, whatever the names of files and folders: "a.b" comes
// before the folder "a", which comes before "a0".
func TestCommitsAreAsGitMakesThem(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a/b/c.txt": "one\n", "a/d.txt": "two\n", "kept/deep/e.txt": "three\n", "gone/f.txt": "four\n"})
	w := s.prepare(t, nil)
	dir := w.Workspace()
	for name, text := range map[string]string{"a.b": "1", "a0": "2", "a-b/x": "3", "a/b/new.txt": "4", "a/b.txt": "5", "ä/ö.txt": "6", "kept/g.txt": strings.Repeat("long\n", 40_000)} {
		put(t, dir, name, text)
	}
	put(t, dir, "gone/f.txt", "")
	if err := os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a/d.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	first := save(t, w)
	if said := s.Mirrored(t, "fsck", "--strict", "--no-dangling", first); strings.Contains(said, "error") || strings.Contains(said, "warning") {
		t.Errorf("git says of the commit: %s", said)
	}
	want := []string{"a-b/x", "a.b", "a/b.txt", "a/b/c.txt", "a/b/new.txt", "a/d.txt", "a0", "empty", "kept/deep/e.txt", "kept/g.txt", "link", "ä/ö.txt"}
	if got := strings.Split(s.Mirrored(t, "-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", first), "\n"); !slices.Equal(got, want) {
		t.Errorf("the commit has %q, want %q", got, want)
	}
	for _, name := range want {
		if name == "link" {
			continue
		}
		if got := s.Mirrored(t, "cat-file", "blob", first+":"+name); got != strings.TrimSpace(read(t, dir, name)) {
			t.Errorf("%s has %d bytes in the commit", name, len(got))
		}
	}
	if got := s.Mirrored(t, "cat-file", "blob", first+":link"); got != "a/d.txt" {
		t.Errorf("the link leads to %q", got)
	}
	if got := s.Mirrored(t, "show", "-s", "--format=%an <%ae> %cn", first); got != "Toryo <toryo@localhost> Toryo" {
		t.Errorf("the commit is by %s", got)
	}
}

// A folder in the place of a file, and a file in the place of a folder.
func TestFilesThatBecomeFolders(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"was-file": "one\n", "was-folder/a.txt": "two\n"})
	w := s.prepare(t, nil)
	dir := w.Workspace()
	if err := os.RemoveAll(filepath.Join(dir, "was-folder")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "was-file")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "was-file/now.txt", "three\n")
	put(t, dir, "was-folder", "four\n")
	commit := save(t, w)
	if got := s.Mirrored(t, "ls-tree", "-r", "--name-only", commit); got != "was-file/now.txt\nwas-folder" {
		t.Errorf("the commit has %q", got)
	}
	if said := s.Mirrored(t, "fsck", "--strict", "--no-dangling", commit); strings.Contains(said, "error") {
		t.Errorf("git says of the commit: %s", said)
	}
}
