package guest

import (
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// oneReaper is the reaper of all tests: each takes the status of every child of this
// process, so of two one would take what the other waits for.
var oneReaper = sync.OnceValue(newReaper)

// child starts a process that waits, below a reaper.
func child(t *testing.T, s *server) <-chan syscall.WaitStatus {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	_, ended, err := s.startProcess("/bin/sleep", []string{"sleep", "3600"}, &syscall.ProcAttr{Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}})
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

// TestKillingDoesNotWaitForAStart: code in a sandbox can stop a process before it has
// begun, and the guest then waits for it.
//
//nolint:paralleltest // it kills all that the test binary has started
func TestKillingDoesNotWaitForAStart(t *testing.T) {
	s := &server{reaper: oneReaper(), watch: newWatch()}
	ended := child(t, s)
	s.starting.Lock() // by a start that does not end
	defer s.starting.Unlock()
	s.killAll()
	if status := <-ended; !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("the process ended with %v", status)
	}
}

// TestAStartThatDoesNotEnd: a start that waits for a process is ended with that process.
//
//nolint:paralleltest // it kills all that the test binary has started
func TestAStartThatDoesNotEnd(t *testing.T) {
	s := &server{reaper: oneReaper(), watch: newWatch()}
	ended := child(t, s)
	begun := make(chan struct{})
	done := make(chan struct{})
	go func() { // ends with the process
		defer close(done)
		s.bounded(func() { close(begun); <-ended })
	}()
	<-begun
	<-done
}

//nolint:paralleltest // it looks at what the test binary has started
func TestReserveThatEndedIsForgotten(t *testing.T) {
	s := &server{options: Options{Memory: 1 << 30}, reaper: oneReaper(), watch: newWatch()}
	done := make(chan struct{})
	kept := make(chan struct{})
	fails := func() (<-chan syscall.WaitStatus, *os.File, error) {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, nil, err
		}
		_ = read.Close()
		s.reserve.Store(int64(os.Getppid()))
		ended := make(chan syscall.WaitStatus, 1)
		ended <- syscall.WaitStatus(exitFailed << 8)
		return ended, write, nil
	}
	go func() { // ends as the reserve cannot be had
		defer close(kept)
		s.keepReserve(done, fails)
	}()
	<-kept
	if left := s.reserve.Load(); left != 0 {
		t.Errorf("process %d still counts as the reserve", left)
	}
}

func TestReserveIsBoundInMemory(t *testing.T) {
	t.Parallel()
	s := &server{}
	s.reserve.Store(int64(os.Getpid()))
	held := make([]byte, 64<<20)
	for i := range held {
		held[i] = 1
	}
	if over := s.reserveOver(); over < 32<<20 {
		t.Errorf("a reserve with more than 64 MB counts as %d bytes", over)
	}
	if len(held) == 0 || residentMemory(os.Getpid()) < 64<<20 {
		t.Error("the memory is not there: " + strconv.Itoa(len(held)))
	}
	s.reserve.Store(0)
	if over := s.reserveOver(); over != 0 {
		t.Errorf("no reserve counts as %d bytes", over)
	}
}

func TestReserveIsStartedMoreAndMoreSlowly(t *testing.T) {
	t.Parallel()
	wait := reserveAfter
	for range 20 {
		wait = nextReserve(wait, time.Millisecond, false)
	}
	if wait != reserveSlow {
		t.Errorf("after 20 that were ended at once the next one comes after %s", wait)
	}
	for name, next := range map[string]time.Duration{
		"lived":                nextReserve(wait, time.Minute, false),
		"was taken for memory": nextReserve(wait, time.Millisecond, true),
	} {
		if next != reserveAfter {
			t.Errorf("after one that %s the next comes after %s", name, next)
		}
	}
}
