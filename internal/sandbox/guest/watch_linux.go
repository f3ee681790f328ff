package guest

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/disk"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// newDiskGuard watches the folders of a sandbox where the host cannot look; nil where
// it can.
func newDiskGuard(options Options) *diskGuard {
	if options.Disk == 0 {
		return nil
	}
	folders := []string{options.Workspace, options.Home, os.TempDir()}
	made := &diskGuard{watch: disk.Watch{Limit: options.Disk, OneDevice: disk.SameDevice(folders...),
		Free: func() (int64, error) { return disk.FreeSpace(folders...) },
		Used: func() int64 {
			var used int64
			for _, folder := range folders {
				used += workdir.TreeSize(folder)
			}
			return used
		}}}
	made.look() // what is written from now on is seen
	return made
}

// watchDisk kills everything when the folders of the sandbox take more than they may.
// It ends with the guest.
func (s *server) watchDisk(done <-chan struct{}) {
	if s.disk == nil {
		return
	}
	ticker := time.NewTicker(disk.Every)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		s.killIf(s.disk.look)
	}
}

// killIf looks whether a limit is exceeded, and if one is kills everything for it.
// No command begins or ends meanwhile, so that none is killed for what another did.
func (s *server) killIf(exceeded func() sandbox.Limit) {
	s.watch.killing.Lock()
	defer s.watch.killing.Unlock()
	limit := exceeded()
	if limit == sandbox.NoLimit {
		return
	}
	select {
	case s.watch.hit <- limit: // for the command that runs
	default: // nobody took the last one
	}
	s.killAll()
}

const (
	// watchEvery is how often memory and processes are counted while a command runs,
	// leftEvery how often while only what commands have left does, and idleEvery how
	// often it is looked whether there is anything.
	watchEvery = 50 * time.Millisecond
	leftEvery  = 75 * time.Millisecond
	idleEvery  = 300 * time.Millisecond
)

// limitWatch is what the count of memory and processes shares with the commands.
type limitWatch struct {
	killing sync.Mutex         // held while everything is killed for a limit
	hit     chan sandbox.Limit // a limit for which everything was killed
	running atomic.Bool
	changed chan struct{}
}

func newWatch() *limitWatch {
	return &limitWatch{hit: make(chan sandbox.Limit, 1), changed: make(chan struct{}, 1)}
}

// begin forgets what was exceeded before the command. It is called with the mutex
// held.
func (w *limitWatch) begin() {
	select {
	case <-w.hit:
	default:
	}
	w.running.Store(true)
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// end waits until what is being killed is, and returns the limit for it.
func (w *limitWatch) end() sandbox.Limit {
	w.killing.Lock()
	defer w.killing.Unlock()
	w.running.Store(false)
	select {
	case limit := <-w.hit:
		return limit
	default:
		return sandbox.NoLimit
	}
}

// watchLimits counts memory and processes until the guest ends, and kills
// everything when they are too many. What commands leave in the background is
// counted like they are.
func (s *server) watchLimits(done <-chan struct{}) {
	if s.options.Memory == 0 && s.options.Processes == 0 {
		return
	}
	timer := time.NewTimer(idleEvery)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-s.watch.changed:
		case <-timer.C:
		}
		s.killIf(s.exceeded)
		every := idleEvery
		switch {
		case s.watch.running.Load():
			every = watchEvery
		case len(s.others()) > 0:
			every = leftEvery
		}
		timer.Reset(every)
	}
}

// memoryFiles say how many processes of the sandbox the kernel has killed because
// they took too much memory together: in the second version of cgroups, and in
// the first.
var memoryFiles = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}

// memoryKills is that number, or 0 where it cannot be known.
func memoryKills() int {
	for _, file := range memoryFiles {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if count, is := strings.CutPrefix(line, "oom_kill "); is {
				number, _ := strconv.Atoi(strings.TrimSpace(count)) // the kernel's
				return number
			}
		}
	}
	return 0
}
