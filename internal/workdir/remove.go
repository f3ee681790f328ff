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
	// mostMade is how many names are removed that were made while the removal went on.
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
// is not an error. Something that is made there meanwhile is removed too, up to a number:
// then it fails, so that no program can hold whoever removes.
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
	if err := errors.Join(r.empty(top, folder{name: "."}), top.Close()); err != nil {
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
	moved  atomic.Int64  // to the top, of what was there at first
	made   atomic.Int64  // names that were removed and were not there at first
	beside chan struct{} // has one for each that goes on beside the first
}

// folder is one that is emptied.
type folder struct {
	name  string // its path below the top
	depth int
	made  bool // meanwhile, so that all in it was too
}

// empty removes everything in a folder. Names beyond those that it had when it was listed first
// were made meanwhile, or as many were.
func (r *remover) empty(in *os.Root, at folder) error {
	var first, moved int64 // how many of the first names are left, and how many names were moved here
	for again := at.made; ; again = true {
		names, err := someNames(in)
		if err != nil || len(names) == 0 {
			return err
		}
		if !again {
			if first, err = countNames(in, names); err != nil {
				return err
			}
		}
		if at.depth == 0 {
			first, moved = first+r.moved.Load()-moved, r.moved.Load()
		}
		first -= int64(len(names))
		of := folder{at.name, at.depth, first < 0}
		if err := r.note(-first); err != nil {
			return err
		}
		first = max(first, 0)
		if err := r.all(in, of, names); err != nil {
			return err
		}
		if len(names) < part && at.depth > 0 {
			return nil // to remove it says whether there is something again
		}
	}
}

// note notes that so many names were made meanwhile, if that is above 0.
func (r *remover) note(names int64) error {
	if r.made.Add(max(names, 0)) > mostMade {
		return errStillMade
	}
	return nil
}

// all removes what has the names. Of is the folder; whether it was made is said of the names.
func (r *remover) all(in *os.Root, of folder, names []string) error {
	var beside errgroup.Group
	for _, name := range names {
		remove := func() error {
			if err := r.one(in, of, name); !errors.Is(err, fs.ErrNotExist) {
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

// countNames is how many names a folder has that has some already. They are counted as they are read, which
// takes little of the time that it takes to remove them.
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
func (r *remover) one(in *os.Root, of folder, name string) error {
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
	if of.depth >= removedAtOnce {
		return r.moveUp(in, of, name, info)
	}
	at := folder{path.Join(of.name, name), of.depth + 1, of.made}
	for {
		if err := r.emptyFolder(in, name, at, info); err != nil {
			return err
		}
		if removed = in.Remove(name); !errors.Is(removed, syscall.ENOTEMPTY) {
			return removed
		}
		at.made = true
		if err := r.note(1); err != nil { // it may be empty whenever it is listed
			return err
		}
	}
}

// moveUp moves a folder to the top, which is emptied until nothing is in it.
func (r *remover) moveUp(in *os.Root, of folder, name string, info fs.FileInfo) error {
	if err := allow(in, name, info); err != nil {
		return err
	}
	if !of.made {
		r.moved.Add(1)
	}
	return r.top.Rename(path.Join(of.name, name), ".removed-"+rand.Text())
}

// emptyFolder removes what is in the folder that has the name.
func (r *remover) emptyFolder(in *os.Root, name string, at folder, info fs.FileInfo) error {
	below, err := enter(in, name, info)
	if err != nil {
		return err
	}
	return errors.Join(r.empty(below, at), below.Close())
}
