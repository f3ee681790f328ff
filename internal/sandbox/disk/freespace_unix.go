//go:build unix

package disk

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// FreeSpace is the least free space of the file systems that the folders are on.
func FreeSpace(folders ...string) (int64, error) {
	var least int64 = -1
	for _, folder := range folders {
		var system unix.Statfs_t
		if err := unix.Statfs(folder, &system); err != nil {
			return 0, err
		}
		free := int64(system.Bavail) * int64(system.Bsize) //nolint:gosec,unconvert // no disk has that many blocks; the types differ between systems
		if least < 0 || free < least {
			least = free
		}
	}
	return least, nil
}

// SameDevice reports whether the folders are known to be on the same file system.
func SameDevice(folders ...string) bool {
	var first uint64
	for i, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil {
			return false
		}
		status, is := info.Sys().(*syscall.Stat_t)
		if !is {
			return false
		}
		device := uint64(status.Dev) //nolint:unconvert // it is only compared; the types differ between systems
		if i == 0 {
			first = device
		}
		if device != first {
			return false
		}
	}
	return true
}
