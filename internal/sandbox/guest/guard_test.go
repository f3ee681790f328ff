package guest

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/disk"
	"github.com/toryo-dev/toryo/internal/task"
)

// TestLimitFoundAsTheCommandEnds: what was found in the moment in which the command
// ended by itself is said of that command, and not of the next one.
func TestLimitFoundAsTheCommandEnds(t *testing.T) {
	t.Parallel()
	used := int64(0)
	watch := disk.Watch{Limit: 100, Used: func() int64 { return used }, Free: func() (int64, error) { return 1<<40 - used, nil }}
	g := &guard{disk: diskGuard{watch: watch}}
	g.look()
	if _, err := g.begin(1 << 30); err != nil {
		t.Fatal(err)
	}
	used = 1000
	if found := g.look(); found != sandbox.DiskLimit { // the regular look, which finds no command to tell
		t.Fatalf("the regular look found %q", found)
	}
	if said := g.end(0); said != sandbox.DiskLimit {
		t.Errorf("the command exceeded %q", said)
	}
	used = 0
	if _, err := g.begin(1 << 30); err != nil {
		t.Fatal(err)
	}
	if said := g.end(0); said != sandbox.NoLimit {
		t.Errorf("the next command exceeded %q", said)
	}
}

// TestFullOncePerCommand: a sandbox is ended for the commands that fill its disk, each of
// which counts once, and not for what the host puts in.
func TestFullOncePerCommand(t *testing.T) {
	t.Parallel()
	used := int64(0)
	disk := &diskGuard{watch: disk.Watch{Limit: 100, Used: func() int64 { return used }, Free: func() (int64, error) { return 1<<40 - used, nil }}}
	disk.look()
	grow := func() {
		used += 1000
		if disk.look() != sandbox.DiskLimit {
			t.Fatal("the limit is not exceeded")
		}
	}
	grow() // before the first command
	grow()
	for i := range mostFull {
		if _, err := disk.begin(1 << 30); err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
		grow()
		grow()
		disk.filling = true
		grow()
		disk.filling = false
	}
	if _, err := disk.begin(1 << 30); !sandbox.IsExhausted(err) || task.CodeOf(err) != task.Unavailable {
		t.Errorf("the sandbox ends with %v", err)
	}
}
