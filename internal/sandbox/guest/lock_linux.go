package guest

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mostLocked is more than the program of a guest has, and less than that of a server that serves as one:
// what is locked counts to the memory of the sandbox.
const mostLocked = 16 << 20

// lockProgram keeps what is in the program's file in memory, as far as the system lets it: 8 MB is what
// most allow. When commands fill a cgroup with memory that they share, the kernel takes back all pages of
// files first, those of the guest's code too. It then reads them again from the disk for whatever the
// guest does, for many seconds, in which the guest does not stop the commands and the host takes it for gone.
func lockProgram() error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("find the program in memory: %w", err)
	}
	var parts []addresses
	var all uintptr
	for line := range strings.Lines(string(maps)) {
		if part, is := partOfFile(line); is {
			parts, all = append(parts, part), all+part.end-part.begin
		}
	}
	if all > mostLocked {
		return fmt.Errorf("the program has %d bytes", all)
	}
	for _, part := range parts {
		if _, _, failed := unix.Syscall(unix.SYS_MLOCK, part.begin, part.end-part.begin, 0); failed != 0 {
			return fmt.Errorf("lock %d bytes: %w", part.end-part.begin, failed)
		}
	}
	return nil
}

type addresses struct{ begin, end uintptr }

// partOfFile reads a line of /proc/self/maps, such as "00402000-005af000 r-xp 00002000 fd:00 1234
// /bin/guest", if it is of a file.
func partOfFile(line string) (part addresses, is bool) {
	const inode = 4
	columns := strings.Fields(line)
	if len(columns) <= inode || columns[inode] == "0" || !strings.HasPrefix(columns[1], "r") {
		return part, false
	}
	first, last, _ := strings.Cut(columns[0], "-")
	begin, err := strconv.ParseUint(first, 16, 64)
	if err != nil {
		return part, false
	}
	end, err := strconv.ParseUint(last, 16, 64)
	return addresses{uintptr(begin), uintptr(end)}, err == nil && end > begin
}
