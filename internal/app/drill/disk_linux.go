package drill

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/toryo-dev/toryo/internal/task"
)

// CanMount reports whether this process may mount file systems, which fill up in the drill. Root
// in a container often may not: it has to be tried.
func CanMount() bool {
	if os.Geteuid() != 0 {
		return false
	}
	dir, err := os.MkdirTemp("", "toryo-drill-mount-")
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(dir) }()
	made, err := newDisk(dir)
	return err == nil && made.close() == nil
}

// newDisk mounts an empty file system.
func newDisk(dir string) (*disk, error) {
	if err := unix.Mount("toryo-drill", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=0700,size=%d", diskSize)); err != nil {
		return nil, task.Wrap(task.NotReady, err, "a file system that can fill up cannot be mounted").WithHint("leave it out with --small-disks=false")
	}
	return &disk{dir: dir}, nil
}

// fill makes the file system as small as what is in it. That takes no memory, and what is there
// can be read and overwritten as on any full disk.
func (d *disk) fill() error {
	for more := uint64(0); ; more++ {
		var is unix.Statfs_t
		if err := unix.Statfs(d.dir, &is); err != nil {
			return err
		}
		used := (is.Blocks - is.Bfree + more) * uint64(is.Bsize) //nolint:gosec // it is positive
		err := d.resize(max(used, uint64(is.Bsize)))             //nolint:gosec // it is positive
		if !errors.Is(err, unix.EINVAL) || more == 1000 {        // something was written in between
			return err
		}
	}
}

// free ends fill.
func (d *disk) free() error { return d.resize(diskSize) }

func (d *disk) resize(size uint64) error {
	return unix.Mount("toryo-drill", d.dir, "tmpfs", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d", size))
}

func (d *disk) close() error { return unix.Unmount(d.dir, unix.MNT_DETACH) }
