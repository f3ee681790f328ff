//go:build unix

package owner

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Of is the owner of a file or folder; known is false if the file system has none.
func Of(info fs.FileInfo) (uid, gid int, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, 0, false
	}
	return int(stat.Uid), int(stat.Gid), true
}

// Give gives an open file or folder to the owner of the folder that it is in, if root runs this.
func Give(made *os.File, in fs.FileInfo) {
	if os.Geteuid() != 0 {
		return
	}
	if uid, gid, known := Of(in); known {
		_ = made.Chown(uid, gid) // see the package comment
	}
}

// GiveTree gives everything of root's below the names in a folder to the owner of the folder, if root
// runs this. A name that is not there is passed over.
func GiveTree(path string, names ...string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	folder, err := os.OpenRoot(path) // follows no link that leads out
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }() // nothing was written through it
	info, err := folder.Stat(".")
	if err != nil {
		return err
	}
	uid, gid, known := Of(info)
	if !known || uid == 0 {
		return nil
	}
	for _, name := range names {
		err := fs.WalkDir(folder.FS(), name, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				err = giveOne(folder, path, uid, gid)
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

// giveOne gives one file or folder of root's away. A file that has another name too may be one that
// root did not make here.
func giveOne(folder *os.Root, path string, uid, gid int) error {
	info, err := folder.Lstat(path)
	if err != nil {
		return err
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is || stat.Uid != 0 || !info.IsDir() && stat.Nlink > 1 {
		return nil
	}
	return folder.Lchown(path, uid, gid)
}
