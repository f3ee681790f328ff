package processes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// bootFile has an id that is made anew each time the machine starts.
const bootFile = "/proc/sys/kernel/random/boot_id"

// identify says which file this is, on which boot of the machine.
func identify(name string) (string, error) {
	boot, err := os.ReadFile(bootFile)
	if err != nil {
		return "", nil //nolint:nilerr // nothing can be known then; see the package comment
	}
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return "", nil
	}
	return fmt.Sprintf("boot %s device %d inode %d", strings.TrimSpace(string(boot)), stat.Dev, stat.Ino), nil
}

// giveToOwner gives a file to the owner of the folder that it is in. Commands of root work
// in the folder of a server that runs as another user, which has to read and remove what
// they leave.
func giveToOwner(name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(filepath.Dir(name))
	if err != nil {
		return err
	}
	owner, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return nil
	}
	return os.Lchown(name, int(owner.Uid), int(owner.Gid))
}
