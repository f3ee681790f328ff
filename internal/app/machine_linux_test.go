package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toryo-dev/toryo/internal/testkit"
)

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
	testkit.WantOwner(t, machine.Data, server, 2)
	data, file := boardData(t), filepath.Join(t.TempDir(), "x.backup")
	mustRun(t, nil, "backup", file, "--data", data)
	for _, left := range []string{"toryo.db", "processes"} {
		if err := os.RemoveAll(filepath.Join(machine.Data, left)); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, nil, "restore", file)
	mustRun(t, nil, "board", "issue", "create", "--repo", "team/app", "--title", "Say more")
	testkit.WantOwner(t, machine.Data, server, 2)
}
