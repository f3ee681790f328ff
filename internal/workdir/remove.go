package workdir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"
)

const (
	// removedAtOnce is how deep folders are removed from inside. What is deeper is
	// moved up first, so that a chain of any length takes no more memory and no more
	// open files than a short one: so many for each processor.
	removedAtOnce = 32
	// mostMade is how often something is found that was made while the removal went on.
	mostMade = 1000
)

// Remove removes a folder and everything in it, also folders that may not be
// written to. What is not there is not an error.
func Remove(dir string) error {
	above, err := os.OpenRoot(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = above.Close() }()
	if err := (&Dir{above}).RemoveAll(filepath.Base(dir)); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

// errStillMade is why a removal ends that would go on for as long as a program makes files.
var errStillMade = errors.New("files are made in it while it is removed")

// RemoveAll removes what has the name, with everything below it. What is not there
// is not an error. What is made there meanwhile is removed too, but not without end: a removal
// that finds something new again and again fails.
func (f *Dir) RemoveAll(name string) error {
	info, err := f.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f.root.Remove(name)
	}
	top, err := enter(f.root, name, info)
	if err != nil {
		return err
	}
	r := remover{top: top, beside: make(chan struct{}, max(runtime.GOMAXPROCS(0)-1, 0))}
	if err := errors.Join(r.empty(top, ".", 0), top.Close()); err != nil {
		return err
	}
	return f.root.Remove(name)
}

// enter opens a folder that is about to go, also one that may not be entered.
func enter(in *os.Root, name string, info fs.FileInfo) (*os.Root, error) {
	if err := allow(in, name, info); err != nil {
		return nil, err
	}
	return openRoot(in, name)
}

func allow(in *os.Root, name string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o700 == 0o700 {
		return nil
	}
	return in.Chmod(name, 0o700)
}

// remover removes what is in a folder. As many folders are removed at a time as there are processors.
type remover struct {
	top    *os.Root
	moved  atomic.Int64  // how many folders were moved to the top
	made   atomic.Int64  // how often something was found that was made meanwhile
	beside chan struct{} // has one for each that goes on beside the first
}

// empty removes everything in a folder, which is at a path below the top. It lists some names at a time.
// Those beyond as many as it had at first, and were moved there, were made meanwhile.
func (r *remover) empty(in *os.Root, at string, depth int) error {
	names, err := someNames(in)
	if err != nil {
		return err
	}
	left, err := countNames(in, names)
	if err != nil {
		return err
	}
	for moved := int64(0); len(names) > 0; {
		if depth == 0 {
			left, moved = left+r.moved.Load()-moved, r.moved.Load()
		}
		left -= int64(len(names))
		if err := r.note(max(-left, 0)); err != nil {
			return err
		}
		left = max(left, 0)
		if err := r.all(in, at, names, depth); err != nil {
			return err
		}
		if len(names) < part && depth > 0 {
			return nil // to remove it says whether there is something again
		}
		if names, err = someNames(in); err != nil {
			return err
		}
	}
	return nil
}

// note notes that something was found so often that was made meanwhile.
func (r *remover) note(often int64) error {
	if r.made.Add(often) > mostMade {
		return errStillMade
	}
	return nil
}

// all removes what has the names.
func (r *remover) all(in *os.Root, at string, names []string, depth int) error {
	var beside errgroup.Group
	for _, name := range names {
		remove := func() error {
			if err := r.one(in, at, name, depth); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		select {
		case r.beside <- struct{}{}:
			beside.Go(func() error {
				defer func() { <-r.beside }()
				return remove()
			})
		default:
			if err := remove(); err != nil {
				return errors.Join(err, beside.Wait())
			}
		}
	}
	return beside.Wait()
}

// someNames are the first names in a folder.
func someNames(in *os.Root) ([]string, error) {
	opened, err := in.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }() // it was only read
	names, err := opened.Readdirnames(part)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// countNames is how many names a folder has, of which some are known. To read them takes little of the
// time that it takes to remove what has them.
func countNames(in *os.Root, some []string) (int64, error) {
	if len(some) < part {
		return int64(len(some)), nil
	}
	opened, err := in.Open(".")
	if err != nil {
		return 0, err
	}
	defer func() { _ = opened.Close() }() // it was only read
	for count := int64(0); ; {
		names, err := opened.Readdirnames(1024)
		count += int64(len(names))
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// one removes what has the name. Most things are files, of which nothing need be known.
func (r *remover) one(in *os.Root, at, name string, depth int) error {
	removed := in.Remove(name)
	if removed == nil || errors.Is(removed, fs.ErrNotExist) {
		return removed
	}
	info, err := in.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return removed
	}
	if depth >= removedAtOnce {
		if err := allow(in, name, info); err != nil {
			return err
		}
		r.moved.Add(1)
		return r.top.Rename(path.Join(at, name), ".removed-"+rand.Text())
	}
	for {
		if err := r.emptyFolder(in, at, name, info, depth); err != nil {
			return err
		}
		if removed = in.Remove(name); !errors.Is(removed, syscall.ENOTEMPTY) {
			return removed
		}
		if err := r.note(1); err != nil {
			return err
		}
	}
}

// emptyFolder removes what is in the folder that has the name.
func (r *remover) emptyFolder(in *os.Root, at, name string, info fs.FileInfo, depth int) error {
	below, err := enter(in, name, info)
	if err != nil {
		return err
	}
	return errors.Join(r.empty(below, path.Join(at, name), depth+1), below.Close())
}
