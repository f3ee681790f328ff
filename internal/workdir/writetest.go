package workdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toryo-dev/toryo/internal/task"
)

// testSize is more than a file system keeps in the entry of a file, so that space is needed.
const testSize = 8 << 10

// testName is the same each time, so that a process that is killed leaves one file at most, and the next
// test removes it.
const testName = ".write-test"

// openTest opens the file. One that a process of another user has left is removed first.
func openTest(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if errors.Is(err, fs.ErrPermission) && os.Remove(name) == nil {
		return os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	}
	return file, err
}

// TestWrite reports whether files can be made in the folder, by making one: it fails if the
// disk is full, has no entry for a file left or can only be read. The file is removed. Several
// tests of a folder may run at the same time: one that removes the file leaves the others theirs.
func TestWrite(dir string) error {
	name := filepath.Join(dir, testName)
	file, err := openTest(name)
	if err == nil {
		_, err = file.Write(make([]byte, testSize))
		err = errors.Join(err, file.Sync(), file.Close())
		if removed := os.Remove(name); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	if err != nil {
		return task.Wrap(task.NotReady, err, "no file can be written in "+dir).WithHint("make room on its disk, and make sure that this user may write there")
	}
	return nil
}
