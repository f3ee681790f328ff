package app

import (
	"errors"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/toryo-dev/toryo/internal/task"
)

// lockFolder keeps a second process from using the same folder: each believes
// that what is in it is its own. The lock goes with the process, however that
// ends.
func lockFolder(path, name, who string) (unlock func() error, err error) {
	if err := makeDataDir(path); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(path, name), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	switch {
	case err != nil:
		err = task.Wrap(task.DataDir, err, "the data directory cannot be used").WithMend("choose another with --data or data_dir")
	case !locked:
		err = task.Errorf(task.DataDir, "%s uses the data directory %s", who, path).
			WithMend("stop it, or give this one a directory of its own with --data")
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock.Close, nil
}
