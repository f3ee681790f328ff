package guest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

// Containers are Linux: elsewhere than there, this program cannot be what runs in them.
func TestProgramForContainers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "toryo")
	for _, system := range []string{"darwin", "windows"} {
		_, err := programFor(system, program, "1.2.3")
		if task.CodeOf(err) != task.Unsupported || !strings.Contains(err.Error(), LinuxProgram) {
			t.Errorf("on %s without the program for Linux: %v", system, err)
		}
	}
	beside := filepath.Join(dir, LinuxProgram)
	if err := os.WriteFile(beside, []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := programFor("darwin", program, "1.2.3"); got != beside || err != nil {
		t.Errorf("on macOS it is %s, %v", got, err)
	}
}

// On Linux the small program serves if it is of the same build: an older one that was left
// beside the program would be what confines commands.
func TestProgramOnLinux(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		beside, version string
		small           bool
	}{
		"of the same build":            {beside: "echo 1.2.3", version: "1.2.3", small: true},
		"of another build":             {beside: "echo 1.2.2", version: "1.2.3"},
		"one that does not say":        {beside: "exit 1", version: "1.2.3"},
		"a program without a version":  {beside: "echo", version: ""},
		"nothing beside the program":   {version: "1.2.3"},
		"one that says more than that": {beside: "echo 1.2.3; echo more", version: "1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program, want := filepath.Join(dir, "toryo"), filepath.Join(dir, "toryo")
			if test.beside != "" {
				beside := filepath.Join(dir, LinuxProgram)
				syscall.ForkLock.RLock() // a process started now would hold the file open for writing
				err := os.WriteFile(beside, []byte("#!/bin/sh\n"+test.beside+"\n"), 0o755)
				syscall.ForkLock.RUnlock()
				if err != nil {
					t.Fatal(err)
				}
				if test.small {
					want = beside
				}
			}
			if got, err := programFor("linux", program, test.version); got != want || err != nil {
				t.Errorf("it is %s, %v", got, err)
			}
		})
	}
}
