package site

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// GiveToOwner gives what root has made in a data directory to the owner of the directory: a server
// that runs as another user has to write to it. Names are of files and folders in the directory; one
// that is not there is passed over. Root may lack the right to do so, as in a container without
// capabilities.
func GiveToOwner(dataDir string, names ...string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	// The owner may put links there at any time, which the root of a folder does not follow.
	folder, err := os.OpenRoot(dataDir)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }() // nothing was written through it
	info, err := folder.Stat(".")
	if err != nil {
		return err
	}
	owner, is := info.Sys().(*syscall.Stat_t)
	if !is || owner.Uid == 0 {
		return nil
	}
	for _, name := range names {
		err := fs.WalkDir(folder.FS(), name, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				err = giveTo(folder, path, owner)
			}
			if errors.Is(err, fs.ErrNotExist) { // whoever writes at the same time may have removed it
				return nil
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// giveTo gives one file or folder away. A file of root that has another name too may be one that root
// did not make here.
func giveTo(folder *os.Root, path string, owner *syscall.Stat_t) error {
	info, err := folder.Lstat(path)
	if err != nil {
		return err
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is || stat.Uid != 0 || !info.IsDir() && stat.Nlink > 1 {
		return nil
	}
	return folder.Lchown(path, int(owner.Uid), int(owner.Gid))
}
