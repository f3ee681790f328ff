package disk

import (
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

// TestQuickCommandsAreNotMeasuredEach: folders with little in them are not measured after each of
// many commands, and one that ends with more than the limit is told so at once.
func TestQuickCommandsAreNotMeasuredEach(t *testing.T) {
	t.Parallel()
	measured, used, free := 0, int64(0), int64(1)<<40
	watch := Watch{Limit: 100 << 20, Used: func() int64 { measured++; return used }, Free: func() (int64, error) { return free, nil }}
	now := time.Now()
	watch.Exceeded(now)
	command := func(writes int64) bool {
		used, free, now = used+writes, free-writes, now.Add(time.Millisecond)
		watch.CommandEnded()
		return watch.Exceeded(now)
	}
	for range 100 {
		if command(4096) {
			t.Fatal("hardly anything was written")
		}
	}
	if measured > 1 {
		t.Errorf("the folders were measured %d times in 100 ms", measured)
	}
	for used < 98<<20 {
		command(5 << 20)
	}
	if !command(4 << 20) {
		t.Errorf("%d bytes with a limit of %d were not seen", used, watch.Limit)
	}
}
