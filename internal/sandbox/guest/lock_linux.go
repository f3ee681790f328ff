package guest

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lockProgram keeps the program's code in memory. When commands fill a cgroup with memory
// that they share, the kernel takes back all pages of files first, those of the guest's code
// too. It has to read them again from the disk for whatever the guest does then, for many
// seconds, in which the guest does not stop the commands and the host takes it for gone.
func lockProgram() error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("find the program in memory: %w", err)
	}
	for line := range strings.Lines(string(maps)) {
		begin, end, is := codeIn(line)
		if !is {
			continue
		}
		if _, _, failed := unix.Syscall(unix.SYS_MLOCK, begin, end-begin, 0); failed != 0 {
			return fmt.Errorf("lock %d bytes: %w", end-begin, failed)
		}
	}
	return nil
}

// codeIn reads the addresses in a line of /proc/self/maps if that is of a file from which it
// is only read, such as "00402000-005af000 r-xp 00002000 fd:00 1234 /bin/guest".
func codeIn(line string) (begin, end uintptr, is bool) {
	const inode = 4
	columns := strings.Fields(line)
	if len(columns) <= inode || columns[inode] == "0" || !strings.HasPrefix(columns[1], "r-") {
		return 0, 0, false
	}
	first, last, _ := strings.Cut(columns[0], "-")
	from, err := strconv.ParseUint(first, 16, 64)
	if err != nil {
		return 0, 0, false
	}
	to, err := strconv.ParseUint(last, 16, 64)
	return uintptr(from), uintptr(to), err == nil && to > from
}
