package command

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
)

// Who may not read the data of a server is told that, and nothing about a database.
func TestTasksOfTheServerOfAnotherUser(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for _, name := range []string{"server.json", "toryo.db"} {
		if err := os.WriteFile(filepath.Join(data, name), []byte("{}"), 0o000); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		// Files of root are not for this thread any more.
		runtime.LockOSThread()
		if err := syscall.Setfsuid(61001); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = syscall.Setfsuid(0)
			runtime.UnlockOSThread()
		}()
	}
	var shown bytes.Buffer
	c := Tasks(site.Program{Stdout: &shown, Stderr: &shown, Now: time.Now})
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs([]string{"list", "--data", data})
	err := c.ExecuteContext(t.Context())
	if task.CodeOf(err) != task.DataDir || !strings.Contains(err.Error(), "may not read which server runs") || shown.Len() > 0 {
		t.Errorf("it says %v and %q", err, shown.String())
	}
}
