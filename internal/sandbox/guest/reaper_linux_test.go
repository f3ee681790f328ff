package guest

import (
	"os"
	"syscall"
	"testing"
)

// reaperFor is a reaper for one test. It takes the status of every child of this process: a test that has one
// is not parallel, so that no other is beside it.
func reaperFor(t *testing.T) *reaper {
	t.Helper()
	made, stop := newReaper()
	t.Cleanup(stop)
	return made
}

// child starts a process that waits, below a reaper.
func child(t *testing.T, s *server) <-chan syscall.WaitStatus {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	ended, err := s.startProcess("/bin/sleep", []string{"sleep", "3600"}, &syscall.ProcAttr{Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}})
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
	s := &server{reaper: reaperFor(t), watch: newWatch()}
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
	s := &server{reaper: reaperFor(t), watch: newWatch()}
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
