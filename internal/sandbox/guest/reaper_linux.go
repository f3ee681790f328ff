package guest

import (
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reaper starts processes and waits for every child, also for orphans that the
// guest inherits. It is the only one in the process that waits.
type reaper struct {
	mutex   sync.Mutex
	waiting map[int]chan<- syscall.WaitStatus
}

// newReaper begins to wait for children. Stop ends that.
func newReaper() (r *reaper, stop func()) {
	r = &reaper{waiting: map[int]chan<- syscall.WaitStatus{}}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	var reaping sync.WaitGroup
	reaping.Go(func() {
		for range children {
			r.reap()
		}
	})
	return r, func() {
		signal.Stop(children)
		close(children)
		reaping.Wait()
	}
}

func (r *reaper) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		r.mutex.Lock()
		waits, known := r.waiting[pid]
		delete(r.waiting, pid)
		r.mutex.Unlock()
		if known {
			waits <- status
		}
	}
}

// start starts a process. Its status comes on the channel when it has ended.
func (r *reaper) start(program string, arguments []string, how *syscall.ProcAttr) (<-chan syscall.WaitStatus, error) {
	r.mutex.Lock() // so that it is known before it can be reaped
	defer r.mutex.Unlock()
	pid, err := syscall.ForkExec(program, arguments, how)
	if err != nil {
		return nil, err
	}
	status := make(chan syscall.WaitStatus, 1)
	r.waiting[pid] = status
	return status, nil
}

const (
	// startTime is how long it may take to start a process, far more than it does. Code in
	// the sandbox can stop one before it has begun, and the guest would wait for it.
	startTime = 5 * time.Second
	// startWait is how long what is to be killed waits for a process that is being started.
	startWait = time.Second
)

// startProcess starts a process, or kills everything if that does not end.
func (s *server) startProcess(program string, arguments []string, how *syscall.ProcAttr) (ended <-chan syscall.WaitStatus, err error) {
	s.starting.Lock()
	defer s.starting.Unlock()
	s.bounded(func() { ended, err = s.reaper.start(program, arguments, how) })
	return ended, err
}

// bounded does something that waits for processes, and kills them if it takes too long.
// A thread that starts a process answers nobody before that has begun. To collect garbage
// the runtime stops all threads, and would wait for that one with all others stopped.
func (s *server) bounded(do func()) {
	killed := make(chan struct{})
	late := time.AfterFunc(startTime, func() { defer close(killed); s.killAll() })
	defer func() {
		if !late.Stop() {
			<-killed // or it would kill what is started next
		}
	}()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	do()
}

// awaitStarted waits until no process is being started, and keeps others from being. It
// does not wait for one that was stopped.
func (s *server) awaitStarted() (release func()) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for begun := time.Now(); time.Since(begun) < startWait; <-ticker.C {
		if s.starting.TryLock() {
			return s.starting.Unlock
		}
	}
	return func() {}
}

// killAll kills everything in the sandbox but the guest, and takes away the memory
// that is no process's own.
func (s *server) killAll() {
	defer s.clearShared()
	if s.options.OwnProcesses {
		if !s.killFew() {
			_ = unix.Kill(-1, unix.SIGKILL) // no process: nothing to do
		}
		return
	}
	// Without a process namespace the descendants have to be found, and stopped
	// first: what is stopped cannot fork while the others are looked for. A process that
	// is stopped before it has begun would hold up the guest.
	release := s.awaitStarted()
	defer release()
	for range 100 {
		found := s.others()
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		if again := s.others(); len(again) > len(found) {
			continue
		}
		for _, pid := range s.others() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		s.reaper.reap()
	}
}

// few is up to how many processes are killed one by one.
const few = 32

// killFew kills the processes one by one, so that the one that carries the link
// stays. It gives up when they are many, or come again: then all have to go at once.
func (s *server) killFew() bool {
	if s.options.Socket == "" {
		return false
	}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for range few {
		found := s.others()
		if len(found) == 0 {
			return true
		}
		if len(found) > few {
			return false
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		s.reaper.reap()
		<-ticker.C // the kernel takes its time to end them
	}
	return false
}

// goneTime is how long what was killed may take to be gone. A process that the
// kernel does not let go, such as one that waits for a disk, is not waited for.
const goneTime = 5 * time.Second

// awaitGone waits until what was killed is gone: the next command must not meet
// the last one's processes. Where the sandbox has no processes of its own,
// looking for them is slow, and killAll has looked already.
func (s *server) awaitGone() {
	if !s.options.OwnProcesses {
		return
	}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for begun := time.Now(); time.Since(begun) < goneTime; <-ticker.C {
		s.reaper.reap()
		left := slices.DeleteFunc(s.others(), func(pid int) bool { return pid == 1 }) // that is the sandbox's own
		if len(left) == 0 {
			return
		}
	}
}

// others are the processes besides the guest and the one that carries its link.
func (s *server) others() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != os.Getpid() {
			found = append(found, pid)
		}
	}
	if !s.options.OwnProcesses {
		found = descendants(found)
	}
	return slices.DeleteFunc(found, func(pid int) bool { return int64(pid) == carrier.Load() })
}

// descendants are those of the processes that come from this one.
func descendants(all []int) []int {
	self := os.Getpid()
	parents := map[int]int{}
	for _, pid := range all {
		if parent, alive := parentOf(pid); alive {
			parents[pid] = parent
		}
	}
	var found []int
	for pid := range parents {
		for at, steps := pid, 0; steps < 1000; steps++ {
			if at = parents[at]; at == self {
				found = append(found, pid)
				break
			}
			if at == 0 {
				break
			}
		}
	}
	return found
}

// parentOf reads a process's parent. A process that has ended and only waits to
// be reaped does not count as alive.
func parentOf(pid int) (parent int, alive bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	_, after, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')'):]), " ")
	fields := strings.Fields(after)
	if len(fields) < 2 || fields[0] == "Z" {
		return 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, err == nil
}
