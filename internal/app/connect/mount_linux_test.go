package connect_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/task"
)

// mountedFile is the variable that names a mounted file to the test that runs where it is mounted.
const mountedFile = "TORYO_TEST_MOUNTED_FILE"

// A file that is mounted by itself cannot be replaced, and a link leads to the folder in which
// its file would be replaced: both are known before anything is done.
func TestWhatCannotBeReplaced(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "toryo.yaml")
	if err := connect.Writable(file); err != nil {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := connect.Writable(file); err != nil {
		t.Errorf("a file that is there: %v", err)
	}
	link := filepath.Join(folder, "link.yaml")
	if err := os.Symlink("/proc/version", link); err != nil {
		t.Fatal(err)
	}
	if err := connect.Writable(link); task.CodeOf(err) != task.Conflict {
		t.Errorf("a link to where nobody can write: %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
		t.Errorf("left is %v, %v", left, err)
	}
	again := exec.CommandContext(t.Context(), "unshare", "--map-root-user", "--mount", "sh", "-c", `mount --bind "$1" "$1" && exec "$0" -test.run '^TestAMountedFile$' -test.v`, os.Args[0], file)
	again.Env = append(os.Environ(), mountedFile+"="+file)
	said, err := again.CombinedOutput()
	switch {
	case strings.Contains(string(said), "=== RUN"):
		if err != nil {
			t.Errorf("%s", said)
		}
	default:
		t.Logf("mounted files were not tested, because nothing can be mounted here: %s", said)
	}
}

func TestAMountedFile(t *testing.T) {
	t.Parallel()
	file := os.Getenv(mountedFile)
	if file == "" {
		return // see TestWhatCannotBeReplaced
	}
	if err := connect.Writable(file); task.CodeOf(err) != task.Conflict || !strings.Contains(err.Error(), "mounted") {
		t.Errorf("a mounted file: %v", err)
	}
	if err := connect.WriteWhole(file, []byte("x"), 0o600); err == nil {
		t.Error("a mounted file was replaced")
	}
}
