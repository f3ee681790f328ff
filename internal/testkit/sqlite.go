package testkit

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// migrated is an SQLite database that has been made, and holds nothing yet. It is made
// once for all tests of a package: the race detector makes that slow.
var migrated struct {
	sync.Mutex
	database []byte
}

// SQLite returns the path of a new SQLite database, in a directory of its own. Open
// makes the first one; the others are copies of it.
func SQLite[C io.Closer](t testing.TB, open func(context.Context, string) (C, error)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "toryo.db")
	if err := os.WriteFile(path, emptyDatabase(t, open), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func emptyDatabase[C io.Closer](t testing.TB, open func(context.Context, string) (C, error)) []byte {
	t.Helper()
	migrated.Lock()
	defer migrated.Unlock()
	if migrated.database != nil {
		return migrated.database
	}
	path := filepath.Join(t.TempDir(), "first.db")
	database, err := open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	if migrated.database, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return migrated.database
}
