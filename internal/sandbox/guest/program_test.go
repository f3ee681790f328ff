package guest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

// Containers are Linux: elsewhere than there, this program cannot be what runs in them.
func TestProgramForContainers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "toryo")
	if got, err := programFor("linux", program); got != program || err != nil {
		t.Errorf("on Linux it is %s, %v", got, err)
	}
	for _, system := range []string{"darwin", "windows"} {
		_, err := programFor(system, program)
		if task.CodeOf(err) != task.Unsupported || !strings.Contains(err.Error(), LinuxProgram) {
			t.Errorf("on %s without the program for Linux: %v", system, err)
		}
	}
	beside := filepath.Join(dir, LinuxProgram)
	if err := os.WriteFile(beside, []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := programFor("darwin", program); got != beside || err != nil {
		t.Errorf("on macOS it is %s, %v", got, err)
	}
}
