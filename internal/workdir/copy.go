package workdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/task"
)

// CopyOptions says how a tree is copied.
type CopyOptions struct {
	Skip         func(name string) bool // leaves out a path and everything below it; may be nil
	KeepExisting bool                   // what is in the target already is left as it is
	Owner        int                    // who owns the copies, when above 0
	Room         *Room                  // for the copies; nil for as much as there is
}

// Room is how many bytes copies may take of a disk, as [TreeSize] counts them. Several copies may share one.
type Room struct{ left atomic.Int64 }

// NewRoom is room for so many bytes.
func NewRoom(bytes int64) *Room {
	made := &Room{}
	made.left.Store(bytes)
	return made
}

// ErrNoRoom is the error of a copy that would take more than its [Room].
var ErrNoRoom = errors.New("there is more to copy than may be")

// take takes some of the room, if there is as much.
func (r *Room) take(bytes int64) error {
	if r == nil {
		return nil
	}
	for {
		left := r.left.Load()
		if bytes > left {
			return ErrNoRoom
		}
		if r.left.CompareAndSwap(left, left-bytes) {
			return nil
		}
	}
}

const (
	foldersAtOnce = 8
	// copiedAtOnce is how much of a file is copied before it is asked again whether to go on.
	copiedAtOnce = 16 << 20
)

// CopyTree copies what is in one folder into another. Both are fences: no link
// and no ".." leads out of them, for they are opened as roots. Links are copied
// as they are and never followed; devices, pipes and sockets are left out. A file
// is copied as long as it is when it is opened. When the context ends, so does the
// copy, with what was copied until then. It returns the number of bytes copied.
func CopyTree(ctx context.Context, from, to string, options CopyOptions) (int64, error) {
	source, err := Open(from)
	if err != nil {
		return 0, task.Wrap(task.NotFound, err, "the folder to copy from cannot be opened")
	}
	defer func() { _ = source.Close() }()
	target, err := Open(to)
	if err != nil {
		return 0, task.Wrap(task.NotFound, err, "the folder to copy to cannot be opened")
	}
	defer func() { _ = target.Close() }()
	job := &copyJob{options: options}
	job.folders.SetLimit(foldersAtOnce)
	walked := job.folder(ctx, source, target, ".", false)
	if err := errors.Join(walked, job.folders.Wait()); err != nil {
		return 0, fmt.Errorf("copy %s to %s: %w", source.Name(), target.Name(), err)
	}
	return job.total.Load(), nil
}

// copyJob copies folder by folder, several at a time. Each folder is opened once,
// so that a file in it costs no walk from the top.
type copyJob struct {
	options CopyOptions
	folders errgroup.Group
	total   atomic.Int64
}

// folder copies what is in a folder. At is its path, and made says that the target
// is new, so that nothing can be in the way.
func (c *copyJob) folder(ctx context.Context, source, target *Dir, at string, made bool) error {
	return source.Each(func(entry fs.DirEntry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		below := path.Join(at, entry.Name())
		if len(below) > Deepest || c.options.Skip != nil && c.options.Skip(below) {
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
			return c.entry(ctx, source, target, below, entry, free)
		}
		return nil
	})
}

// makeWay reports whether an entry has to be made. What is in the way is removed,
// unless it is to be left: but for a folder, which is filled up.
func (c *copyJob) makeWay(target *Dir, entry fs.DirEntry) (free bool, err error) {
	there, err := target.Lstat(entry.Name())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case there.IsDir() && entry.IsDir():
		return false, nil
	case c.options.KeepExisting:
		return false, nil
	}
	return true, target.RemoveAll(entry.Name())
}

func (c *copyJob) entry(ctx context.Context, source, target *Dir, at string, entry fs.DirEntry, free bool) error {
	name := entry.Name()
	if !entry.Type().IsRegular() {
		if err := c.options.Room.take(MinSize); err != nil {
			return err
		}
	}
	switch {
	case entry.IsDir():
		return c.subfolder(ctx, source, target, at, entry, free)
	case entry.Type()&fs.ModeSymlink != 0:
		points, err := source.Readlink(name)
		if err == nil {
			err = target.Symlink(points, name)
		}
		if err != nil || c.options.Owner <= 0 {
			return err
		}
		return target.Lchown(name, c.options.Owner)
	case entry.Type().IsRegular():
		size, err := c.regular(ctx, source, target, name)
		c.total.Add(size)
		return err
	}
	return nil
}

func (c *copyJob) subfolder(ctx context.Context, source, target *Dir, at string, entry fs.DirEntry, free bool) error {
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
		err := c.folder(ctx, from, to, at, free)
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
func (c *copyJob) finish(source, made *Dir) error {
	info, err := source.Stat(".")
	if err != nil {
		return err
	}
	if c.options.Owner > 0 {
		if err := made.Lchown(".", c.options.Owner); err != nil {
			return err
		}
	}
	return made.Root().Chmod(".", info.Mode().Perm())
}

// regular copies a file that is not in the target yet, with mode and time.
func (c *copyJob) regular(ctx context.Context, source, target *Dir, name string) (int64, error) {
	from, info, err := source.OpenFile(name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = from.Close() }() // it was only read
	if err := c.options.Room.take(max(MinSize, info.Size())); err != nil {
		return 0, err
	}
	to, err := target.Create(name, 0o600)
	if err != nil {
		return 0, err
	}
	size, err := copyContent(ctx, to, from, info.Size())
	if owner := c.options.Owner; owner > 0 && err == nil {
		err = to.Chown(owner, owner)
	}
	if err := errors.Join(err, to.Chmod(info.Mode().Perm()), to.Close()); err != nil {
		return 0, err
	}
	return size, target.Root().Chtimes(name, info.ModTime(), info.ModTime())
}

// copyContent copies up to so many bytes: the file may grow meanwhile, for which no room was taken.
func copyContent(ctx context.Context, to io.Writer, from io.Reader, most int64) (int64, error) {
	var copied int64
	for copied < most {
		if err := ctx.Err(); err != nil {
			return copied, err
		}
		n, err := io.CopyN(to, from, min(copiedAtOnce, most-copied))
		copied += n
		if errors.Is(err, io.EOF) { // it got shorter
			return copied, nil
		}
		if err != nil {
			return copied, err
		}
	}
	return copied, nil
}
