package processes

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// bootFile has an id that is made anew each time the machine starts.
const bootFile = "/proc/sys/kernel/random/boot_id"

// identify says which file this is, on which boot of the machine.
func identify(file os.FileInfo) string {
	boot, err := os.ReadFile(bootFile)
	stat, is := file.Sys().(*syscall.Stat_t)
	if err != nil || !is {
		return "" // nothing can be known then; see the package comment
	}
	return fmt.Sprintf("boot %s device %d inode %d", strings.TrimSpace(string(boot)), stat.Dev, stat.Ino)
}

// networkFile names the network that a process is in.
const networkFile = "/proc/self/ns/net"

// Network says which network this process is in, on which boot of which kernel: 127.0.0.1 means
// the same for all that are in one. It is empty if that is not known.
func Network() string {
	boot, err := os.ReadFile(bootFile)
	if err != nil {
		return ""
	}
	space, err := os.Readlink(networkFile)
	if err != nil {
		return ""
	}
	return "boot " + strings.TrimSpace(string(boot)) + " " + space
}
