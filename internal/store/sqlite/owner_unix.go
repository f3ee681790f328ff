//go:build unix

package sqlite

import (
	"os"
	"path/filepath"
	"syscall"
)

// giveToOwner gives a file that root has made to the owner of the folder that it is in. Root may
// lack the right to do so, as in a container without capabilities: then the server says that it
// cannot use the file.
func giveToOwner(file *os.File) {
	if os.Geteuid() != 0 {
		return
	}
	info, err := os.Stat(filepath.Dir(file.Name()))
	if err != nil {
		return
	}
	if owner, is := info.Sys().(*syscall.Stat_t); is {
		_ = file.Chown(int(owner.Uid), int(owner.Gid)) // see above
	}
}
