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
	// mostTries is how often a folder is emptied in which something is made meanwhile.
	mostTries = 100
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

// RemoveAll removes what has the name, with everything below it. What is not there
// is not an error.
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
	moved  atomic.Int64
	beside chan struct{} // has one for each that goes on beside the first
}

// empty removes everything in a folder, which is at a path below the top.
func (r *remover) empty(in *os.Root, at string, depth int) error {
	for tries := 0; tries < mostTries; {
		names, err := someNames(in)
		if err != nil || len(names) == 0 {
			return err
		}
		moved := r.moved.Load()
		if err := r.all(in, at, names, depth); err != nil {
			return err
		}
		switch {
		case len(names) == part: // there may be more
		case depth > 0:
			return nil
		case r.moved.Load() == moved: // else folders were moved to the top
			tries++
		}
	}
	return nil // to remove it says that it is not empty
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
		return r.top.Rename(path.Join(at, name), fmt.Sprintf(".removed-%s-%d", rand.Text(), r.moved.Add(1)))
	}
	for range mostTries {
		if err := r.emptyFolder(in, at, name, info, depth); err != nil {
			return err
		}
		// Something that was made there meanwhile is removed too.
		if removed = in.Remove(name); !errors.Is(removed, syscall.ENOTEMPTY) {
			return removed
		}
	}
	return removed
}

// emptyFolder removes what is in the folder that has the name.
func (r *remover) emptyFolder(in *os.Root, at, name string, info fs.FileInfo, depth int) error {
	below, err := enter(in, name, info)
	if err != nil {
		return err
	}
	return errors.Join(r.empty(below, path.Join(at, name), depth+1), below.Close())
}
