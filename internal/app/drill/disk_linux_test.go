package drill

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A file system that is full takes nothing more, keeps what it has, and goes on when it is not.
func TestDisk(t *testing.T) {
	t.Parallel()
	if !CanMount() {
		t.Log("only root may mount a file system")
		return
	}
	d, err := newDisk(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
	write := func(name string) error { return os.WriteFile(filepath.Join(d.dir, name), make([]byte, 100_000), 0o600) }
	if err := write("before"); err != nil {
		t.Fatal(err)
	}
	if err := d.fill(); err != nil {
		t.Fatal(err)
	}
	if err := write("meanwhile"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	if kept, err := os.ReadFile(filepath.Join(d.dir, "before")); err != nil || len(kept) != 100_000 {
		t.Errorf("%d bytes are there, %v", len(kept), err)
	}
	if err := d.free(); err != nil {
		t.Fatal(err)
	}
	if err := write("afterwards"); err != nil {
		t.Errorf("there is room again, and %v", err)
	}
}
