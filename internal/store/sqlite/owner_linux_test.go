package sqlite

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Root makes an installation whose server runs as another user, by toryo user create for
// example: every file of the database is that user's. The tests are run by root too, see
// scripts/fresh.
func TestRootGivesTheDatabaseToTheServer(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("nothing was tested: this is for root")
		return
	}
	const server, group = 61001, 61002
	dir := t.TempDir()
	if err := os.Chown(dir, server, group); err != nil {
		t.Fatal(err)
	}
	opened, err := Open(t.Context(), filepath.Join(dir, "toryo.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 4 { // the database, its log, the index of that, and the lock
		t.Fatalf("%v: there are %v", err, files)
	}
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			t.Fatal(err)
		}
		if is := info.Sys().(*syscall.Stat_t); is.Uid != server || is.Gid != group || info.Mode().Perm() != 0o600 {
			t.Errorf("%s belongs to %d:%d and is %s", file.Name(), is.Uid, is.Gid, info.Mode())
		}
	}
}
