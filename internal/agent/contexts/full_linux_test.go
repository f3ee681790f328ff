package contexts_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/agent/contexts"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// said is a log in which a test can wait for a line.
type said struct {
	mu    sync.Mutex
	text  bytes.Buffer
	line  string
	found chan struct{}
}

func (s *said) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes.Contains(text, []byte(s.line)) && !strings.Contains(s.text.String(), s.line) {
		close(s.found)
	}
	return s.text.Write(text)
}

// TestARunWaitsForRoom: an entry that finds the disk full waits, and is written once when
// there is room. A run that is stopped meanwhile does not wait.
func TestARunWaitsForRoom(t *testing.T) {
	t.Parallel()
	disk := testkit.NewDisk(t, 1<<20, 1000)
	if disk == nil {
		return
	}
	log := &said{line: "the disk is full", found: make(chan struct{})}
	c := open(t, filepath.Join(disk.Dir, "contexts"), contexts.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	run, end := context.WithCancel(t.Context())
	j, err := c.Begin(run, work(1, nil), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	note(t, j, "one")
	disk.Fill(t)
	long := strings.Repeat("two ", 5000)
	end()
	// What is to be kept of a run after its end does not wait either.
	if err := j.Append(t.Context(), task.NoteTaken, phase.Entry{Text: long}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a run that is stopped: %v", err)
	}
	if err := j.Leave(); err != nil {
		t.Logf("left on a full disk: %v", err)
	}
	disk.Free(t)
	if j, err = c.Begin(t.Context(), work(1, nil), 0, nil); err != nil {
		t.Fatal(err)
	}
	disk.Fill(t)
	written := make(chan error, 1)
	go func() { written <- j.Append(t.Context(), task.NoteTaken, phase.Entry{Text: long}) }()
	<-log.found
	disk.Free(t)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if err := j.Leave(); err != nil {
		t.Fatal(err)
	}
	j, err = c.Begin(t.Context(), work(1, nil), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if past := j.Past(); len(past) != 2 || !strings.Contains(string(past[1].Data), long) {
		t.Errorf("the journal has %d entries", len(past))
	}
	if err := j.Leave(); err != nil {
		t.Error(err)
	}
}

// TestARunDoesNotWaitForRoomForEver: it may be its own workspace that fills the disk.
func TestARunDoesNotWaitForRoomForEver(t *testing.T) {
	t.Parallel()
	disk := testkit.NewDisk(t, 1<<20, 1000)
	if disk == nil {
		return
	}
	c := open(t, filepath.Join(disk.Dir, "contexts"), contexts.Options{RoomWithin: time.Millisecond})
	j, err := c.Begin(t.Context(), work(1, nil), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if j.LackedRoom() {
		t.Error("the disk was not full yet")
	}
	disk.Fill(t)
	err = j.Append(t.Context(), task.NoteTaken, phase.Entry{Text: strings.Repeat("two ", 5000)})
	if !errors.Is(err, syscall.ENOSPC) || task.CodeOf(err) != task.DataDir || !j.LackedRoom() {
		t.Errorf("on a full disk: %v", err)
	}
	disk.Free(t)
	if err := j.Leave(); err != nil {
		t.Error(err)
	}
}
