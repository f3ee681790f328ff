package guest

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// watchDisk tells when the folders of the sandbox take more than they may, where
// the host cannot look. It has to be stopped.
func (s *server) watchDisk() (<-chan sandbox.Limit, func()) {
	if s.options.Disk == 0 {
		return nil, func() {}
	}
	full := make(chan sandbox.Limit)
	ctx, stop := context.WithCancel(context.Background())
	folders := []string{s.options.Workspace, s.options.Home, os.TempDir()}
	watch := sandbox.DiskWatch{Limit: s.options.Disk,
		Free: func() (int64, error) { return sandbox.FreeSpace(folders...) },
		Used: func() int64 {
			var used int64
			for _, folder := range folders {
				used += sandbox.TreeSize(folder)
			}
			return used
		}}
	go watch.Watch(ctx, full) // until stopped
	return full, stop
}

// memoryFiles say how many processes of the sandbox the kernel has killed because
// they took too much memory together: in the second version of cgroups, and in
// the first.
var memoryFiles = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}

// memoryKills is that number, or 0 where it cannot be known.
func memoryKills() int {
	for _, file := range memoryFiles {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if count, is := strings.CutPrefix(line, "oom_kill "); is {
				number, _ := strconv.Atoi(strings.TrimSpace(count)) // the kernel's
				return number
			}
		}
	}
	return 0
}
