package landlock

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	kernel "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/local"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
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
	processes *local.Processes
	config    Config
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
		if config.Guest, err = guest.Program(); err != nil {
			return nil, err
		}
	}
	return &Engine{config: config, processes: local.NewProcesses(Name, filepath.Join(dir, "sandboxes"), config.Groups)}, nil
}

// Name is the adapter's name.
func (e *Engine) Name() string { return Name }

// Capabilities implements [sandbox.Engine].
func (e *Engine) Capabilities() sandbox.Capabilities {
	return sandbox.Capabilities{HostPaths: true, FileOwner: local.NewOwner()}
}

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
		return 0, task.Wrap(task.NotReady, err, "this kernel has no Landlock").WithHint("use Linux 5.13 or later with Landlock enabled")
	}
	return version, nil
}

// Identity is of no use without snapshots.
func (e *Engine) Identity(context.Context, string) (string, error) { return "", errNoSnapshots() }

// Sweep finds nothing: nothing is kept.
func (e *Engine) Sweep(context.Context) error { return nil }

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
	started, err := e.processes.Start(ctx, local.Launch{Spec: spec, Command: func(at local.Folders, group *cgroup.Group) (*exec.Cmd, error) {
		return e.command(at, spec.Limits, group)
	}})
	if err != nil {
		return nil, err
	}
	return &box{started}, nil
}

// box is one confined process.
type box struct{ *local.Process }

// Snapshot is not supported.
func (b *box) Snapshot(context.Context, string, workdir.Listing) (sandbox.Snapshot, error) {
	return sandbox.Snapshot{}, errNoSnapshots()
}

// command is the guest, which confines itself.
func (e *Engine) command(at local.Folders, limits sandbox.Limits, group *cgroup.Group) (*exec.Cmd, error) {
	program := e.config.Guest
	paths := map[string]*string{"workspace": &at.Workspace, "home": &at.Home, "tmp": &at.Temporary, "guest": &program}
	command, err := local.Command(e.config.Guest, group, paths, e.config.Toolchains, func() ([]string, error) {
		options := guest.Options{Home: at.Home, Workspace: at.Workspace, State: filepath.Join(at.Home, ".toryo"), CountUser: true,
			Memory: limits.Memory, Processes: limits.Processes, Temporary: at.Temporary, Confine: Name,
			Readable: append(append([]string{filepath.Dir(program)}, readable...), e.config.Toolchains...),
			Writable: []string{at.Workspace, at.Home, at.Temporary}}
		if group != nil {
			options.Memory = 0 // the kernel counts it, and better
		}
		arguments, err := guest.Arguments(options)
		return append([]string{program}, arguments...), err
	})
	if err != nil {
		return nil, err
	}
	command.Env = []string{"PATH=" + e.searchPath()}
	return command, nil
}

// List returns the owner's sandboxes.
func (e *Engine) List(ctx context.Context, owner string) ([]sandbox.Info, error) {
	return e.processes.List(ctx, owner)
}

// Reap removes the owner's sandboxes that are not to be kept.
func (e *Engine) Reap(ctx context.Context, owner string, keep func(sandbox.Info) bool) (int, error) {
	return e.processes.Reap(ctx, owner, keep)
}
