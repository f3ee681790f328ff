package landlock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	kernel "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
)

// Config says how sandboxes are made.
type Config struct {
	Dir        string         // for homes and records
	Guest      string         // the program that serves as the guest; this one when empty
	Toolchains []string       // folders of the host to read, besides the usual; their bin is searched for commands
	Groups     *cgroup.System // this machine's when nil
}

// Engine starts confined processes.
type Engine struct {
	config Config
	books  sandbox.Books
	groups *cgroup.System

	mine sync.Map // the sandboxes that this process runs, by ID
}

// Name is the adapter's name, and that of its confinement in [guest.Main].
const Name = "landlock"

// New makes an engine. It starts nothing.
func New(config Config) (*Engine, error) {
	if config.Dir == "" {
		return nil, task.Errorf(task.Invalid, "the landlock engine needs a folder")
	}
	dir, err := filepath.Abs(config.Dir)
	if err != nil {
		return nil, err
	}
	if config.Guest == "" {
		if config.Guest, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
	}
	if config.Groups == nil {
		config.Groups = new(cgroup.System)
	}
	return &Engine{config: config, groups: config.Groups,
		books: sandbox.Books{Dir: filepath.Join(dir, "sandboxes"), Engine: Name, Ended: config.Groups.RemoveOf}}, nil
}

// Name is the adapter's name.
func (e *Engine) Name() string { return Name }

// Images implements [sandbox.Engine].
func (e *Engine) Images() bool { return false }

// Check asks the kernel for Landlock.
func (e *Engine) Check(context.Context) error {
	_, err := Version()
	return err
}

// Version is the version of the kernel's Landlock interface. NotReady means that
// it has none.
func Version() (int, error) {
	version, err := kernel.LandlockGetABIVersion()
	if err != nil || version < 1 {
		return 0, task.Wrap(task.NotReady, err, "this kernel has no Landlock").WithMend("use Linux 5.13 or later with Landlock enabled")
	}
	return version, nil
}

// List names the owner's sandboxes.
func (e *Engine) List(_ context.Context, owner string) ([]sandbox.Info, error) {
	return e.books.List(owner)
}

// Reap removes the owner's sandboxes that are not to be kept.
func (e *Engine) Reap(_ context.Context, owner string, keep func(sandbox.Info) bool) (int, error) {
	return e.books.Reap(owner, func(info sandbox.Info) bool {
		_, mine := e.mine.Load(info.ID)
		return mine || keep(info)
	})
}

// Identity is of no use without snapshots.
func (e *Engine) Identity(context.Context, string) (string, error) { return "", errNoSnapshots() }

// Snapshots are not kept.
func (e *Engine) Snapshots(context.Context) ([]sandbox.Snapshot, error) { return nil, nil }

// RemoveSnapshot has nothing to remove.
func (e *Engine) RemoveSnapshot(_ context.Context, key string) error { return sandbox.ValidateKey(key) }

func errNoSnapshots() error {
	return task.Errorf(task.Unsupported, "a process confined with Landlock has no snapshots")
}

// searchPath is where commands are looked for: the toolchains, then as on the host,
// then the usual folders, which the host's own path may lack.
func (e *Engine) searchPath() string {
	var folders []string
	for _, toolchain := range e.config.Toolchains {
		folders = append(folders, filepath.Join(toolchain, "bin"))
	}
	folders = append(folders, filepath.SplitList(os.Getenv("PATH"))...)
	return strings.Join(append(folders, "/usr/local/bin", "/usr/bin", "/bin"), ":")
}

const beginTimeout = 30 * time.Second

// Start starts a confined process.
func (e *Engine) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec, err := spec.Validate()
	if err != nil {
		return nil, err
	}
	if spec.Network != sandbox.NoNetwork {
		return nil, task.Errorf(task.Unsupported, "a process confined with Landlock has no network; the policy %s cannot be had", spec.Network)
	}
	if spec.Snapshot != "" {
		return nil, errNoSnapshots()
	}
	if err := e.Check(ctx); err != nil {
		return nil, err
	}
	info, dir, err := e.books.Open(spec)
	if err != nil {
		return nil, err
	}
	e.mine.Store(info.ID, true)
	started := &box{engine: e, info: info, dir: dir, spec: spec}
	if err := started.begin(ctx); err != nil {
		return nil, errors.Join(err, started.Stop(context.WithoutCancel(ctx)))
	}
	return started, nil
}

// command is the guest, or for the superuser the launcher that becomes an
// ordinary user and makes the folders reachable for it.
func (e *Engine) command(dir string, spec sandbox.Spec, group *cgroup.Group) (*exec.Cmd, error) {
	user, given := sandbox.User()
	workspace, home, temporary, program := spec.Workspace, filepath.Join(dir, "home"), filepath.Join(dir, "tmp"), e.config.Guest
	var launch guest.Launch
	if given {
		launch = guest.Launch{User: user}
		if group != nil {
			launch.Groups = group.Entrances()
		}
		for name, at := range map[string]*string{"workspace": &workspace, "home": &home, "tmp": &temporary, "guest": &program} {
			launch.Binds = append(launch.Binds, guest.Bind{From: *at, Name: name})
			*at = filepath.Join(guest.LaunchFolder, name)
		}
	}
	options := guest.Options{Home: home, Workspace: workspace, State: filepath.Join(home, ".toryo"), CountUser: true,
		Memory: spec.Limits.Memory, Processes: spec.Limits.Processes, Temporary: temporary, Confine: Name,
		Readable: append(append([]string{filepath.Dir(program)}, readable...), e.config.Toolchains...),
		Writable: []string{workspace, home, temporary}}
	if group != nil {
		options.Memory = 0 // the kernel counts it, and better
	}
	arguments, err := guest.Arguments(options)
	if err != nil {
		return nil, err
	}
	if !given {
		return exec.Command(program, arguments...), nil //nolint:noctx // it outlives the call; Stop ends it
	}
	launch.Args = append([]string{program}, arguments...)
	outer, err := guest.LaunchArguments(launch)
	if err != nil {
		return nil, err
	}
	command := exec.Command(e.config.Guest, outer...) //nolint:noctx // it outlives the call; Stop ends it
	command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return command, nil
}
