package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// wantOwner checks that everything in a folder belongs to a user.
func wantOwner(t *testing.T, folder string, owner uint32) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		seen++
		if stat, is := info.Sys().(*syscall.Stat_t); !is || stat.Uid != owner {
			t.Errorf("%s is not of the user %d", path, owner)
		}
		return nil
	})
	if err != nil || seen < 2 {
		t.Fatalf("%d files: %v", seen, err)
	}
}

// What root makes in the data directory of a server belongs to the user of the server.
//
//nolint:paralleltest // it changes the folder and the place of the machine
func TestRootMakesADatabaseForTheServer(t *testing.T) {
	if os.Geteuid() != 0 {
		return // nobody else can give files away
	}
	const server = 61000
	machine := onMachine(t, "language: en\n")
	if err := os.Mkdir(machine.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(machine.Data, server, server); err != nil {
		t.Fatal(err)
	}
	mustRun(t, nil, "token", "create", "--role", "viewer")
	mustRun(t, nil, "token", "list")
	wantOwner(t, machine.Data, server)
	data, file := boardData(t), filepath.Join(t.TempDir(), "x.backup")
	mustRun(t, nil, "backup", file, "--data", data)
	for _, left := range []string{"toryo.db", "processes"} {
		if err := os.RemoveAll(filepath.Join(machine.Data, left)); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, nil, "restore", file)
	mustRun(t, nil, "board", "issue", "create", "--repo", "team/app", "--title", "Say more")
	wantOwner(t, machine.Data, server)
}
