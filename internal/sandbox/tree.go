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

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Listing is the set of paths that a workspace had at one moment.
type Listing map[string]bool

// mostNames bounds the memory that a listing takes: a workspace with more files
// than this is refused.
const mostNames = 64 << 20 // bytes of all paths

// List returns what is in a folder, without following links.
func List(dir string) (Listing, error) {
	listing := Listing{}
	size := 0
	err := workdir.Walk(dir, func(name string, _ fs.DirEntry) error {
		listing[name] = true
		if size += len(name); size > mostNames {
			return task.Errorf(task.TooLarge, "the workspace has too many files to be listed")
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, task.Wrap(task.NotFound, err, "the folder cannot be listed")
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	return listing, nil
}

// Added names what is in a folder and was not when it was listed. A new folder
// stands for all that is in it.
func Added(dir string, before Listing) ([]string, error) {
	var added []string
	size := 0
	err := workdir.Walk(dir, func(name string, entry fs.DirEntry) error {
		if before[name] {
			return nil
		}
		added = append(added, name)
		if size += len(name); size > mostNames {
			return task.Errorf(task.TooLarge, "too many files were added to the workspace")
		}
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	slices.Sort(added)
	return added, nil
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
	source, err := workdir.Open(from)
	if err != nil {
		return 0, task.Wrap(task.NotFound, err, "the folder to copy from cannot be opened")
	}
	defer func() { _ = source.Close() }()
	target, err := workdir.Open(to)
	if err != nil {
		return 0, task.Wrap(task.NotFound, err, "the folder to copy to cannot be opened")
	}
	defer func() { _ = target.Close() }()
	return copyRoots(source, target, how)
}

func copyRoots(source, target *workdir.Dir, how Copying) (int64, error) {
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
func (c *copyJob) folder(source, target *workdir.Dir, at string, made bool) error {
	return source.Each(func(entry fs.DirEntry) error {
		below := path.Join(at, entry.Name())
		if len(below) > workdir.Deepest || c.how.Skip != nil && c.how.Skip(below) {
			return nil
		}
		free := made
		if !made {
			var err error
			if free, err = c.makeWay(target, entry); err != nil {
				return err
			}
		}
		if free || entry.IsDir() {
			return c.entry(source, target, below, entry, free)
		}
		return nil
	})
}

// makeWay reports whether an entry has to be made. What is in the way is removed,
// unless it is to be left: but for a folder, which is filled up.
func (c *copyJob) makeWay(target *workdir.Dir, entry fs.DirEntry) (free bool, err error) {
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

func (c *copyJob) entry(source, target *workdir.Dir, at string, entry fs.DirEntry, free bool) error {
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
		return target.Lchown(name, c.how.Owner)
	case entry.Type().IsRegular():
		size, err := copyRegular(source, target, name, c.how.Owner)
		c.total.Add(size)
		return err
	}
	return nil
}

func (c *copyJob) subfolder(source, target *workdir.Dir, at string, entry fs.DirEntry, free bool) error {
	name := entry.Name()
	if !free {
		if there, err := target.Lstat(name); err != nil || !there.IsDir() {
			return err // something else is there, and stays
		}
	} else if err := target.Mkdir(name, 0o700); err != nil {
		return err
	}
	from, err := source.Sub(name)
	if err != nil {
		return err
	}
	to, err := target.Sub(name)
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
func (c *copyJob) finish(source, made *workdir.Dir) error {
	info, err := source.Stat(".")
	if err != nil {
		return err
	}
	if c.how.Owner > 0 {
		if err := made.Lchown(".", c.how.Owner); err != nil {
			return err
		}
	}
	return made.Root().Chmod(".", info.Mode().Perm())
}

// copyRegular copies a file that is not in the target yet, with mode and time.
func copyRegular(source, target *workdir.Dir, name string, owner int) (int64, error) {
	from, info, err := source.OpenFile(name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = from.Close() }() // it was only read
	to, err := target.Create(name, 0o600)
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
	return size, target.Root().Chtimes(name, info.ModTime(), info.ModTime())
}

// RemoveTree removes a folder and everything in it. See [workdir.Remove].
func RemoveTree(dir string) error { return workdir.Remove(dir) }

// RemoveAdded removes from a folder what a listing of it does not name.
func RemoveAdded(dir string, listing Listing) error {
	added, err := Added(dir, listing)
	if err != nil {
		return err
	}
	opened, err := workdir.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	for _, name := range added {
		if err := opened.RemoveAll(name); err != nil {
			return fmt.Errorf("remove what was added to %s: %w", dir, err)
		}
	}
	return nil
}

// LeastSize is what a file or folder takes of a disk at the least, however empty.
const LeastSize = 4096

// TreeSize is how many bytes a folder and everything in it may come to take on a
// disk. A file with holes in it counts as if they were filled: a copy fills them.
func TreeSize(dir string) int64 {
	opened, err := workdir.Open(dir)
	if err != nil {
		return 0 // it went
	}
	defer func() { _ = opened.Close() }()
	return SizeBelow(opened)
}

// SizeBelow is the same for a folder that is open.
func SizeBelow(dir *workdir.Dir) int64 {
	var total int64
	_ = dir.Walk(func(_ string, entry fs.DirEntry) error {
		size := int64(LeastSize)
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size = max(size, info.Size())
		}
		total += size
		return nil
	}) // what cannot be read went while we looked
	return total
}

// CopyIn puts a file or folder of the host into the workspace, under a path that
// is relative to it.
func CopyIn(workspace, from, to string, owner int) error {
	root, err := workdir.Open(workspace)
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
		above, err := workdir.Open(filepath.Dir(from))
		if err != nil {
			return task.Wrap(task.NotFound, err, "what to copy in cannot be opened")
		}
		defer func() { _ = above.Close() }()
		return copyFile(above, filepath.Base(from), root, to, owner)
	}
	inner, err := root.Sub(to)
	if err != nil {
		return task.Wrap(task.Invalid, err, "the path leads out of the workspace")
	}
	defer func() { _ = inner.Close() }()
	source, err := workdir.Open(from)
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
	root, err := workdir.Open(workspace)
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
		inner, err := root.Sub(from)
		if err != nil {
			return task.Wrap(task.Invalid, err, "the path leads out of the workspace")
		}
		defer func() { _ = inner.Close() }()
		if err := os.MkdirAll(to, 0o750); err != nil {
			return err
		}
		outside, err := workdir.Open(to)
		if err != nil {
			return err
		}
		defer func() { _ = outside.Close() }()
		_, err = copyRoots(inner, outside, Copying{})
		return err
	}
	outside, err := workdir.Open(filepath.Dir(to))
	if err != nil {
		return task.Wrap(task.NotFound, err, "the folder to copy to cannot be opened")
	}
	defer func() { _ = outside.Close() }()
	return copyFile(root, from, outside, filepath.Base(to), 0)
}

func makeFolders(root *workdir.Dir, to string, itself bool, owner int) error {
	to = path.Clean(filepath.ToSlash(to))
	var chain []string
	if itself {
		chain = append(chain, to)
	}
	for parent := path.Dir(to); parent != "." && parent != "/"; parent = path.Dir(parent) {
		chain = append(chain, parent)
	}
	for _, above := range slices.Backward(chain) {
		err := root.Mkdir(above, 0o755) // as git makes them
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if owner > 0 {
			if err := root.Lchown(above, owner); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyFile(from *workdir.Dir, name string, root *workdir.Dir, to string, owner int) error {
	source, info, err := from.OpenFile(name)
	if err != nil {
		return task.Wrap(task.NotFound, err, "the file cannot be read")
	}
	defer func() { _ = source.Close() }() // it was only read
	target, err := root.Overwrite(to, info.Mode().Perm())
	if err != nil {
		return task.Wrap(task.Invalid, err, "the path cannot be written")
	}
	_, err = io.Copy(target, source)
	if err := errors.Join(err, target.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	if owner > 0 {
		return root.Lchown(to, owner)
	}
	return nil
}
