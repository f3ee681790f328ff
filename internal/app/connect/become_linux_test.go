package connect_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/connect"
)

// otherUser owns folders in these tests; no system knows it.
const otherUser = 61001

// folderOfOther is a folder of another user, or empty where root does not run this.
func folderOfOther(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("nothing was tested: this is for root")
		return ""
	}
	folder := filepath.Join(openFolder(t), "data")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(folder, otherUser, otherUser); err != nil {
		t.Fatal(err)
	}
	return folder
}

// openFolder is one that everybody can enter.
func openFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, closed := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(closed, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// Whether the owner of a folder can read a file is what the system says, folders above included.
func TestOwnerReads(t *testing.T) {
	t.Parallel()
	data := folderOfOther(t)
	if data == "" {
		return
	}
	closed := filepath.Join(openFolder(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		file  string
		mode  os.FileMode
		owner int
		want  bool
	}{
		{filepath.Join(filepath.Dir(closed), "open"), 0o644, 0, true},
		{filepath.Join(filepath.Dir(closed), "own"), 0o600, otherUser, true},
		{filepath.Join(filepath.Dir(closed), "root's"), 0o600, 0, false},
		{filepath.Join(closed, "below"), 0o644, 0, false},
	} {
		if err := os.WriteFile(test.file, nil, test.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(test.file, test.owner, test.owner); err != nil {
			t.Fatal(err)
		}
		if got := connect.OwnerReads(t.Context(), data, test.file); got != test.want {
			t.Errorf("%s can be read: %t", test.file, got)
		}
	}
}

// becomes names the folder whose owner a process of [TestBecomeOwner] becomes.
const becomes = "TORYO_TEST_BECOMES"

// A process of root's becomes one of another user, for good. It is a process of its own, because
// there is no way back.
func TestBecomeOwner(t *testing.T) {
	t.Parallel()
	if folder := os.Getenv(becomes); folder != "" {
		become(t, folder)
		return
	}
	data := folderOfOther(t)
	if data == "" {
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBecomeOwner$", "-test.v")
	child.Env = []string{becomes + "=" + data, "HOME=/root", "XDG_CACHE_HOME=/root/cache"}
	if said, err := child.CombinedOutput(); err != nil || !strings.Contains(string(said), "it has become another") {
		t.Errorf("%v: %s", err, said)
	}
}

func become(t *testing.T, folder string) {
	t.Helper()
	if err := connect.BecomeOwner(folder); err != nil {
		t.Fatal(err)
	}
	groups, err := os.Getgroups()
	if err != nil || os.Getuid() != otherUser || os.Geteuid() != otherUser || os.Getegid() != otherUser || len(groups) > 0 {
		t.Errorf("%v: it is %d, %d, in the groups %d, %v", err, os.Getuid(), os.Geteuid(), os.Getegid(), groups)
	}
	if err := syscall.Setuid(0); err == nil {
		t.Error("it is root again")
	}
	here, err := os.Getwd()
	if err != nil || here != folder || os.Getenv("HOME") != folder || os.Getenv("XDG_CACHE_HOME") != "" {
		t.Errorf("%v: it is in %s, with the home %s", err, here, os.Getenv("HOME"))
	}
	if _, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", os.Getpid())); err != nil {
		t.Errorf("it is hidden from itself: %v", err)
	}
	t.Log("it has become another")
}
