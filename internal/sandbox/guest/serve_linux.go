package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/seccomp"
)

// server is the guest at work.
type server struct {
	options Options
	shell   string
	reaper  *reaper
	session *yamux.Session
	problem error // why no command can run
	running sync.Mutex
	files   *mirror // of the workspace, when the host does not share it
	routes  routes
	watch   *limitWatch
	// starting is held while a process is started and while all are stopped to be killed: a
	// process that is stopped before it has begun holds up the guest.
	starting sync.Mutex
	disk     *diskGuard // used with the watch's mutex held; nil where the host looks
}

func serve(options Options) error {
	if err := hide(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	if err := seccomp.FilterCalls(seccomp.OrdinarySockets); err != nil { // what confined the process before holds too
		return err
	}
	_ = lockProgram() // a system that does not let it has a guest that is slow when memory is short
	unix.Umask(0o022)
	connection, timeout, err := openConnection(options)
	if err != nil {
		return err
	}
	session, err := yamux.Server(connection, sessionConfig(timeout))
	if err != nil {
		return err
	}
	// One processor is held by a process that somebody stops before it has begun. Naming a
	// number also keeps the runtime from changing it, for which it stops all threads.
	runtime.GOMAXPROCS(max(leastProcessors, runtime.GOMAXPROCS(0)))
	makeThreads()
	reaper, _ := newReaper() // for as long as the guest lives
	guest := &server{options: options, session: session, reaper: reaper}
	guest.watch, guest.disk = newWatch(), newDiskGuard(options)
	go guest.watchLimits(session.CloseChan()) // for as long as the guest lives
	go guest.watchDisk(session.CloseChan())   // so does this
	guest.prepare()
	guest.acceptRequests()
	guest.killAll()
	return nil
}

// hide keeps the other processes of the user from looking into this one, from using its
// open files, and from tracing it.
func hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide the process: %w", err)
	}
	return nil
}

// leastProcessors are enough for the guest to go on while it starts a process.
const leastProcessors = 4

// ownThreads is more than the guest needs at a time.
const ownThreads = 16

// makeThreads has the runtime make the threads that the guest will need, which it then
// keeps. When a command has used up all that the sandbox may have, the runtime cannot
// make one, and would end the guest.
func makeThreads() {
	var made sync.WaitGroup
	release := make(chan struct{})
	for range ownThreads {
		made.Add(1)
		go func() {
			runtime.LockOSThread() // so that each of them needs a thread of its own
			defer runtime.UnlockOSThread()
			made.Done()
			<-release
		}()
	}
	made.Wait()
	close(release)
}

// openConnection is the way to the host, and how long it may be blocked.
func openConnection(options Options) (io.ReadWriteCloser, time.Duration, error) {
	if options.Socket != "" {
		link, err := listenForLink(options.Socket, options.Patience)
		return link, options.Patience, err
	}
	streams, err := takeStandardStreams()
	return streams, writeTimeout, err
}

// prepare does what may fail without ending the guest: the host hears of it in
// the answer to its hello.
func (s *server) prepare() {
	if err := os.MkdirAll(filepath.Dir(s.options.State), 0o700); err != nil {
		s.problem = err
		return
	}
	for _, name := range []string{"bash", "sh"} {
		if found, err := exec.LookPath(name); err == nil {
			s.shell = found
			break
		}
	}
	if s.shell == "" {
		s.problem = errors.New("there is no shell")
		return
	}
	if s.options.Proxy != "" {
		listener, err := net.Listen("tcp", s.options.Proxy) //nolint:noctx // it lasts as long as the process
		if err != nil {
			s.problem = fmt.Errorf("listen for the proxy: %w", err)
			return
		}
		go s.forward(listener) // for as long as the guest lives
	}
}

// takeStandardStreams moves the connection to the host off the standard streams,
// so that nothing that is started can get hold of it.
func takeStandardStreams() (io.ReadWriteCloser, error) {
	in, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return nil, fmt.Errorf("take standard input: %w", err)
	}
	out, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return nil, fmt.Errorf("take standard output: %w", err)
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	for _, stream := range []int{0, 1} {
		if err := unix.Dup2(null, stream); err != nil {
			return nil, err
		}
	}
	return &streams{in: os.NewFile(uintptr(in), "host"), out: os.NewFile(uintptr(out), "host")}, nil
}

type streams struct{ in, out *os.File }

func (s *streams) Read(data []byte) (int, error)  { return s.in.Read(data) }
func (s *streams) Write(data []byte) (int, error) { return s.out.Write(data) }
func (s *streams) Close() error {
	_ = s.in.Close()
	return s.out.Close()
}

func (s *server) acceptRequests() {
	for {
		stream, err := s.session.Accept()
		if err != nil {
			return // the host is gone
		}
		go s.answer(stream) // ends with the stream
	}
}

func (s *server) answer(stream net.Conn) {
	defer func() { _ = stream.Close() }()
	kind, data, err := readFrame(stream)
	if err != nil || kind != frameRequest {
		return
	}
	var asked request
	if err := json.Unmarshal(data, &asked); err != nil {
		return
	}
	if asked.Hello {
		if asked.Env != nil {
			s.options.Env = asked.Env // before the first command
		}
		greeting := hello{Version: protocolVersion, Shell: s.shell}
		if s.problem != nil {
			greeting.Error, greeting.Exhausted = s.problem.Error(), sandbox.IsExhausted(s.problem)
		}
		_ = writeMessage(stream, frameHello, greeting)
		return
	}
	if asked.Do == changeRoute || asked.Do == tryToReach || asked.Do == leave || asked.Do == killEverything { // also while a command runs
		s.do(stream, asked)
		return
	}
	s.running.Lock()
	defer s.running.Unlock()
	if asked.Do != "" {
		s.do(stream, asked)
		return
	}
	s.run(stream, asked)
}

// mostForwarded is how many connections to the proxy there may be at one time.
const mostForwarded = 128

// forward gives each connection to the proxy's address to the host.
func (s *server) forward(listener net.Listener) {
	places := make(chan struct{}, mostForwarded)
	for {
		inside, err := listener.Accept()
		if err != nil {
			return
		}
		select {
		case places <- struct{}{}:
		default:
			_ = inside.Close() // it has more than enough
			continue
		}
		go func() { // ends with either side
			defer func() { <-places }()
			outside, done, err := s.routes.open(s.session)
			if err != nil {
				_ = inside.Close()
				return
			}
			defer done()
			splice(inside, outside)
		}()
	}
}

func splice(one, other net.Conn) {
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // an error ends the connection, which is all there is to do
		if half, can := to.(interface{ CloseWrite() error }); can {
			_ = half.CloseWrite()
			return
		}
		_ = to.Close()
	}
	both.Go(func() { pass(one, other) })
	both.Go(func() { pass(other, one) })
	both.Wait()
	_ = one.Close()
	_ = other.Close()
}

// environment is all that a command gets to see of the world outside.
func (s *server) environment() []string {
	variables := map[string]string{}
	if s.options.Inherit {
		variables = inherited()
	}
	maps.Copy(variables, map[string]string{
		"HOME": s.options.Home, "USER": "toryo", "LOGNAME": "toryo", "SHELL": s.shell,
		"LANG": "C.UTF-8", "TERM": "dumb", "CI": "true", "TMPDIR": "/tmp",
		"PATH": s.options.Home + "/.local/bin:" + s.options.Home + "/go/bin:" + searchPath(),
	})
	if s.options.Proxy != "" {
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
			variables[name] = "http://" + s.options.Proxy
		}
		variables["NO_PROXY"], variables["no_proxy"] = "localhost,127.0.0.1,::1", "localhost,127.0.0.1,::1"
	}
	if s.options.Socket != "" {
		// Folders that an engine made belong to it, and git would have nothing to do
		// with them.
		variables["GIT_CONFIG_COUNT"], variables["GIT_CONFIG_KEY_0"], variables["GIT_CONFIG_VALUE_0"] = "1", "safe.directory", "*"
	}
	if s.options.Temporary != "" {
		variables["TMPDIR"] = s.options.Temporary
	}
	maps.Copy(variables, s.options.Env)
	list := make([]string, 0, len(variables))
	for name, value := range variables {
		list = append(list, name+"="+value)
	}
	return list
}

// inherited are the guest's own variables but for those that a cluster adds.
func inherited() map[string]string {
	variables := map[string]string{}
	for _, entry := range os.Environ() {
		name, value, found := strings.Cut(entry, "=")
		if found && name != "HOSTNAME" && !strings.HasPrefix(name, "KUBERNETES_") {
			variables[name] = value
		}
	}
	return variables
}

// searchPath is the guest's own path, which the engine or image set.
func searchPath() string {
	if path := os.Getenv("PATH"); path != "" {
		return path
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

func (s *server) statePath(session string) string {
	return filepath.Join(s.options.State, stateOf(session))
}
