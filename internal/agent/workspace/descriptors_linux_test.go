package workspace_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// leaveDescriptors leaves the process so many more files that it can open, until the test ends.
func leaveDescriptors(t *testing.T, count int) {
	t.Helper()
	next, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	lowest := next.Fd()
	_ = next.Close()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = uint64(lowest) + uint64(count)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	})
}

// Folders that cannot be listed because too many files are open are not taken for empty: what is in
// them would not be in the commit.
//
//nolint:paralleltest // the limit is that of the process
func TestFoldersThatCannotBeListed(t *testing.T) {
	s := newSite(t, map[string]string{"a.txt": "a\n"})
	w := s.prepare(t, nil)
	deep := strings.Repeat("d/", 100) + "b.txt"
	put(t, w.Workspace(), deep, "b\n")
	t.Run("few", func(t *testing.T) {
		leaveDescriptors(t, 50)
		if saved, err := w.Save(t.Context(), "work in progress"); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("saved was %q, %v", saved, err)
		}
		if _, changed, err := w.Commit(t.Context(), "work", ""); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("committed: %t, %v", changed, err)
		}
	})
	if got := s.Mirrored(t, "show", save(t, w)+":"+deep); got != "b" {
		t.Errorf("afterwards the save has %q", got)
	}
}

// So it is with files of the history: they are not taken for deleted, and not for changed where they
// are verified.
//
//nolint:paralleltest // the limit is that of the process
func TestFilesThatCannotBeLookedAt(t *testing.T) {
	s := newSite(t, map[string]string{"a/b/c.txt": "c\n"})
	w := s.prepare(t, nil)
	put(t, w.Workspace(), "a/b/new.txt", "new\n")
	saved := save(t, w)
	files, err := w.Export(t.Context(), saved)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("none", func(t *testing.T) {
		leaveDescriptors(t, 0)
		if restored, err := files.Restore(t.Context()); !errors.Is(err, syscall.EMFILE) || len(restored) != 0 {
			t.Errorf("restored were %q, %v", restored, err)
		}
		if diff, err := w.Diff(t.Context(), ""); !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "look at the workspace") {
			t.Errorf("it differs in %q, %v", diff.Files, err)
		}
	})
	if restored, err := files.Restore(t.Context()); err != nil || len(restored) != 0 {
		t.Errorf("afterwards restored were %q, %v", restored, err)
	}
	if got := read(t, files.Dir(), "a/b/c.txt"); got != "c\n" {
		t.Errorf("the file has %q", got)
	}
}
