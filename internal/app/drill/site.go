package drill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// site is the installation that is broken.
type site struct {
	drill   Drill
	shared  []string // folders that all servers have in common
	servers []*process
	agents  []*process
	lines   []*line
	disks   map[string]*disk // by the name of the process; none if disks do not fill up
	tally   tally
	// database is held by whoever breaks it.
	database sync.Mutex
	given    atomic.Int64 // tasks
	issues   []Item       // that the forge has taken
	// addresses are those of the servers.
	addresses []*url.URL
	// client is an operator's. Its server is the last, which is not killed if there are enough
	// of them.
	client *wire.Client
}

// work is what does the tasks: it takes a moment, and leaves one file with one
// line, however often it was begun. It looks for what an earlier run has left. It tries again
// while the disk is full: there may be room again when the agent looks why it has failed.
const work = `sleep 0.$((RANDOM % 10)); until mkdir -p done && echo "task $1" >"done/$1"; do sleep 1; done; sleep $((RANDOM % 5)).$((RANDOM % 10)); echo "did $1"`

// reviewDelay is how long after its last commit a pull request is reviewed: soon, for how long the
// drill is, so that reviews are among what is broken.
func (d Drill) reviewDelay() time.Duration {
	return min(time.Minute, max(time.Second, (d.Lasts/60).Round(time.Second)))
}

// configuration is that of all processes but for what is said by flags.
func (d Drill) configuration() string {
	text := `log: {level: info}
language: en
max_attempts: 1000
sync_interval: 20s
leases: {duration: 6s, renew_every: 1s}
limits: {per_repository: 0, per_agent: 0}
review: {delay: ` + d.reviewDelay().String() + `}
sandbox: {kind: ` + d.Sandbox + `}
executors:
  development: [bash, -c, '` + strings.ReplaceAll(work, "'", "''") + `', x, '{{.Number}}']
  review: [echo, fine]
`
	if d.Database != "" {
		text += "database: {driver: postgres}\n"
	}
	return text + d.Place.Settings()
}

// build makes the installation and waits until all of it works.
func (d Drill) build(ctx context.Context) (*site, error) {
	if d.Database == "" {
		d.Servers = 1
	} else {
		d.Environ = append(d.Environ, "TORYO_DATABASE_URL="+d.Database)
	}
	s := &site{disks: map[string]*disk{}}
	if d.Place == nil {
		d.Place = onBoard{s}
		s.shared = []string{"board"}
	}
	s.drill = d
	if err := os.WriteFile(filepath.Join(d.Dir, "toryo.yaml"), []byte(d.configuration()), 0o600); err != nil {
		return nil, err
	}
	if err := s.startAll(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *site) startAll(ctx context.Context) error {
	addresses, err := s.startServers(ctx)
	if err != nil {
		return err
	}
	s.addresses = addresses
	if err := s.importRepository(ctx); err != nil {
		return err
	}
	token, err := s.toryo(ctx, "token", "create", "--role", "admin", "--name", "drill", "--data", s.data(0))
	if err != nil {
		return err
	}
	s.client = &wire.Client{Server: addresses[len(addresses)-1].String(), Token: strings.TrimSpace(token), HTTP: new(http.Client)}
	for i := range s.drill.Agents {
		way, err := newLine(addresses, s.drill.Seed, uint64(i)+1)
		if err != nil {
			return err
		}
		s.lines = append(s.lines, way)
		if err := s.startAgent(ctx, i, way); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) data(server int) string {
	return filepath.Join(s.drill.Dir, fmt.Sprint("server", server))
}

func (s *site) startServers(ctx context.Context) ([]*url.URL, error) {
	var addresses []*url.URL
	for i := range s.drill.Servers {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		name := fmt.Sprint("server", i)
		if err := s.makeFolder(name); err != nil {
			return nil, err
		}
		if err := s.share(i); err != nil {
			return nil, err
		}
		server := &process{drill: s.drill, name: name, ready: "listening on",
			args: []string{"serve", "--addr", address, "--data", s.data(i)}}
		s.servers = append(s.servers, server)
		if err := server.start(ctx); err != nil {
			return nil, err
		}
		addresses = append(addresses, &url.URL{Scheme: "http", Host: address})
	}
	return addresses, nil
}

// folders are the names of those in which processes keep what they have.
func (s *site) folders() (names []string) {
	for _, p := range slices.Concat(s.servers, s.agents) {
		names = append(names, p.name)
	}
	return append(names, s.shared...)
}

// makeFolder makes the data directory of a process, which may fill up.
func (s *site) makeFolder(of string) error {
	dir := filepath.Join(s.drill.Dir, of)
	if err := os.MkdirAll(dir, 0o700); err != nil || !s.drill.SmallDisks {
		return err
	}
	made, err := newDisk(dir)
	if err == nil {
		s.disks[of] = made
	}
	return err
}

// share makes links in the data directory of a server. The repositories of the board are
// one server's own, so that several can only have them together; all else is each
// server's.
func (s *site) share(server int) error {
	for _, folder := range s.shared {
		common := filepath.Join(s.drill.Dir, folder)
		if err := os.MkdirAll(common, 0o700); err != nil {
			return err
		}
		if err := os.Symlink(common, filepath.Join(s.data(server), folder)); err != nil {
			return err
		}
	}
	return nil
}

// freeAddress is one on which nobody listens. It is kept over restarts.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is at once
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (s *site) startAgent(ctx context.Context, number int, way *line) error {
	oneTime, err := s.toryo(ctx, "agent", "token", "create", "--data", s.data(0))
	if err != nil {
		return err
	}
	name := fmt.Sprint("agent", number)
	if err := s.makeFolder(name); err != nil {
		return err
	}
	agent := &process{drill: s.drill, name: name, ready: "asks", args: []string{
		"agent", "--server", way.url(), "--name", name, "--parallel", strconv.Itoa(s.drill.Parallel), "--enrol", strings.TrimSpace(oneTime),
		"--data", filepath.Join(s.drill.Dir, name),
	}}
	s.agents = append(s.agents, agent)
	return agent.start(ctx)
}

// importRepository makes a repository and puts it on the forge.
func (s *site) importRepository(ctx context.Context) error {
	dir := filepath.Join(s.drill.Dir, "app")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("# A drill\n"), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "."},
		{"-c", "user.name=Drill", "-c", "user.email=drill@localhost", "commit", "--quiet", "--message=Begin"},
	} {
		git := exec.CommandContext(ctx, "git", args...)
		git.Dir, git.Env = dir, s.drill.Environ
		if said, err := git.CombinedOutput(); err != nil {
			return task.Wrap(task.NotReady, fmt.Errorf("%w: %s", err, said), "a repository cannot be made")
		}
	}
	return s.drill.Place.Import(ctx, dir)
}

// toryo runs a command that ends by itself and returns what it printed.
func (s *site) toryo(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, s.drill.Program, args...)
	command.Env, command.Dir = s.drill.Environ, s.drill.Dir
	var said, trouble bytes.Buffer
	command.Stdout, command.Stderr = &said, &trouble
	if err := command.Run(); err != nil {
		return "", task.Wrap(task.Internal, fmt.Errorf("%w: %s", err, trouble.String()), "toryo "+strings.Join(args[:2], " ")+" failed")
	}
	return said.String(), nil
}

// endFaults ends all faults on the lines.
func (s *site) endFaults() {
	for _, way := range s.lines {
		way.endFaults()
	}
}

// close ends everything. It may be called again.
func (s *site) close() error {
	var err error
	for _, p := range slices.Concat(s.agents, s.servers) {
		p.lives()
		err = errors.Join(err, p.stop(os.Interrupt))
	}
	for _, way := range s.lines {
		err = errors.Join(err, way.close())
	}
	for name, one := range s.disks {
		if s.drill.Keep {
			if err := os.CopyFS(filepath.Join(s.drill.Dir, name+".kept"), os.DirFS(one.dir)); err != nil {
				s.drill.printf("not all that %s wrote is kept: %v", name, err)
			}
		}
		err = errors.Join(err, one.close())
	}
	s.lines, s.disks = nil, nil
	return err
}
