package connect

import "golang.org/x/sys/unix"

// isMountPoint reports whether something is mounted at a path itself, as containers are given
// single files. No other file can be renamed to it then.
func isMountPoint(path string) bool {
	var is unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &is); err != nil {
		return false // it is not there, or the system is older than the question
	}
	return is.Attributes&is.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0
}
