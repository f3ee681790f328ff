package workspace

import (
	"errors"
	"io/fs"
	"path"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// nearby looks at files of a workspace that are named folder by folder. It keeps the last folder
// open: from the top, the path to a file has to be walked for each file anew.
type nearby struct {
	root    *workdir.Dir
	folders map[string]bool // whether the path is a folder that is reached without a link
	at      string
	open    *workdir.Dir // nil for none
}

func newNearby(root *workdir.Dir) *nearby {
	return &nearby{root: root, folders: map[string]bool{".": true}}
}

// isFolder reports whether the path is a folder that is reached without a link.
func (n *nearby) isFolder(name string) (bool, error) {
	if is, seen := n.folders[name]; seen {
		return is, nil
	}
	is, err := n.isFolder(path.Dir(name))
	if err != nil {
		return false, err
	}
	if is {
		info, err := n.root.Lstat(name)
		if ofSystem(err) != nil { // it may be one
			return false, failure(err, "cannot look at the workspace")
		}
		is = err == nil && info.IsDir() || errors.Is(err, fs.ErrPermission) // it may be one, too; nothing in it can be opened
	}
	n.folders[name] = is
	return is, nil
}

// lstat describes what has the name.
func (n *nearby) lstat(name string) (fs.FileInfo, error) {
	dir, base := path.Split(name)
	if dir == "" {
		return n.root.Lstat(name)
	}
	if dir = path.Clean(dir); n.open == nil || n.at != dir {
		n.close()
		below, err := n.root.Sub(dir)
		if err != nil {
			return n.root.Lstat(name) // which says why it is not there
		}
		n.at, n.open = dir, below
	}
	return n.open.Lstat(base)
}

// close closes the folder that is open.
func (n *nearby) close() {
	if n.open != nil {
		_ = n.open.Close() // it was only looked through
		n.open = nil
	}
}

// lookAtAll notes what the files look like that were just checked out, so that the first scan need
// not read them: nothing but git has written to them yet.
func (w *Workspace) lookAtAll() error {
	return w.root.Walk(func(name string, entry fs.DirEntry) error {
		if entry.IsDir() {
			if name == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		was, tracked := w.tracked[name]
		if !tracked || was.mode != plainFile && was.mode != executable {
			return nil
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || modeOf(info) != was.mode {
			return nil //nolint:nilerr // then the scan says what is wrong with it
		}
		from := lookOf(info)
		from.certain = from.certain && w.now().Sub(from.changed) > settled
		w.seen[name] = sight{look: from, file: was}
		return nil
	})
}
