package guest

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// drainTime is how long output is still taken after the command ended, when
	// something that it left in the background holds the pipe open.
	drainTime = 20 * time.Millisecond
	// blockSize is the unit of bash's limit on the size of files.
	blockSize = 1024
)

// run runs one command and reports on the stream.
func (s *server) run(stream net.Conn, asked request) {
	output := newOutput(stream, asked.Limit)
	exit, limit, err := s.execute(stream, asked, output)
	last := end{ExitCode: exit, Exceeded: string(limit)}
	if err != nil {
		last = failedEnd(err)
	}
	output.finish(last)
	if task.CodeOf(err) == task.Unavailable { // the sandbox is to end
		time.AfterFunc(leaveTime, func() { _ = s.session.Close() })
	}
}

func (s *server) execute(stream net.Conn, asked request, output *output) (int, sandbox.Limit, error) {
	if s.problem != nil {
		return 0, "", s.problem
	}
	file, err := s.prepareState(asked)
	if err != nil {
		return 0, "", err
	}

	var pipes outputPipes
	if err := pipes.open(output); err != nil {
		return 0, "", err
	}
	s.watch.killing.Lock()
	s.watch.begin()
	status, err := s.start(asked, file, pipes.files())
	s.watch.killing.Unlock()
	pipes.started()
	if err != nil {
		s.watch.end()
		pipes.drain()
		return 0, "", err
	}
	killed := make(chan struct{})
	go awaitKill(stream, killed) // ends with the stream, which the host closes

	before := memoryKills()
	waited, limit := s.await(status, killed)
	if s.disk != nil {
		s.killIf(s.disk.atEnd) // what is written in the end counts too
	}
	if late := s.watch.end(); limit == sandbox.NoLimit {
		limit = late
	}
	if limit == sandbox.NoLimit && memoryKills() > before {
		limit = sandbox.MemoryLimit
	}
	pipes.drain()
	if !asked.Fresh {
		s.keepState(asked.Session)
	}
	if waited.Signaled() {
		return 128 + int(waited.Signal()), limit, nil
	}
	return waited.ExitStatus(), limit, nil
}

// start starts the shell. It is called with the watch's mutex held.
func (s *server) start(asked request, file string, files []uintptr) (<-chan syscall.WaitStatus, error) {
	if s.disk != nil {
		var err error
		if asked.FileSize, err = s.disk.begin(asked.FileSize); err != nil {
			return nil, err
		}
	}
	status, err := s.startProcess(s.shell, s.arguments(asked, file), &syscall.ProcAttr{
		Dir: s.folder(), Env: s.environment(), Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	return status, err
}

func (s *server) arguments(asked request, file string) []string {
	script := plainScript
	if s.isBash() {
		script = bashScript
	}
	processes := 0
	if s.options.CountUser && s.options.Processes > 0 {
		processes = s.options.Processes + spareProcesses
		if !s.options.OwnProcesses {
			processes += tasksOfUser()
		}
	}
	state := s.statePath(asked.Session)
	if asked.Fresh {
		state = ""
	}
	return []string{s.shell, "-c", script, "toryo", state, file,
		strconv.Itoa(processes), strconv.FormatInt(asked.FileSize/blockSize, 10), s.startFolder(asked)}
}

func (s *server) isBash() bool { return filepath.Base(s.shell) == "bash" }

// spareProcesses lets the watch see that the limit is reached before the kernel
// makes every fork fail, which shells answer by waiting.
const spareProcesses = 64

// tasksOfUser counts what the kernel counts towards the limit per user.
func tasksOfUser() int {
	tasks, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*") // the pattern is good
	count := 0
	for _, task := range tasks {
		if info, err := os.Stat(task); err == nil {
			if status, is := info.Sys().(*syscall.Stat_t); is && int(status.Uid) == os.Getuid() {
				count++
			}
		}
	}
	return count
}

// startFolder is where the command starts, or nothing if that is the session's folder.
func (s *server) startFolder(asked request) string {
	if asked.Folder == "" {
		return ""
	}
	return filepath.Join(s.options.Workspace, string(asked.Folder))
}

// folder is where a command without a state begins.
func (s *server) folder() string {
	if info, err := os.Stat(s.options.Workspace); err == nil && info.IsDir() {
		return s.options.Workspace
	}
	return "/"
}

// await waits for the command to end, and kills everything when the host says so
// or a limit is exceeded.
func (s *server) await(status <-chan syscall.WaitStatus, kill <-chan struct{}) (syscall.WaitStatus, sandbox.Limit) {
	limit := sandbox.NoLimit
	killed := false
	for {
		select {
		case waited := <-status:
			if killed {
				s.awaitGone()
			}
			return waited, limit
		case <-kill:
			kill, killed = nil, true
			s.killAll()
		case limit = <-s.watch.hit: // and everything is killed
			killed = true
		}
	}
}

func awaitKill(stream net.Conn, killed chan<- struct{}) {
	for {
		kind, _, err := readFrame(stream)
		if err != nil || kind == frameKill {
			close(killed)
			return
		}
	}
}

// outputPipes are the two pipes of a command.
type outputPipes struct {
	null             *os.File
	readers, writers [2]*os.File
	reading          sync.WaitGroup
}

func (p *outputPipes) open(to *output) error {
	var err error
	if p.null, err = os.Open(os.DevNull); err != nil {
		return err
	}
	for i, kind := range []frameKind{frameStdout, frameStderr} {
		if p.readers[i], p.writers[i], err = os.Pipe(); err != nil {
			return err
		}
		p.reading.Go(func() { to.take(kind, p.readers[i]) })
	}
	return nil
}

func (p *outputPipes) files() []uintptr {
	return []uintptr{p.null.Fd(), p.writers[0].Fd(), p.writers[1].Fd()}
}

// started closes what the command has now.
func (p *outputPipes) started() {
	_ = p.null.Close()
	_ = p.writers[0].Close()
	_ = p.writers[1].Close()
}

// drain takes what is left in the pipes and then keeps them open for as long as
// something in the background writes to them, so that it is not killed for it.
func (p *outputPipes) drain() {
	for _, reader := range p.readers {
		_ = reader.SetReadDeadline(time.Now().Add(drainTime))
	}
	p.reading.Wait()
	for _, reader := range p.readers {
		_ = reader.SetReadDeadline(time.Time{})
		go discard(reader) // ends when the last writer is gone
	}
}

func discard(reader *os.File) {
	defer func() { _ = reader.Close() }()
	buffer := make([]byte, 4096)
	for {
		if _, err := reader.Read(buffer); err != nil {
			return
		}
	}
}
