package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/task"
)

// Listing is the set of paths that a workspace had at one moment.
type Listing map[string]bool

// List returns what is in a folder, without following links.
func List(dir string) (Listing, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, task.Wrap(task.NotFound, err, "the folder cannot be listed")
	}
	defer func() { _ = root.Close() }()
	listing := Listing{}
	err = fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		listing[name] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	return listing, nil
}

// Copying says how a tree is copied.
type Copying struct {
	Skip      func(name string) bool // leaves out a path and everything below it; may be nil
	KeepThere bool                   // what is in the target already is left as it is
	Owner     int                    // who owns the copies, when above 0
}

const foldersAtOnce = 8

// CopyTree copies what is in one folder into another. Both are fences: no link
// and no ".." leads out of them, for they are opened as roots. Links are copied
// as they are and never followed; devices, pipes and sockets are left out.
// It returns the number of bytes copied.
func CopyTree(from, to string, how Copying) (int64, error) {
	source, err := os.OpenRoot(from)
	if err != nil {
		return 0, task.Wrap(task.NotFound, err, "the folder to copy from cannot be opened")
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenRoot(to)
	if err != nil {
		return 0, task.Wrap(task.NotFound, err, "the folder to copy to cannot be opened")
	}
	defer func() { _ = target.Close() }()
	return copyRoots(source, target, how)
}

func copyRoots(source, target *os.Root, how Copying) (int64, error) {
	job := &copyJob{how: how}
	job.folders.SetLimit(foldersAtOnce)
	walked := job.folder(source, target, ".", false)
	if err := errors.Join(walked, job.folders.Wait()); err != nil {
		return 0, fmt.Errorf("copy %s to %s: %w", source.Name(), target.Name(), err)
	}
	return job.total.Load(), nil
}

// copyJob copies folder by folder, several at a time. Each folder is opened once,
// so that a file in it costs no walk from the top.
type copyJob struct {
	how     Copying
	folders errgroup.Group
	total   atomic.Int64
}

// folder copies what is in a folder. At is its path, and made says that the target
// is new, so that nothing can be in the way.
func (c *copyJob) folder(source, target *os.Root, at string, made bool) error {
	entries, err := fs.ReadDir(source.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if c.how.Skip != nil && c.how.Skip(path.Join(at, name)) {
			continue
		}
		free := made
		if !made {
			if free, err = c.makeWay(target, entry); err != nil {
				return err
			}
		}
		if free || entry.IsDir() {
			if err := c.entry(source, target, path.Join(at, name), entry, free); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeWay reports whether an entry has to be made. What is in the way is removed,
// unless it is to be left: but for a folder, which is filled up.
func (c *copyJob) makeWay(target *os.Root, entry fs.DirEntry) (free bool, err error) {
	there, err := target.Lstat(entry.Name())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case there.IsDir() && entry.IsDir():
		return false, nil
	case c.how.KeepThere:
		return false, nil
	}
	return true, target.RemoveAll(entry.Name())
}

func (c *copyJob) entry(source, target *os.Root, at string, entry fs.DirEntry, free bool) error {
	name := entry.Name()
	switch {
	case entry.IsDir():
		return c.subfolder(source, target, at, entry, free)
	case entry.Type()&fs.ModeSymlink != 0:
		points, err := source.Readlink(name)
		if err == nil {
			err = target.Symlink(points, name)
		}
		if err != nil || c.how.Owner <= 0 {
			return err
		}
		return target.Lchown(name, c.how.Owner, c.how.Owner)
	case entry.Type().IsRegular():
		size, err := copyRegular(source, target, name, c.how.Owner)
		c.total.Add(size)
		return err
	}
	return nil
}

func (c *copyJob) subfolder(source, target *os.Root, at string, entry fs.DirEntry, free bool) error {
	name := entry.Name()
	if !free {
		if there, err := target.Lstat(name); err != nil || !there.IsDir() {
			return err // something else is there, and stays
		}
	} else if err := target.Mkdir(name, 0o700); err != nil {
		return err
	}
	from, err := source.OpenRoot(name)
	if err != nil {
		return err
	}
	to, err := target.OpenRoot(name)
	if err != nil {
		return errors.Join(err, from.Close())
	}
	fill := func() error {
		defer func() { _ = errors.Join(from.Close(), to.Close()) }() // folders, that were only looked through
		err := c.folder(from, to, at, free)
		if err != nil || !free {
			return err
		}
		return c.finish(from, to)
	}
	if c.folders.TryGo(fill) {
		return nil
	}
	return fill()
}

// finish gives a new folder its owner and its mode, which may be one that allows
// nothing to be put in.
func (c *copyJob) finish(source, made *os.Root) error {
	info, err := source.Stat(".")
	if err != nil {
		return err
	}
	if c.how.Owner > 0 {
		if err := made.Lchown(".", c.how.Owner, c.how.Owner); err != nil {
			return err
		}
	}
	return made.Chmod(".", info.Mode().Perm())
}

// copyRegular copies a file that is not in the target yet, with mode and time.
func copyRegular(source, target *os.Root, name string, owner int) (int64, error) {
	from, info, err := openRegular(source, name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = from.Close() }() // it was only read
	to, err := target.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(to, from)
	if owner > 0 && err == nil {
		err = to.Chown(owner, owner)
	}
	if err := errors.Join(err, to.Chmod(info.Mode().Perm()), to.Close()); err != nil {
		return 0, err
	}
	return size, target.Chtimes(name, info.ModTime(), info.ModTime())
}

// RemoveTree removes a folder and everything in it, also folders that may not be
// written to. What is not there is not an error.
func RemoveTree(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			if chmod := os.Chmod(name, 0o700); chmod != nil { //nolint:gosec // a folder, and about to go
				return chmod
			}
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make %s writable: %w", dir, err)
	}
	return os.RemoveAll(dir)
}

// RemoveAdded removes from a folder what a listing of it does not name.
func RemoveAdded(dir string, listing Listing) error {
	now, err := List(dir)
	if err != nil {
		return err
	}
	for name := range now {
		if !listing[name] && listing[path.Dir(name)] {
			if err := RemoveTree(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				return err
			}
		}
	}
	return nil
}

// TreeSize is how many bytes the regular files in a folder take on the disk.
func TreeSize(dir string) int64 {
	var total int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it went while we looked
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}

// CopyIn puts a file or folder of the host into the workspace, under a path that
// is relative to it.
func CopyIn(workspace, from, to string, owner int) error {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return task.Wrap(task.NotFound, err, "the workspace cannot be opened")
	}
	defer func() { _ = root.Close() }()
	info, err := os.Stat(from)
	if err != nil {
		return task.Wrap(task.NotFound, err, "what to copy in cannot be read")
	}
	if err := makeFolders(root, to, info.IsDir(), owner); err != nil {
		return task.Wrap(task.Invalid, err, "the path in the workspace cannot be written")
	}
	if !info.IsDir() {
		folder, err := os.OpenRoot(filepath.Dir(from))
		if err != nil {
			return task.Wrap(task.NotFound, err, "what to copy in cannot be opened")
		}
		defer func() { _ = folder.Close() }()
		return copyFile(folder, filepath.Base(from), root, to, owner)
	}
	inner, err := root.OpenRoot(to)
	if err != nil {
		return task.Wrap(task.Invalid, err, "the path leads out of the workspace")
	}
	defer func() { _ = inner.Close() }()
	source, err := os.OpenRoot(from)
	if err != nil {
		return task.Wrap(task.NotFound, err, "what to copy in cannot be opened")
	}
	defer func() { _ = source.Close() }()
	_, err = copyRoots(source, inner, Copying{Owner: owner})
	return err
}

// CopyOut copies a file or folder of the workspace to a path of the host that
// does not exist yet.
func CopyOut(workspace, from, to string) error {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return task.Wrap(task.NotFound, err, "the workspace cannot be opened")
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(from)
	if err != nil {
		return task.Wrap(task.NotFound, err, "the path is not in the workspace")
	}
	if _, err := os.Lstat(to); err == nil {
		return task.Errorf(task.Conflict, "%s exists already", to)
	}
	if info.IsDir() {
		inner, err := root.OpenRoot(from)
		if err != nil {
			return task.Wrap(task.Invalid, err, "the path leads out of the workspace")
		}
		defer func() { _ = inner.Close() }()
		if err := os.MkdirAll(to, 0o750); err != nil {
			return err
		}
		outside, err := os.OpenRoot(to)
		if err != nil {
			return err
		}
		defer func() { _ = outside.Close() }()
		_, err = copyRoots(inner, outside, Copying{})
		return err
	}
	outside, err := os.OpenRoot(filepath.Dir(to))
	if err != nil {
		return task.Wrap(task.NotFound, err, "the folder to copy to cannot be opened")
	}
	defer func() { _ = outside.Close() }()
	return copyFile(root, from, outside, filepath.Base(to), 0)
}

func makeFolders(root *os.Root, to string, itself bool, owner int) error {
	to = path.Clean(filepath.ToSlash(to))
	var chain []string
	if itself {
		chain = append(chain, to)
	}
	for parent := path.Dir(to); parent != "." && parent != "/"; parent = path.Dir(parent) {
		chain = append(chain, parent)
	}
	for _, folder := range slices.Backward(chain) {
		err := root.Mkdir(folder, 0o755) // as git makes them
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if owner > 0 {
			if err := root.Lchown(folder, owner, owner); err != nil {
				return err
			}
		}
	}
	return nil
}

// openRegular opens a regular file to read. A pipe in its place does not block.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = task.Errorf(task.Invalid, "%s is not a regular file", name)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func copyFile(from *os.Root, name string, root *os.Root, to string, owner int) error {
	source, info, err := openRegular(from, name)
	if err != nil {
		return task.Wrap(task.NotFound, err, "the file cannot be read")
	}
	defer func() { _ = source.Close() }() // it was only read
	target, err := root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return task.Wrap(task.Invalid, err, "the path cannot be written")
	}
	_, err = io.Copy(target, source)
	if err := errors.Join(err, target.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	if owner > 0 {
		return root.Lchown(to, owner, owner)
	}
	return nil
}
