package guest

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// asOrdinary does something as a user that may not read what its mode forbids.
func asOrdinary(t *testing.T, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		do()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setfsuid(0); err != nil {
			panic(err) // the thread is of no use any more
		}
	}()
	do()
}

// TestMirrorKeepsWhatCannotBeRead: what a command has made unreadable inside is not gone.
func TestMirrorKeepsWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0, 0o400, 0o300} {
		here, there := mirrors(t)
		there.atLeast = 0o600
		do(t, here.dir, file("dir/sub/a", "1", 0o644), file("dir/b", "2", 0o644), file("c", "3", 0o644), file("d", "4", 0o644))
		pass(t, here, there)
		want := tree(t, there.dir)
		delete(want, "d")
		size := there.size()
		do(t, here.dir, func(dir string) error { return os.Chmod(filepath.Join(dir, "dir"), mode) },
			file("c", "changed", 0), gone("d"))
		var archive bytes.Buffer
		asOrdinary(t, func() {
			if err := here.send(&archive, size, nobody); err != nil {
				t.Error(err)
			}
		})
		if said, err := there.take(&archive, noLimit); err != nil || said.left != 0 {
			t.Error(said, err)
		}
		want["dir"] = "drwx------"
		if diff := cmp.Diff(want, tree(t, there.dir)); diff != "" {
			t.Errorf("mode %o (-want +got):\n%s", mode, diff)
		}
		// It is not taken for new when it can be read again.
		do(t, here.dir, func(dir string) error { return os.Chmod(filepath.Join(dir, "dir"), 0o755) },
			func(dir string) error { return os.Chmod(filepath.Join(dir, "c"), 0o644) })
		pass(t, here, there)
		same(t, here.dir, there.dir)
	}
}
