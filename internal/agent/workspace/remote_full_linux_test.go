package workspace_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testkit/gitsite"
)

// A server whose disk is full says so with the words of our own git. It is the server that has
// no room: the push can be tried again, here and now, and the agent is not taken out.
func TestPushToAServerWithoutRoom(t *testing.T) {
	t.Parallel()
	disk := testkit.NewDisk(t, 4<<20, 2000)
	if disk == nil {
		return
	}
	s := &site{gitsite.NewIn(t, disk.Dir, map[string]string{"a.txt": "a\n"})}
	w := s.prepare(t, nil)
	noise := make([]byte, 1<<20) // which cannot be compressed
	_, _ = rand.Read(noise)
	put(t, w.Workspace(), "noise.bin", string(noise))
	put(t, disk.Dir, "filler", strings.Repeat("x", 3<<20)) // git can begin to write, and cannot end
	if _, err := w.Save(t.Context(), "on a full disk"); task.CodeOf(err) != task.Unavailable {
		t.Errorf("the code is %s: %v", task.CodeOf(err), err)
	}
	if err := os.Remove(filepath.Join(disk.Dir, "filler")); err != nil {
		t.Fatal(err)
	}
	saved, err := w.Save(t.Context(), "there is room")
	if err != nil {
		t.Fatal(err)
	}
	if kept := s.Mirrored(t, "rev-parse", space("refs/toryo/wip")); kept != saved {
		t.Errorf("the server has %s, want %s", kept, saved)
	}
}
