package app

import (
	"errors"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/toryo-dev/toryo/internal/task"
)

// lockDataDir keeps a second server from using the same data directory: each
// believes that the mirrors in it are its own. The lock goes with the process,
// however that ends.
func lockDataDir(path string) (unlock func() error, err error) {
	if err := makeDataDir(path); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(path, "server.lock"), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	switch {
	case err != nil:
		err = task.Wrap(task.DataDir, err, "the data directory cannot be used").WithMend("choose another with --data or data_dir")
	case !locked:
		err = task.Errorf(task.DataDir, "another server uses the data directory %s", path).
			WithMend("stop it, or give this one a directory of its own with --data")
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock.Close, nil
}
