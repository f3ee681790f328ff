package connect_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// Root connects an installation whose server runs as another user: what is in the data directory
// is that user's, and the configuration keeps its owner. The tests are run by root too, see
// scripts/fresh.
func TestRootGivesWhatItMakesToTheServer(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("nothing was tested: this is for root")
		return
	}
	const server, group = 61001, 61002
	h := newInstallation(t)
	data := filepath.Join(h.folder, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, server, server); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.file(), []byte("# ours\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(h.file(), 0, group); err != nil {
		t.Fatal(err)
	}
	h.apply()
	testkit.WantOwner(t, data, server, 5)
	info, err := os.Stat(h.file())
	if err != nil {
		t.Fatal(err)
	}
	if is := info.Sys().(*syscall.Stat_t); is.Uid != 0 || is.Gid != group || info.Mode().Perm() != 0o640 {
		t.Errorf("the configuration belongs to %d:%d and is %s", is.Uid, is.Gid, info.Mode())
	}
	if got := connect.OtherOwner(data); got != "#61001" {
		t.Errorf("the data directory belongs to %q", got)
	}
	if got := connect.OtherOwner(h.folder); got != "" {
		t.Errorf("root's own folder belongs to %q", got)
	}
}

// A file that is replaced keeps its group, by which a service may read it.
func TestWriteWholeKeepsTheGroup(t *testing.T) {
	t.Parallel()
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "toryo.yaml")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, group := range append(groups, os.Getegid()) {
		if err := os.Chown(path, -1, group); err != nil {
			t.Fatal(err)
		}
		if err := connect.WriteWhole(path, []byte("new"), 0o640); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if is := info.Sys().(*syscall.Stat_t); int(is.Gid) != group {
			t.Errorf("the group was %d and is %d", group, is.Gid)
		}
	}
}

// A folder for secrets that belongs to a third user is refused: that one would read them.
func TestTheFolderOfSecretsIsAnothers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("nothing was tested: this is for root")
		return
	}
	h := newInstallation(t)
	for path, owner := range map[string]int{h.data(): otherUser, h.data("secrets"): otherUser + 1} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	before := h.content()
	if err := h.installer().Apply(t.Context(), h.answers()); task.CodeOf(err) != task.DataDir {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff(before, h.content()); diff != "" || len(h.forge.Written()) > 0 {
		t.Errorf("changed: %s, %v", diff, h.forge.Written())
	}
}
