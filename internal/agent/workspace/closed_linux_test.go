package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// asOwner does something in a thread to which modes of files apply as to a plain user.
func asOwner(t *testing.T, do func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all [2]unix.CapUserData
	if err := unix.Capget(&header, &all[0]); err != nil {
		t.Fatal(err)
	}
	less := all
	less[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &less[0]); err != nil {
		t.Fatal(err)
	}
	do()
	if err := unix.Capset(&header, &all[0]); err != nil {
		t.Fatal(err)
	}
}

// Files of the history in a folder that may not be opened stay as they were: they are not taken for
// deleted.
func TestAFolderThatCannotBeListed(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"closed/a.txt": "a\n", "closed/sub/b.txt": "b\n", "c.txt": "c\n"})
	w := s.prepare(t, nil)
	closed := filepath.Join(w.Workspace(), "closed")
	put(t, w.Workspace(), "c.txt", "changed\n")
	asOwner(t, func() {
		for _, mode := range []os.FileMode{0o311, 0o200, 0} {
			if err := os.Chmod(closed, mode); err != nil {
				t.Error(err)
			}
			put(t, w.Workspace(), "c.txt", mode.String())
			saved, err := w.Save(t.Context(), "work in progress")
			if err := errors.Join(err, os.Chmod(closed, 0o700)); err != nil {
				t.Errorf("%o: %v", mode, err)
				continue
			}
			if got := s.changes(t, saved); got != "M\tc.txt" {
				t.Errorf("%o: the save changes\n%s", mode, got)
			}
		}
	})
	if text := remarks(w); !strings.Contains(text, "closed/a.txt") {
		t.Errorf("it says %q", text)
	}
	if err := os.RemoveAll(closed); err != nil {
		t.Fatal(err)
	}
	if got := s.changes(t, save(t, w)); got != "M\tc.txt\nD\tclosed/a.txt\nD\tclosed/sub/b.txt" {
		t.Errorf("when it is gone, the save changes\n%s", got)
	}
}
