package sqlite

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

// asNobody runs a function without the right to write what the owner may write.
// For root that takes another user for this thread's access to files; the thread
// is thrown away afterwards.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			if err := syscall.Setfsuid(65534); err != nil {
				t.Error(err)
				return
			}
		}
		do()
	}()
	<-done
}

func TestUnwritable(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		_, err := Open(t.Context(), dir+"/toryo.db")
		if task.CodeOf(err) != task.DataDir {
			t.Errorf("a directory that cannot be written: %v", err)
		}
		checkMessage(t, err)
	})
	if after := contents(t, dir); len(after) != 0 {
		t.Errorf("%d files were left", len(after))
	}

	closed(t, opened(t, path))
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o755, 0o777} { // others may write the directory, or not
		if err := os.Chmod(filepath.Dir(path), mode); err != nil {
			t.Fatal(err)
		}
		asNobody(t, func() {
			_, err := Open(t.Context(), path)
			if task.CodeOf(err) != task.DataDir {
				t.Errorf("a file that cannot be written: %v", err)
			}
			checkMessage(t, err)
		})
	}
}
