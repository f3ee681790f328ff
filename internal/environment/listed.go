package environment

import (
	"io/fs"
	"slices"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// onlyListed is the part of a file system that a listing names: the project as it
// was, without what set-up added.
type onlyListed struct {
	fs.FS
	listing workdir.Listing
}

// ReadDir leaves out what is not listed.
func (o onlyListed) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(o.FS, name)
	return slices.DeleteFunc(entries, func(entry fs.DirEntry) bool {
		path := entry.Name()
		if name != "." {
			path = name + "/" + path
		}
		return !o.listing[path]
	}), err
}
