package guest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// exceeded counts the processes of the sandbox and the memory that is theirs.
func (s *server) exceeded() sandbox.Limit {
	processes := s.others()
	if s.options.Processes > 0 && len(processes) > s.options.Processes {
		return sandbox.ProcessesLimit
	}
	if s.options.Memory > 0 && s.overMemory(processes) {
		return sandbox.MemoryLimit
	}
	return sandbox.NoLimit
}

// overMemory reports whether the sandbox takes more memory than it may. Memory that
// processes share is counted for each at first, which costs little. Only when that
// is too much is it asked for exactly.
func (s *server) overMemory(processes []int) bool {
	files := s.sharedFiles(processes)
	if rough := files + sum(processes, residentMemory); rough <= s.options.Memory {
		return false
	}
	return files+sum(processes, proportionalMemory) > s.options.Memory
}

func sum(processes []int, of func(pid int) int64) int64 {
	var total int64
	for _, pid := range processes {
		total += of(pid)
	}
	return total
}

// residentMemory is what a process has of memory that is no file's, with all that
// it shares.
func residentMemory(pid int) int64 {
	return fields("/proc/"+strconv.Itoa(pid)+"/status", "RssAnon:", "RssShmem:")
}

// proportionalMemory is the same with its part of what it shares. A process can
// hide that; then all of it counts.
func proportionalMemory(pid int) int64 {
	if exact := fields("/proc/"+strconv.Itoa(pid)+"/smaps_rollup", "Pss_Anon:", "Pss_Shmem:"); exact > 0 {
		return exact
	}
	return residentMemory(pid)
}

// fields adds up lines of a file of the kernel, which are in kilobytes.
func fields(file string, names ...string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0 // the process is gone
	}
	var total int64
	for line := range strings.Lines(string(text)) {
		for _, name := range names {
			if rest, is := strings.CutPrefix(line, name); is {
				kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64) // the kernel's
				total += kilobytes << 10
			}
		}
	}
	return total
}

// sharedFiles is the memory that is no process's own: files in memory and shared
// segments. They stay when processes end.
func (s *server) sharedFiles(processes []int) int64 {
	if !s.options.OwnProcesses {
		return memoryFilesOf(processes) // the others are the host's
	}
	total := sharedSegments() + memoryFilesOf(processes)
	var system unix.Statfs_t
	if err := unix.Statfs(sharedFolder, &system); err == nil && system.Type == unix.TMPFS_MAGIC {
		total += int64(system.Blocks-system.Bfree) * system.Bsize //nolint:gosec // no machine has that much memory
	}
	return total
}

// sharedSegments is what the segments of System V take.
func sharedSegments() int64 {
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return 0 // the kernel has none
	}
	const resident = 14
	var total int64
	for line := range strings.Lines(string(text)) {
		if columns := strings.Fields(line); len(columns) > resident {
			bytes, _ := strconv.ParseInt(columns[resident], 10, 64) // 0 for the heading
			total += bytes
		}
	}
	return total
}

// clearShared removes files in memory and shared segments where they are the
// sandbox's alone: they would outlive the processes that made them.
func (s *server) clearShared() {
	if !s.options.OwnProcesses {
		return
	}
	if shared, err := workdir.Open(sharedFolder); err == nil {
		_ = shared.Each(func(entry fs.DirEntry) error { return shared.RemoveAll(entry.Name()) }) // what is left is counted
		_ = shared.Close()
	}
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return // the kernel has none
	}
	for line := range strings.Lines(string(text)) {
		if columns := strings.Fields(line); len(columns) > 1 {
			if id, err := strconv.Atoi(columns[1]); err == nil {
				_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
			}
		}
	}
}

const sharedFolder = "/dev/shm"

// memoryFilesOf is what files take that are in memory only and have no name, such
// as those of memfd_create, as far as processes have them open.
func memoryFilesOf(processes []int) int64 {
	var total int64
	seen := map[uint64]bool{}
	for _, pid := range processes {
		dir := "/proc/" + strconv.Itoa(pid) + "/fd"
		opened, err := os.Open(dir)
		if err != nil {
			continue // the process is gone
		}
		names, _ := opened.Readdirnames(mostDescriptors)
		_ = opened.Close()
		for _, name := range names {
			at := filepath.Join(dir, name)
			target, err := os.Readlink(at)
			if err != nil || !strings.HasPrefix(target, "/memfd:") {
				continue
			}
			var about unix.Stat_t
			if unix.Stat(at, &about) != nil || seen[about.Ino] {
				continue
			}
			seen[about.Ino] = true
			total += about.Blocks * blocks
		}
	}
	return total
}

const (
	// mostDescriptors is how many open files of a process are looked at.
	mostDescriptors = 4096
	// blocks is the unit in which the kernel tells the size of files.
	blocks = 512
)
