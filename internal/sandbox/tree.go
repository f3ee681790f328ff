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

const copiesAtOnce = 8

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
	job := &copyJob{source: source, target: target, how: how}
	job.files.SetLimit(copiesAtOnce)
	walked := fs.WalkDir(source.FS(), ".", job.visit)
	copied := job.files.Wait()
	if err := errors.Join(walked, copied); err != nil {
		return 0, fmt.Errorf("copy %s to %s: %w", source.Name(), target.Name(), err)
	}
	return job.total, job.finishFolders()
}

type copyJob struct {
	source, target *os.Root
	how            Copying
	files          errgroup.Group
	folders        []folderMode
	total          int64
}

type folderMode struct {
	name string
	mode fs.FileMode
}

func (c *copyJob) visit(name string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if name == "." {
		return nil
	}
	if c.how.Skip != nil && c.how.Skip(name) {
		return skip(entry)
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if there, err := c.target.Lstat(name); err == nil {
		if there.IsDir() && entry.IsDir() {
			return nil
		}
		if c.how.KeepThere {
			return skip(entry)
		}
		if err := c.target.RemoveAll(name); err != nil {
			return err
		}
	}
	return c.copy(name, entry, info)
}

// skip leaves out an entry and what is below it.
func skip(entry fs.DirEntry) error {
	if entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func (c *copyJob) copy(name string, entry fs.DirEntry, info fs.FileInfo) error {
	switch {
	case entry.IsDir():
		c.folders = append(c.folders, folderMode{name, info.Mode().Perm()})
		if err := c.target.Mkdir(name, 0o700); err != nil {
			return err
		}
		return c.own(name)
	case info.Mode()&fs.ModeSymlink != 0:
		points, err := c.source.Readlink(name)
		if err != nil {
			return err
		}
		if err := c.target.Symlink(points, name); err != nil {
			return err
		}
		return c.own(name)
	case info.Mode().IsRegular():
		c.total += info.Size()
		c.files.Go(func() error { return c.file(name, info) })
	}
	return nil
}

func (c *copyJob) file(name string, info fs.FileInfo) error {
	from, _, err := openRegular(c.source, name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	to, err := c.target.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Chmod(info.Mode().Perm()), to.Close()); err != nil {
		return err
	}
	if err := c.target.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	return c.own(name)
}

func (c *copyJob) own(name string) error {
	if c.how.Owner <= 0 {
		return nil
	}
	return c.target.Lchown(name, c.how.Owner, c.how.Owner)
}

// finishFolders sets the modes of folders, deepest first: some may not be
// written to, and could not be filled otherwise.
func (c *copyJob) finishFolders() error {
	for _, folder := range slices.Backward(c.folders) {
		if err := c.target.Chmod(folder.name, folder.mode); err != nil {
			return err
		}
	}
	return nil
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
