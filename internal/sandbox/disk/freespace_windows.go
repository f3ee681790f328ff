package disk

import "golang.org/x/sys/windows"

// FreeSpace is the least free space of the file systems that the folders are on.
func FreeSpace(folders ...string) (int64, error) {
	var least int64 = -1
	for _, folder := range folders {
		path, err := windows.UTF16PtrFromString(folder)
		if err != nil {
			return 0, err
		}
		var available uint64
		if err := windows.GetDiskFreeSpaceEx(path, &available, nil, nil); err != nil {
			return 0, err
		}
		free := int64(available) //nolint:gosec // no disk has that many bytes
		if least < 0 || free < least {
			least = free
		}
	}
	return least, nil
}

// SameDevice reports whether the folders are known to be on the same file system.
func SameDevice(...string) bool { return false }
