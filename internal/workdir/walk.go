package workdir

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
)

// part is how many names of a folder are held at once while it is walked.
const part = 64

// list reads up to MostListed names of a folder, and sorts them.
func (f *Dir) list(name string) ([]fs.DirEntry, error) {
	opened, err := f.openFolder(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }() // it was only read
	var all []fs.DirEntry
	for len(all) < MostListed {
		entries, err := opened.ReadDir(min(part, MostListed-len(all)))
		all = append(all, entries...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return all, err
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return all, nil
}

func (f *Dir) openFolder(name string) (*os.File, error) {
	file, _, err := f.open(name, os.O_RDONLY, 0, fs.FileMode.IsDir)
	return file, err
}

// Each calls visit for each thing in the folder, not for what is below, in no
// order. It holds few names at a time, so that a folder may have any number.
func (f *Dir) Each(visit func(entry fs.DirEntry) error) error {
	opened, err := f.openFolder(".")
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }() // it was only read
	for {
		entries, err := opened.ReadDir(part)
		for _, entry := range entries {
			if err := visit(entry); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Walk calls visit for the folder itself, whose name is ".", and for everything
// below, a folder before what is in it, otherwise in no order. Links are not
// followed. Visit returns [fs.SkipDir] to leave a folder out. What cannot be read
// is passed over, for it may have gone in the meantime, and so is what is deeper
// than [Deepest].
func (f *Dir) Walk(visit func(name string, entry fs.DirEntry) error) error {
	info, err := f.root.Lstat(".")
	if err != nil {
		return err
	}
	if err := visit(".", fs.FileInfoToDirEntry(info)); err != nil {
		return skipped(err)
	}
	return f.walk(".", visit)
}

func (f *Dir) walk(at string, visit func(name string, entry fs.DirEntry) error) error {
	var stop error
	_ = f.Each(func(entry fs.DirEntry) error { // it went, or may not be read
		stop = f.walkEntry(at, entry, visit)
		return stop
	})
	return stop
}

func (f *Dir) walkEntry(at string, entry fs.DirEntry, visit func(name string, entry fs.DirEntry) error) error {
	name := path.Join(at, entry.Name())
	if len(name) > Deepest {
		return nil
	}
	if err := visit(name, entry); err != nil {
		if entry.IsDir() {
			return skipped(err)
		}
		return err
	}
	if !entry.IsDir() {
		return nil
	}
	below, err := f.Sub(entry.Name())
	if err != nil {
		return nil // it went, or may not be entered
	}
	defer func() { _ = below.Close() }()
	return below.walk(name, visit)
}

func skipped(err error) error {
	if errors.Is(err, fs.SkipDir) {
		return nil
	}
	return err
}

// Walk walks a folder by its path.
func Walk(dir string, visit func(name string, entry fs.DirEntry) error) error {
	opened, err := Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	return opened.Walk(visit)
}

// Own makes a user the owner of a folder and of everything in it, as [Dir.Own] does.
// For the user 0 it does nothing: what this program makes as that one is its own already.
func Own(dir string, owner int) error {
	if owner == 0 {
		return nil
	}
	opened, err := Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	return opened.Own(owner)
}

// Own makes a user the owner of the folder and of everything in it. Links are not
// followed. What went in the meantime is passed over.
func (f *Dir) Own(owner int) error {
	if err := f.Lchown(".", owner); err != nil {
		return err
	}
	return f.own(0, owner)
}

func (f *Dir) own(length, owner int) error {
	return f.Each(func(entry fs.DirEntry) error {
		if err := f.Lchown(entry.Name(), owner); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		length := length + 1 + len(entry.Name())
		if !entry.IsDir() || length > Deepest {
			return nil
		}
		below, err := f.Sub(entry.Name())
		if err != nil {
			return nil // it went, or became something else
		}
		defer func() { _ = below.Close() }()
		return below.own(length, owner)
	})
}
