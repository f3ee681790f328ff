package disk

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestOthersFreeAsMuch: what a sandbox writes is seen within a few looks though somebody
// else frees a little more of the same disk at the same time.
func TestOthersFreeAsMuch(t *testing.T) {
	t.Parallel()
	used, free := int64(0), int64(1)<<40
	watch := Watch{Limit: 100 << 20, Used: func() int64 { return used }, Free: func() (int64, error) { return free, nil }}
	now := time.Now()
	look := func() bool {
		now = now.Add(Every)
		return watch.Exceeded(now)
	}
	look()
	used, free = 200<<20, free+4096
	for range 3 {
		if look() {
			return
		}
	}
	t.Error("200 MB with a limit of 100 MB were not seen")
}

// TestNothingIsMeasuredWhileNothingIsWritten: an idle sandbox costs no more than the
// question for the free space.
func TestNothingIsMeasuredWhileNothingIsWritten(t *testing.T) {
	t.Parallel()
	measured := 0
	watch := Watch{Limit: 100 << 20, Used: func() int64 { measured++; return 0 }, Free: func() (int64, error) { return 1 << 40, nil }}
	now := time.Now()
	for range 100 {
		now = now.Add(Every)
		watch.Exceeded(now)
	}
	if measured > 1 {
		t.Errorf("the folders were measured %d times in 20 s", measured)
	}
}

// TestWhatWasWrittenWhileDying: what is written between the look that finds too much and
// the end of the writers is not held against the next command, which may remove it.
func TestWhatWasWrittenWhileDying(t *testing.T) {
	t.Parallel()
	used, free := int64(0), int64(1)<<40
	watch := Watch{Limit: 100 << 20, Used: func() int64 { return used }, Free: func() (int64, error) { return free - used, nil }}
	now := time.Now()
	look := func() bool {
		now = now.Add(Every)
		return watch.Exceeded(now)
	}
	look()
	used = 150 << 20
	if !look() {
		t.Fatal("too much was not seen")
	}
	used = 180 << 20 // they die
	if !watch.Over() {
		t.Fatal("the next command may write as if there were room")
	}
	if look() {
		t.Error("the next command is killed for what was written before it")
	}
	used += 1 << 20
	if !watch.Over() || !look() {
		t.Error("what the next command has written is forgiven as well")
	}
}

// commands is a sandbox in which one command after the other ends, and in which a measurement
// takes 10 ms.
type commands struct {
	watch      Watch
	now        time.Time
	used, free int64
	measured   int
}

func newCommands(oneDevice bool) *commands {
	c := &commands{now: time.Now(), free: 1 << 40}
	c.watch = Watch{Limit: 100 << 20, OneDevice: oneDevice, Used: func() int64 { c.measured++; return c.used },
		Free: func() (int64, error) { return c.free, nil }}
	c.watch.Exceeded(c.now)
	c.end(time.Second, 4096, 4096) // the first is measured, as nothing is known then
	return c
}

// end ends a command that has written so much in so long, while the free space became less by
// so much, and reports whether it is too much.
func (c *commands) end(took time.Duration, writes, less int64) bool {
	c.now, c.used, c.free = c.now.Add(took), c.used+writes, c.free-less
	c.watch.CommandEnded()
	exceeded := c.watch.Exceeded(c.now)
	c.watch.took = 10 * time.Millisecond
	return exceeded
}

// TestQuickCommandsAreNotMeasuredEach: folders with little in them are not measured after each of
// many commands, and one that ends with more than the limit is told so at once.
func TestQuickCommandsAreNotMeasuredEach(t *testing.T) {
	t.Parallel()
	c := newCommands(true)
	for range 100 {
		if c.end(time.Millisecond, 4096, 4096) {
			t.Fatal("hardly anything was written")
		}
	}
	if c.measured > 2 {
		t.Errorf("the folders were measured %d times in 100 ms", c.measured)
	}
	for c.used < 95<<20 {
		if c.end(time.Millisecond, 5<<20, 5<<20) {
			t.Fatalf("%d bytes are too much with a limit of %d", c.used, c.watch.Limit)
		}
	}
	if !c.end(time.Millisecond, 6<<20, 6<<20) {
		t.Errorf("%d bytes with a limit of %d were not seen", c.used, c.watch.Limit)
	}
}

// TestCommandsOnAnotherDevice: a command that writes too much where the free space is not looked
// at is told so when it ends, and not the next one.
func TestCommandsOnAnotherDevice(t *testing.T) {
	t.Parallel()
	c := newCommands(false)
	if !c.end(5*time.Millisecond, 200<<20, 4096) {
		t.Error("200 MB with a limit of 100 MB were not seen")
	}
}

// TestOthersFreeAsMuchAsACommand: though somebody else frees as much meanwhile, what a command
// has written is seen when it ends, if a measurement costs little of the time that it took.
func TestOthersFreeAsMuchAsACommand(t *testing.T) {
	t.Parallel()
	c := newCommands(true)
	c.watch.took = time.Millisecond
	if !c.end(measurePart*time.Millisecond, 200<<20, 4096) {
		t.Error("200 MB with a limit of 100 MB were not seen")
	}
}

// TestSameDevice: folders are on one device only if all of them can be seen there.
func TestSameDevice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := SameDevice(dir, t.TempDir()); got != (runtime.GOOS != "windows") {
		t.Errorf("two folders side by side: %t", got)
	}
	if SameDevice(dir, filepath.Join(dir, "missing")) {
		t.Error("a folder that is not there is on the same device")
	}
	if runtime.GOOS == "linux" && SameDevice(dir, "/proc") {
		t.Error("/proc is on the same device as a folder")
	}
}
