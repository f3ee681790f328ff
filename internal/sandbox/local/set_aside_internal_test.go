package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What is taken or removed right now is no leftover, however old it is.
func TestSetAsideIsNoLeftover(t *testing.T) {
	t.Parallel()
	store := SnapshotStore{Dir: t.TempDir()}
	old := time.Now().Add(-2 * leftoverAge)
	for _, name := range []string{"kept", ".new-before"} {
		dir := filepath.Join(store.Dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	aside := filepath.Join(store.Dir, ".old-kept")
	if err := setAside(filepath.Join(store.Dir, "kept"), aside); err != nil {
		t.Fatal(err)
	}
	if err := store.Sweep(); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(store.Dir, ".*")); err != nil || len(left) != 1 || left[0] != aside {
		t.Errorf("there are %v, %v", left, err)
	}
}
