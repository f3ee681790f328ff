package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toryo-dev/toryo/internal/agent/workspace"
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

// What the work has made or changed, and an earlier save has, stays as that has it when it may not be read
// any more: be it the folder or the file itself that is closed.
func TestWhatWasSavedAndIsClosed(t *testing.T) {
	t.Parallel()
	const want = "A\tclosed/made.txt\nA\tclosed/new/deep.txt\nM\tclosed/a.txt\nD\tclosed/gone.txt\nM\tz.txt"
	for what, closes := range map[string][]string{"a folder": {"closed"}, "a folder of the work": {"closed/new"},
		"files": {"closed/made.txt", "closed/new/deep.txt", "closed/a.txt"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, map[string]string{"closed/a.txt": "a\n", "closed/gone.txt": "g\n", "z.txt": "z\n"})
			w := s.prepare(t, nil)
			put(t, w.Workspace(), "closed/a.txt", "changed\n")
			put(t, w.Workspace(), "closed/made.txt", "made\n")
			put(t, w.Workspace(), "closed/new/deep.txt", "deep\n")
			if err := os.Remove(filepath.Join(w.Workspace(), "closed", "gone.txt")); err != nil {
				t.Fatal(err)
			}
			save(t, w)
			put(t, w.Workspace(), "z.txt", "changed\n")
			checkClosed(t, s, w, closes, want)
		})
	}
}

// checkClosed saves and commits while files or folders may not be opened.
func checkClosed(t *testing.T, s *site, w *workspace.Workspace, closes []string, want string) {
	t.Helper()
	mode := func(to os.FileMode) {
		for _, name := range closes {
			if err := os.Chmod(filepath.Join(w.Workspace(), name), to); err != nil {
				t.Error(err)
			}
		}
	}
	asOwner(t, func() {
		mode(0)
		defer mode(0o700)
		saved, err := w.Save(t.Context(), "work in progress")
		if err != nil {
			t.Error(err)
			return
		}
		if got := sorted(s.changes(t, saved)); got != sorted(want) {
			t.Errorf("the save changes\n%s", got)
		}
		commit, _, err := w.Commit(t.Context(), "done", "")
		if err != nil {
			t.Error(err)
			return
		}
		if got := sorted(s.changes(t, commit)); got != sorted(want) {
			t.Errorf("the commit changes\n%s", got)
		}
		if text := s.Mirrored(t, "show", commit+":closed/a.txt"); text != "changed" {
			t.Errorf("the changed file is %q", text)
		}
	})
}

func sorted(lines string) string {
	all := strings.Split(lines, "\n")
	slices.Sort(all)
	return strings.Join(all, "\n")
}
