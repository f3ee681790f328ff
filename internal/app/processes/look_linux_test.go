package processes

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// What somebody puts in the place of a file after it was listed is passed over, and nobody
// waits for it.
func TestReplacedFile(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "processes")
	p, err := Start(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	for name, put := range map[string]func(path string) error{
		"a link":   func(path string) error { return os.Symlink(filepath.Join(folder, p.id), path) },
		"a pipe":   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"nothing":  func(string) error { return nil },
	} {
		id := uuid.NewString()
		if err := put(filepath.Join(folder, id)); err != nil {
			t.Fatal(err)
		}
		if free, proven, err := p.look(id); free || proven || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is %v, %v, %v", name, free, proven, err)
		}
	}
}
