package workspace_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/agent/workspace"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// names are the files below a folder, without git's own.
func names(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, path)
			found = append(found, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The files to verify are those of the commit, whatever the workspace has, and what is
// done to them is undone by writing in their folder only.
func TestExport(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "one\n", "dir/b.txt": "two\n", "run.sh": "echo\n", ".gitignore": "*.log\n", ".gitattributes": "a.txt export-ignore\n* text=auto eol=crlf\n"})
	w := s.prepare(t, nil)
	put(t, w.Workspace(), "dir/b.txt", "changed\n")
	put(t, w.Workspace(), "new.txt", "new\n")
	saved := save(t, w)
	put(t, w.Workspace(), "a.txt", "later\n")
	put(t, w.Workspace(), "left.log", "ignored\n")
	files, err := w.Export(t.Context(), saved)
	if err != nil {
		t.Fatal(err)
	}
	dir := files.Dir()
	want := []string{".gitattributes", ".gitignore", "a.txt", "dir/b.txt", "new.txt", "run.sh"}
	if diff := cmp.Diff(want, names(t, dir)); diff != "" {
		t.Error(diff)
	}
	if got := read(t, dir, "a.txt") + read(t, dir, "dir/b.txt"); got != "one\nchanged\n" {
		t.Errorf("the files have %q", got)
	}
	if got := run(t, dir, "status", "--porcelain"); got != "" {
		t.Errorf("git says %q", got)
	}
	outside := t.TempDir()
	put(t, outside, "b.txt", "the host's\n")
	for _, err := range []error{
		os.RemoveAll(filepath.Join(dir, "dir")), os.Symlink(outside, filepath.Join(dir, "dir")),
		os.Remove(filepath.Join(dir, "a.txt")), os.Symlink(filepath.Join(outside, "b.txt"), filepath.Join(dir, "a.txt")),
		os.Chmod(filepath.Join(dir, "run.sh"), 0o755), os.Mkdir(filepath.Join(dir, "made"), 0o755),
		os.Remove(filepath.Join(dir, "new.txt")), os.Mkdir(filepath.Join(dir, "new.txt"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, "made/x", "package\n")
	put(t, dir, "new.txt/inner", "x\n")
	restored, err := files.Restore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a.txt", "dir/b.txt", "new.txt", "run.sh"}; !slices.Equal(restored, want) {
		t.Errorf("restored were %q, want %q", restored, want)
	}
	if diff := cmp.Diff([]string{".gitattributes", ".gitignore", "a.txt", "dir/b.txt", "made/x", "new.txt", "run.sh"}, names(t, dir)); diff != "" {
		t.Error(diff)
	}
	if got := read(t, dir, "a.txt") + read(t, dir, "dir/b.txt") + read(t, outside, "b.txt"); got != "one\nchanged\nthe host's\n" {
		t.Errorf("the files have %q", got)
	}
	if again, err := files.Restore(t.Context()); err != nil || len(again) > 0 {
		t.Errorf("then %q differ, %v", again, err)
	}
	if err := files.Remove(); err != nil {
		t.Error(err)
	}
	next, err := w.Export(t.Context(), saved)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is still there")
	}
	if diff := cmp.Diff(want, names(t, next.Dir())); diff != "" {
		t.Error(diff)
	}
	if err := errors.Join(next.Remove(), w.Remove()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(w.Workspace())); err == nil {
		t.Error("something is left of the workspace")
	}
}

// What is published is what was saved, whatever happens in the workspace meanwhile.
func TestCommitOfASave(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "one\n"})
	w := s.prepare(t, nil)
	put(t, w.Workspace(), "a.txt", "verified\n")
	saved := save(t, w)
	put(t, w.Workspace(), "a.txt", "other\n")
	put(t, w.Workspace(), "b.txt", "more\n")
	diff, err := w.Diff(t.Context(), saved)
	if err != nil || !slices.Equal(diff.Files, []string{"a.txt"}) {
		t.Errorf("it differs in %q, %v", diff.Files, err)
	}
	commit, changed, err := w.Commit(t.Context(), "Change it", saved)
	if err != nil || !changed {
		t.Fatal(changed, err)
	}
	if got := s.Mirrored(t, "show", commit+":a.txt") + s.Mirrored(t, "ls-tree", "--name-only", commit); got != "verifieda.txt" {
		t.Errorf("the commit has %q", got)
	}
	// A run that goes on elsewhere has the save, and nothing else.
	other := s.prepare(t, func(o *workspace.Options) { o.WIP = task.WIPRef })
	again, _, err := other.Commit(t.Context(), "Change it", saved)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Mirrored(t, "show", again+":a.txt"); got != "verified" {
		t.Errorf("elsewhere the commit has %q", got)
	}
}

// What set-up does to files of the project is undone, and what it makes is no part of the
// work before that has changed it.
func TestPreserve(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.lock": "one\n", "dir/b.txt": "two\n", ".gitignore": "/packages/\n"})
	w := s.prepare(t, nil)
	dir := w.Workspace()
	put(t, dir, "mine.txt", "mine\n") // of the work, in a run that goes on
	preserved, err := w.Preserve(t.Context(), func(context.Context) error {
		put(t, dir, "a.lock", "set up\n")
		put(t, dir, "mine.txt", "overwritten\n")
		put(t, dir, "packages/p.txt", "p\n")
		put(t, dir, "made/config.ini", "none\n")
		put(t, dir, "made/other.ini", "other\n")
		return os.RemoveAll(filepath.Join(dir, "dir"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a.lock", "dir/b.txt", "mine.txt"}; !slices.Equal(preserved.Restored, want) {
		t.Errorf("restored were %q, want %q", preserved.Restored, want)
	}
	if made := slices.Sorted(maps.Keys(preserved.Made)); !slices.Equal(made, []string{"made/config.ini", "made/other.ini"}) {
		t.Errorf("made were %q", made)
	}
	if got := read(t, dir, "a.lock") + read(t, dir, "dir/b.txt") + read(t, dir, "mine.txt") + read(t, dir, "packages/p.txt"); got != "one\ntwo\nmine\np\n" {
		t.Errorf("the files have %q", got)
	}
	if err := w.ExcludeUnchanged(t.Context(), preserved.Made); err != nil {
		t.Fatal(err)
	}
	changed := func() []string {
		var diff phase.Diff
		if diff, err = w.Diff(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		return diff.Files
	}
	if got := changed(); !slices.Equal(got, []string{"mine.txt"}) {
		t.Errorf("the work is %q", got)
	}
	put(t, dir, "made/config.ini", "add\n")
	if got := changed(); !slices.Equal(got, []string{"made/config.ini", "mine.txt"}) {
		t.Errorf("the work is %q", got)
	}
}
