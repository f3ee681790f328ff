package guest

import (
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// When a sandbox takes more memory than its limit, the kernel ends one of its processes.
// Memory that processes share comes back only when that process is gone, and until then
// the kernel passes it over: who needs memory meanwhile has the next process ended. If
// no other is left, that is the guest, and the sandbox with it. So there is always one
// more process, the reserve: it holds memory of its own and does nothing. The kernel
// prefers it to the guest and has its memory back at once, which is enough for the guest
// until the first process is gone.

const (
	// reserveSize is more than the guest needs in that time.
	reserveSize = 8 << 20
	// reserveOwn is what its program takes besides, at the most.
	reserveOwn = 8 << 20
	// reserveAfter is how long it takes from the end of a reserve to the next one, and
	// reserveSlow how long if somebody ends them again and again within reserveLife.
	reserveAfter = 20 * time.Millisecond
	reserveSlow  = 5 * time.Second
	reserveLife  = time.Second
	// takenFirst makes the kernel prefer a process when it is short of memory.
	takenFirst = "1000"
)

// holdReserve is the reserve's process. It ends when its standard input does.
func holdReserve(text string) error {
	size, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(takenFirst), 0); err != nil {
		return err
	}
	if err := hide(); err != nil { // nobody may put more into it
		return err
	}
	held, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	_ = unix.Munmap(held)
	return err
}

// keepReserve starts the reserve, and another when it was taken, until the guest ends.
// Where a process may not say that it is to be taken first, as under Landlock, there is
// none.
func (s *server) keepReserve(done <-chan struct{}, start func() (<-chan syscall.WaitStatus, *os.File, error)) {
	if s.options.Memory == 0 {
		return
	}
	wait := reserveAfter
	for {
		begun, kills := time.Now(), memoryKills()
		if ended, alive, err := start(); err == nil {
			var status syscall.WaitStatus
			select {
			case <-done: // the end of its input ends it
			case status = <-ended:
			}
			s.reserve.Store(0)
			_ = alive.Close()
			if status.Exited() && status.ExitStatus() == exitFailed {
				return
			}
		}
		wait = nextReserve(wait, time.Since(begun), memoryKills() > kills)
		select {
		case <-done:
			return
		case <-time.After(wait):
		}
	}
}

// nextReserve is how long it takes to the next reserve, after one that lived for a while
// and was taken for its memory, or was not.
func nextReserve(last, lived time.Duration, taken bool) time.Duration {
	if taken || lived >= reserveLife {
		return reserveAfter
	}
	return min(2*last, reserveSlow)
}

// reserveOver is what the reserve has of memory and should not have.
func (s *server) reserveOver() int64 {
	pid := s.reserve.Load()
	if pid == 0 {
		return 0
	}
	return max(0, residentMemory(int(pid))-reserveSize-reserveOwn)
}

// startReserve starts the process, which lives until the file is closed.
func (s *server) startReserve() (<-chan syscall.WaitStatus, *os.File, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = null.Close() }()
	input, alive, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = input.Close() }()
	pid, ended, err := s.startProcess(program, []string{program, reserveName, strconv.Itoa(reserveSize)}, &syscall.ProcAttr{
		Dir: "/", Files: []uintptr{input.Fd(), null.Fd(), null.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = alive.Close()
		return nil, nil, err
	}
	s.reserve.Store(int64(pid))
	return ended, alive, nil
}
