package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/task"
)

// maxFile is far beyond any file that is read here.
const maxFile = 1 << 20

// draftName is how a file is called that becomes another when it is whole.
const draftName = ".toryo-init-*.tmp"

// removeDrafts removes what a WriteWhole has left behind that was killed: a secret may be in it.
func removeDrafts(folders ...string) error {
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue // it is not there, or not ours
		}
		for _, entry := range entries {
			if is, err := filepath.Match(draftName, entry.Name()); err != nil || !is || !entry.Type().IsRegular() {
				continue
			}
			if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return task.Wrap(task.DataDir, err, "what an interrupted toryo init has left cannot be removed")
			}
		}
	}
	return nil
}

// tidy removes drafts in all folders that are written to.
func (i *Installer) tidy() error {
	if i.DryRun {
		return nil
	}
	return removeDrafts(i.DataDir, filepath.Join(i.DataDir, secretFolder), filepath.Dir(i.ConfigFile))
}

// WriteWhole writes a file so that it is there whole or not at all, also after a power cut. A
// link keeps pointing where it does. What root writes belongs to the owner of what it replaces,
// or of the folder that it is in.
func WriteWhole(path string, content []byte, mode fs.FileMode) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	draft, err := os.CreateTemp(filepath.Dir(path), draftName)
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
	probe, err := os.CreateTemp(folder, draftName)
	if err != nil {
		return task.Wrap(task.Conflict, err, "the server cannot write to "+folder).
			WithHint("let the user that runs the server write there, or run toryo init as a user that may")
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

// secretFolder is where the files with secrets are, in the data directory.
const secretFolder = "secrets"

// ignoreFile and ignoreAll keep the secrets out of a repository that the data directory is in.
const (
	ignoreFile = ".gitignore"
	ignoreAll  = "*\n"
)

// makeFolder makes a folder for nobody else to read, unless it is there.
func makeFolder(path string) error {
	if err := makeFolderIn(filepath.Dir(path), filepath.Base(path)); err != nil && !errors.Is(err, fs.ErrExist) {
		return task.Wrap(task.DataDir, err, "the folder "+path+" cannot be made").WithHint("choose another data directory with --data")
	}
	return nil
}

func makeFolderIn(parent, name string) (err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	in, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := in.Mkdir(name, 0o700); err != nil {
		return err
	}
	giveToOwner(in, name)
	return nil
}

// writeSecret writes a file with a secret, in a folder that only we can read.
func writeSecret(path, secret string) error {
	folder := filepath.Dir(path)
	if err := makeFolder(folder); err != nil {
		return err
	}
	if err := os.Chmod(folder, 0o700); err != nil { //nolint:gosec // it is a folder
		return task.Wrap(task.DataDir, err, "the folder of the secrets cannot be closed to others")
	}
	ignore := filepath.Join(folder, ignoreFile)
	if _, err := os.Lstat(ignore); errors.Is(err, fs.ErrNotExist) {
		if err := WriteWhole(ignore, []byte(ignoreAll), 0o600); err != nil {
			return task.Wrap(task.DataDir, err, "the folder of the secrets cannot be written to")
		}
	}
	if err := WriteWhole(path, []byte(secret+"\n"), 0o600); err != nil {
		return task.Wrap(task.DataDir, err, "a secret cannot be written")
	}
	return nil
}

// readSecret reads a file with a secret; there is false if it does not exist.
func readSecret(path string) (secret string, there bool, err error) {
	content, there, err := readBounded(path)
	if err != nil {
		return "", there, task.Wrap(task.DataDir, err, "a secret cannot be read")
	}
	return string(bytes.TrimRight(content, "\r\n")), there, nil
}

// removeSecret removes a file with a secret, and its folder when that is empty then.
func removeSecret(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return task.Wrap(task.DataDir, err, "a secret cannot be removed")
	}
	folder := filepath.Dir(path)
	left, err := os.ReadDir(folder)
	if err != nil || filepath.Base(folder) != secretFolder || len(left) != 1 || left[0].Name() != ignoreFile {
		return nil //nolint:nilerr // a folder that stays does no harm
	}
	ignore := filepath.Join(folder, ignoreFile)
	if content, _, err := readBounded(ignore); err != nil || string(content) != ignoreAll {
		return nil //nolint:nilerr // it is not ours
	}
	if err := errors.Join(os.Remove(ignore), os.Remove(folder)); err != nil {
		return task.Wrap(task.DataDir, err, "the folder of the secrets cannot be removed")
	}
	return nil
}
