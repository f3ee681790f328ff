package workdir

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/toryo-dev/toryo/internal/task"
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
	err := Walk(dir, func(name string, _ fs.DirEntry) error {
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
	err := Walk(dir, func(name string, entry fs.DirEntry) error {
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

// RemoveAdded removes from a folder what a listing of it does not name.
func RemoveAdded(dir string, listing Listing) error {
	added, err := Added(dir, listing)
	if err != nil {
		return err
	}
	opened, err := Open(dir)
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
