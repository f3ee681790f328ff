package workdir

import "io/fs"

// MinSize is what a file or folder takes of a disk at the least, however empty.
const MinSize = 4096

// TreeSize is how many bytes a folder and everything in it may come to take on a
// disk. A file with holes in it counts as if they were filled: a copy fills them.
func TreeSize(dir string) int64 {
	opened, err := Open(dir)
	if err != nil {
		return 0 // it went
	}
	defer func() { _ = opened.Close() }()
	return opened.TreeSize()
}

// TreeSize is the same for a folder that is open.
func (f *Dir) TreeSize() int64 {
	var total int64
	_ = f.Walk(func(_ string, entry fs.DirEntry) error {
		size := int64(MinSize)
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size = max(size, info.Size())
		}
		total += size
		return nil
	}) // what cannot be read went while we looked
	return total
}
