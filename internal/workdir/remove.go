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
)

// removedAtOnce is how deep folders are removed from inside. What is deeper is
// moved up first, so that a chain of any length takes no more memory and no more
// open files than a short one.
const removedAtOnce = 32

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
	r := remover{top: top}
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

type remover struct {
	top   *os.Root
	moved int
}

// empty removes everything in a folder, which is at a path below the top.
func (r *remover) empty(in *os.Root, at string, depth int) error {
	for {
		names, err := someNames(in)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := r.one(in, at, name, depth); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
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

func (r *remover) one(in *os.Root, at, name string, depth int) error {
	info, err := in.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return in.Remove(name)
	}
	if depth >= removedAtOnce {
		if err := allow(in, name, info); err != nil {
			return err
		}
		r.moved++
		return r.top.Rename(path.Join(at, name), fmt.Sprintf(".removed-%s-%d", rand.Text(), r.moved))
	}
	below, err := enter(in, name, info)
	if err != nil {
		return err
	}
	if err := errors.Join(r.empty(below, path.Join(at, name), depth+1), below.Close()); err != nil {
		return err
	}
	return in.Remove(name)
}
