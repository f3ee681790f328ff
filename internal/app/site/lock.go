package site

import (
	"errors"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/toryo-dev/toryo/internal/app/processes"
	"github.com/toryo-dev/toryo/internal/task"
)

// The files that the server of a data directory and the agent of a folder lock.
const (
	serverLock = "server.lock"
	agentLock  = "agent.lock"
)

// lockFolder keeps a second process from using the same folder: each believes
// that what is in it is its own. The lock goes with the process, however that
// ends.
func lockFolder(path, name, who string) (unlock func() error, err error) {
	unlock, locked, err := tryLockFolder(path, name)
	if err == nil && !locked {
		err = task.Errorf(task.DataDir, "%s uses the data directory %s", who, path).
			WithHint("stop it, or give this one a directory of its own with --data")
	}
	return unlock, err
}

// tryLockFolder does the same, and reports whether no other process uses the folder.
func tryLockFolder(path, name string) (unlock func() error, locked bool, err error) {
	if err := MakeDataDir(path); err != nil {
		return nil, false, err
	}
	lock := flock.New(filepath.Join(path, name), flock.SetPermissions(0o600))
	locked, err = lock.TryLock()
	if err != nil {
		err = task.Wrap(task.DataDir, err, "the data directory cannot be used").WithHint("choose another with --data or data_dir")
	}
	if err != nil || !locked {
		return nil, false, errors.Join(err, lock.Close())
	}
	return lock.Close, true, nil
}

// lockFor does the same, and registers this process in the folder.
func lockFor(path, name, who string) (process *processes.Process, done func() error, err error) {
	unlock, err := lockFolder(path, name, who)
	if err != nil {
		return nil, nil, err
	}
	process, err = startProcess(path)
	if err != nil {
		return nil, nil, errors.Join(err, unlock())
	}
	return process, func() error { return errors.Join(process.Stop(), unlock()) }, nil
}

// startProcess registers this process in a folder.
func startProcess(folder string) (*processes.Process, error) {
	process, err := processes.Start(filepath.Join(folder, processFolder))
	if err != nil {
		return nil, task.Wrap(task.DataDir, err, "the data directory cannot be used").WithHint("choose another with --data or data_dir")
	}
	return process, nil
}
