package connect

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toryo-dev/toryo/internal/owner"
	"github.com/toryo-dev/toryo/internal/task"
)

// folder is the data directory, or the one for secrets in it. Root may run this, and another user
// own the folder, who can put a link in the place of anything in it, at any time. So the folder
// is opened, all that is in it is reached by its name there, and no link is followed.
type folder struct {
	path string
	root *os.Root // nil if the folder is not there
}

// openFolder opens a folder, if it is there. It may be a link itself: whoever names it chooses it.
func openFolder(path string) (folder, error) {
	root, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		return folder{path: path}, nil
	}
	return folder{path, root}, err
}

func (f folder) close() {
	if f.root != nil {
		_ = f.root.Close() // nothing is written to the folder itself
	}
}

// openIn opens a folder in this one, if it is there. It must belong to the owner of this one, or
// to who runs this.
func (f folder) openIn(name string) (folder, error) {
	in := folder{path: filepath.Join(f.path, name)}
	if f.root == nil {
		return in, nil
	}
	named, err := f.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return in, nil
	}
	if err != nil {
		return in, err
	}
	refused := task.Errorf(task.DataDir, "%s is a link, or not a folder of the owner of %s", in.path, f.path).
		WithHint("see who has put it there; move it away, or make a folder of that owner of it")
	if !named.IsDir() {
		return in, refused
	}
	root, err := f.root.OpenRoot(name)
	if err != nil {
		return in, err
	}
	opened, err := root.Stat(".")
	if err != nil || !os.SameFile(named, opened) || !ownedAs(opened, f.root) {
		return in, errors.Join(refused, err, root.Close())
	}
	in.root = root
	return in, nil
}

// makeIn makes a folder in this one, unless it is there, and opens it.
func (f folder) makeIn(name string) (folder, error) {
	err := f.root.Mkdir(name, 0o700)
	made := err == nil
	if !made && !errors.Is(err, fs.ErrExist) {
		return folder{}, err
	}
	in, err := f.openIn(name)
	if err != nil {
		return in, err
	}
	if in.root == nil {
		return in, fs.ErrNotExist // somebody has removed it
	}
	if !made {
		return in, nil
	}
	self, err := in.root.Open(".")
	if err != nil {
		return in, err
	}
	return in, errors.Join(f.give(self), self.Close())
}

// give gives what root has made in the folder to the owner of the folder.
func (f folder) give(made *os.File) error {
	in, err := f.root.Stat(".")
	if err == nil {
		owner.Give(made, in)
	}
	return err
}

// makeFolder makes a folder, unless it is there, and opens it.
func makeFolder(path string) (folder, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return folder{}, err
	}
	parent, err := openFolder(filepath.Dir(path))
	if err != nil {
		return folder{}, err
	}
	defer parent.close()
	if parent.root == nil {
		return folder{}, fs.ErrNotExist // somebody has removed it
	}
	return parent.makeIn(filepath.Base(path))
}

// isOther reports whether something is there that is no file, such as a link: it is not ours.
func (f folder) isOther(name string) bool {
	if f.root == nil {
		return false
	}
	info, err := f.root.Lstat(name)
	return err == nil && !info.Mode().IsRegular() || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// read reads a small file; there is false if it does not exist.
func (f folder) read(name string) (content []byte, there bool, err error) {
	if f.root == nil {
		return nil, false, nil
	}
	path := filepath.Join(f.path, name)
	named, err := f.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if !named.Mode().IsRegular() {
		return nil, true, task.Errorf(task.DataDir, "%s is a link, or no file", path).WithHint("see who has put it there, and move it away")
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, true, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	if opened, err := file.Stat(); err != nil || !os.SameFile(named, opened) {
		return nil, true, errors.Join(task.Errorf(task.DataDir, "%s was replaced while it was read", path), err)
	}
	content, err = io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = task.Errorf(task.TooLarge, "%s is larger than %d KiB", path, maxFile>>10)
	}
	return content, true, err
}

// write writes a file for nobody else to read, so that it is there whole or not at all, also after
// a power cut. It takes the place of a link. What root writes belongs to the owner of the folder.
func (f folder) write(name string, content []byte) (err error) {
	draft := draftStart + rand.Text() + draftEnd
	file, err := f.root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.root.Remove(draft))
		}
	}()
	err = f.give(file)
	if err == nil {
		_, err = file.Write(content)
	}
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return err
	}
	return f.root.Rename(draft, name)
}

// remove removes a file, if it is there.
func (f folder) remove(name string) error {
	if f.root == nil {
		return nil
	}
	if err := f.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeDrafts removes what a write has left behind that was killed: a secret may be in it.
func (f folder) removeDrafts() error {
	if f.root == nil {
		return nil
	}
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return nil //nolint:nilerr // it is not ours
	}
	for _, entry := range entries {
		if !isDraft(entry) {
			continue
		}
		if err := f.remove(entry.Name()); err != nil {
			return task.Wrap(task.DataDir, err, draftStays)
		}
	}
	return nil
}

// secretFolder is where the files with secrets are, in the data directory.
const secretFolder = "secrets"

// ignoreFile and ignoreAll keep the secrets out of a repository that the data directory is in.
const (
	ignoreFile = ".gitignore"
	ignoreAll  = "*\n"
)

// secrets opens the folder with secrets of a data directory, if it is there.
func (f folder) secrets() (folder, error) { return f.openIn(secretFolder) }

// writeSecret writes a file with a secret, in a folder that only we can read.
func (f folder) writeSecret(name, secret string) error {
	secrets, err := f.makeIn(secretFolder)
	defer secrets.close()
	if err != nil {
		return task.Wrap(task.DataDir, err, "the folder of the secrets cannot be made")
	}
	if err := secrets.root.Chmod(".", 0o700); err != nil {
		return task.Wrap(task.DataDir, err, "the folder of the secrets cannot be closed to others")
	}
	if _, err := secrets.root.Lstat(ignoreFile); errors.Is(err, fs.ErrNotExist) {
		if err := secrets.write(ignoreFile, []byte(ignoreAll)); err != nil {
			return task.Wrap(task.DataDir, err, "the folder of the secrets cannot be written to")
		}
	}
	if err := secrets.write(name, []byte(secret+"\n")); err != nil {
		return task.Wrap(task.DataDir, err, "a secret cannot be written")
	}
	return nil
}

// readSecret reads a file of the folder with secrets; there is false if it does not exist.
func (f folder) readSecret(name string) (secret string, there bool, err error) {
	content, there, err := f.read(name)
	if err != nil {
		return "", there, task.Wrap(task.DataDir, err, "a secret cannot be read")
	}
	return string(bytes.TrimRight(content, "\r\n")), there, nil
}

// removeSecret removes a file with a secret, and its folder when that is empty then.
func (f folder) removeSecret(name string) error {
	secrets, err := f.secrets()
	defer secrets.close()
	if err != nil || secrets.root == nil {
		return err
	}
	if err := secrets.remove(name); err != nil {
		return task.Wrap(task.DataDir, err, "a secret cannot be removed")
	}
	left, err := fs.ReadDir(secrets.root.FS(), ".")
	if err != nil || len(left) != 1 || left[0].Name() != ignoreFile {
		return nil // a folder that stays does no harm
	}
	if content, _, err := secrets.read(ignoreFile); err != nil || string(content) != ignoreAll {
		return nil // it is not ours
	}
	if err := errors.Join(secrets.remove(ignoreFile), f.remove(secretFolder)); err != nil {
		return task.Wrap(task.DataDir, err, "the folder of the secrets cannot be removed")
	}
	return nil
}
