package testkit

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// MemoryTaken runs do and returns by how many bytes the resident memory of this
// process was larger at its highest than before, without what the race detector takes
// for itself. It is for tests that do not run
// beside others. Only Linux tells this; elsewhere the test is left out.
func MemoryTaken(t testing.TB, do func()) int64 {
	t.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // forgets the highest
		LeaveOut(t, "a kernel that tells the highest use of memory")
	}
	before := ProcessMemory(t, os.Getpid(), "VmRSS")
	do()
	return (ProcessMemory(t, os.Getpid(), "VmHWM") - before) / raceFactor
}

// ProcessMemory is a line of a process's status, in bytes: VmRSS is the resident
// memory now, and VmHWM the most that it ever was.
func ProcessMemory(t testing.TB, process int, line string) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(process) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for entry := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(entry, ":")
		if fields := strings.Fields(value); name == line && len(fields) > 0 {
			kilobytes, err := strconv.ParseInt(fields[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatalf("the status of process %d has no %s", process, line)
	return 0
}
