package connect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/task"
)

// maxFile is far beyond any file that is read here.
const maxFile = 1 << 20

// draftStart and draftEnd are in the name of a file that becomes another when it is whole.
const (
	draftStart = ".toryo-init-"
	draftEnd   = ".tmp"
)

// isDraft reports whether something in a folder is such a file.
func isDraft(entry fs.DirEntry) bool {
	return strings.HasPrefix(entry.Name(), draftStart) && strings.HasSuffix(entry.Name(), draftEnd) && entry.Type().IsRegular()
}

// draftStays is that such a file cannot be removed.
const draftStays = "what an interrupted toryo init has left cannot be removed"

// tidy removes drafts in all folders that are written to. It refuses a folder for secrets that
// is not the owner's of the data.
func (i *Installer) tidy(data folder) error {
	secrets, err := data.secrets()
	defer secrets.close()
	if err != nil || i.DryRun {
		return err
	}
	if err := errors.Join(data.removeDrafts(), secrets.removeDrafts()); err != nil {
		return err
	}
	beside, err := openFolder(filepath.Dir(i.ConfigFile))
	if err != nil {
		return nil // it is not ours
	}
	defer beside.close()
	return beside.removeDrafts()
}

// WriteWhole writes a file so that it is there whole or not at all, also after a power cut. A
// link keeps pointing where it does. What root writes belongs to the owner of what it replaces,
// or of the folder that it is in.
func WriteWhole(path string, content []byte, mode fs.FileMode) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	draft, err := os.CreateTemp(filepath.Dir(path), draftStart+"*"+draftEnd)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(draft.Name()))
		}
	}()
	keepOwner(draft, path)
	_, err = draft.Write(content)
	err = errors.Join(err, draft.Chmod(mode), draft.Sync(), draft.Close())
	if err != nil {
		return err
	}
	return os.Rename(draft.Name(), path)
}

// Writable makes sure that WriteWhole can write a file.
func Writable(path string) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if isMountPoint(path) {
		return task.Errorf(task.Conflict, "%s cannot be replaced: it is mounted here as a single file", path).
			WithHint("mount the folder that it is in, or run toryo init where the file comes from")
	}
	folder := filepath.Dir(path)
	probe, err := os.CreateTemp(folder, draftStart+"*"+draftEnd)
	if err != nil {
		hint := "let the user that runs the server write there, or run toryo init as a user that may"
		if config.HasServices(path) {
			hint = "run sudo toryo init --config " + path + " on this machine, which asks for the same"
		}
		return task.Wrap(task.Conflict, err, "the server cannot write to "+folder).WithHint("%s", hint)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// readBounded reads a small file; there is false if it does not exist.
func readBounded(path string) (content []byte, there bool, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	content, err = io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = task.Errorf(task.TooLarge, "%s is larger than %d KiB", path, maxFile>>10)
	}
	return content, true, err
}

// ReadConfig reads a configuration file, and makes sure that it can be edited: better now
// than after all questions.
func ReadConfig(path string) (text []byte, there bool, err error) {
	text, there, err = readBounded(path)
	if err != nil {
		return nil, there, task.Wrap(task.BadConfig, err, path+" cannot be read").WithHint("name another with --config")
	}
	if _, _, err := config.Written(text, "data_dir"); err != nil {
		return nil, there, fmt.Errorf("%s: %w", path, err)
	}
	return text, there, nil
}

// modeOf is the mode of a file that is there, or the given one.
func modeOf(path string, usual fs.FileMode) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return usual
}
