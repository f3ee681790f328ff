package env

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// workspaces is the folder in which each run has a workspace, named by the
// process and a random part.
const workspaces = "workspaces"

// workspace makes an empty folder for the project and returns how to remove it.
// Those that dead processes left are removed first.
func (s Setup) workspace() (at string, remove func() error, err error) {
	folder := filepath.Join(s.folder(), workspaces)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", nil, task.Wrap(task.DataDir, err, "the folder for workspaces cannot be made").
			WithHint("choose another with --data or data_dir")
	}
	if err := removeAbandoned(folder); err != nil {
		s.printProgress("what an earlier run left could not be removed: " + err.Error())
	}
	at, err = os.MkdirTemp(folder, strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", nil, task.Wrap(task.DataDir, err, "a workspace cannot be made")
	}
	return at, func() error { return workdir.Remove(at) }, nil
}

func removeAbandoned(folder string) error {
	found, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var failures []error
	for _, entry := range found {
		number, _, _ := strings.Cut(entry.Name(), "-")
		process, err := strconv.Atoi(number)
		if err != nil || process <= 0 || !isGone(process) {
			continue
		}
		failures = append(failures, workdir.Remove(filepath.Join(folder, entry.Name())))
	}
	return errors.Join(failures...)
}
