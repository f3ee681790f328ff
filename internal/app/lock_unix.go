//go:build unix

package app

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/toryo-dev/toryo/internal/task"
)

// lockFolder keeps a second process from using the same folder: each believes
// that what is in it is its own. The lock goes with the process, however that
// ends.
func lockFolder(path, name, who string) (unlock func() error, err error) {
	if err := makeDataDir(path); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(path, name), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in the data directory
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "the data directory cannot be used").WithMend("choose another with --data or data_dir")
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = task.Errorf(task.DataDir, "%s uses the data directory %s", who, path).
			WithMend("stop it, or give this one a directory of its own with --data")
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}
