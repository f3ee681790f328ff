package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
)

// A commit has some files as another one has them: put back, restored and taken away, also
// where a folder became a link.
func TestMixed(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"add.sh": "one\n", "test.sh": "first\n", "gone_test.sh": "gone\n", "tests/a.sh": "a\n", "tests/deep/b.sh": "b\n"})
	w := s.prepare(t, nil)
	dir := w.Workspace()
	put(t, dir, "add.sh", "two\n")
	put(t, dir, "test.sh", "weaker\n")
	put(t, dir, "new_test.sh", "new\n")
	put(t, dir, "elsewhere/x.sh", "x\n")
	for _, err := range []error{os.Remove(filepath.Join(dir, "gone_test.sh")), os.RemoveAll(filepath.Join(dir, "tests")), os.Symlink("elsewhere", filepath.Join(dir, "tests"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	saved := save(t, w)
	changes, err := w.Changes(t.Context(), w.Below(), saved)
	if err != nil {
		t.Fatal(err)
	}
	want := []phase.Change{
		{Name: "add.sh"}, {Name: "elsewhere/x.sh", Added: true}, {Name: "gone_test.sh", Removed: true}, {Name: "new_test.sh", Added: true},
		{Name: "test.sh"}, {Name: "tests", Added: true}, {Name: "tests/a.sh", Removed: true}, {Name: "tests/deep/b.sh", Removed: true},
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Error(diff)
	}
	for _, one := range []struct {
		on, from string
		taken    []string
		want     []string
		test     string
	}{
		{saved, w.Below(), []string{"test.sh", "gone_test.sh", "new_test.sh", "tests/a.sh", "tests/deep/b.sh"},
			[]string{"add.sh", "elsewhere/x.sh", "gone_test.sh", "test.sh", "tests/a.sh", "tests/deep/b.sh"}, "first\n"},
		{w.Below(), saved, []string{"test.sh", "new_test.sh", "tests"}, []string{"add.sh", "gone_test.sh", "new_test.sh", "test.sh", "tests"}, "weaker\n"},
	} {
		mixed, err := w.Mixed(t.Context(), one.on, one.from, one.taken)
		if err != nil {
			t.Fatal(err)
		}
		files, err := w.Export(t.Context(), mixed)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = files.Remove() })
		if diff := cmp.Diff(one.want, names(t, files.Dir())); diff != "" {
			t.Error(diff)
		}
		if got := read(t, files.Dir(), "test.sh"); got != one.test {
			t.Errorf("test.sh has %q, want %q", got, one.test)
		}
	}
	// Nothing of that is in the work.
	if again := save(t, w); again != saved {
		t.Errorf("the work is %s now, and was %s", again, saved)
	}
}

func TestReplaced(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"package.json": "one\n", "a.txt": "a\n"})
	w := s.prepare(t, nil)
	if err := os.Symlink("a.txt", filepath.Join(w.Workspace(), "link")); err != nil {
		t.Fatal(err)
	}
	saved := save(t, w)
	replaced, err := w.Replaced(t.Context(), saved, map[string][]byte{"package.json": []byte("two\n")})
	if err != nil {
		t.Fatal(err)
	}
	files, err := w.Export(t.Context(), replaced)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Remove() })
	if diff := cmp.Diff([]string{"a.txt", "link", "package.json"}, names(t, files.Dir())); diff != "" {
		t.Error(diff)
	}
	if got := read(t, files.Dir(), "package.json") + read(t, files.Dir(), "a.txt"); got != "two\na\n" {
		t.Errorf("the files have %q", got)
	}
	for _, name := range []string{"link", "none"} {
		if _, err := w.Replaced(t.Context(), saved, map[string][]byte{name: nil}); task.CodeOf(err) != task.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if again := save(t, w); again != saved {
		t.Errorf("the work is %s now, and was %s", again, saved)
	}
}

func TestFileOfACommit(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "one\n", "dir/b.txt": "two\n"})
	w := s.prepare(t, nil)
	if err := os.Symlink("/etc/passwd", filepath.Join(w.Workspace(), "link")); err != nil {
		t.Fatal(err)
	}
	put(t, w.Workspace(), "a.txt", "changed\n")
	saved := save(t, w)
	for _, one := range []struct{ commit, want string }{{w.Below(), "one\n"}, {saved, "changed\n"}} {
		if data, err := w.File(t.Context(), one.commit, "a.txt"); err != nil || string(data) != one.want {
			t.Errorf("a.txt of %s is %q, %v, want %q", one.commit, data, err, one.want)
		}
	}
	for _, name := range []string{"link", "dir", "none", "../a.txt", "/etc/passwd"} {
		if data, err := w.File(t.Context(), saved, name); task.CodeOf(err) != task.NotFound {
			t.Errorf("%s is %q, %v", name, data, err)
		}
	}
	files, err := w.Files(t.Context(), saved)
	if diff := cmp.Diff([]string{"a.txt", "dir/b.txt", "link"}, files); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
