package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Processes starts, lists and reaps the sandboxes of an engine that are processes of
// this machine.
type Processes struct {
	registry ProcessRegistry
	groups   *cgroup.System
	running  sync.Map // the sandboxes that this process runs, by ID
}

// NewProcesses makes the processes of the engine, recorded in a folder. Groups are this
// machine's control groups when nil.
func NewProcesses(engine, dir string, groups *cgroup.System) *Processes {
	if groups == nil {
		groups = new(cgroup.System)
	}
	return &Processes{groups: groups, registry: ProcessRegistry{Dir: dir, Engine: engine, Ended: groups.RemoveOf}}
}

// List names the owner's sandboxes.
func (p *Processes) List(_ context.Context, owner string) ([]sandbox.Info, error) {
	return p.registry.List(owner)
}

// Reap removes the owner's sandboxes that are not to be kept.
func (p *Processes) Reap(_ context.Context, owner string, keep func(sandbox.Info) bool) (int, error) {
	return p.registry.Reap(owner, func(info sandbox.Info) bool {
		_, mine := p.running.Load(info.ID)
		return mine || keep(info)
	})
}

// Launch is how an engine starts the process of one sandbox.
type Launch struct {
	Spec sandbox.Spec // validated
	// Prepare fills the folders of the sandbox before the process is started; may be nil.
	Prepare func(Folders) error
	// Command is what to start: see [Command]. The group is nil where there are none.
	Command func(folders Folders, group *cgroup.Group) (*exec.Cmd, error)
	// NewGate makes the way out; without one there is no network.
	NewGate sandbox.NewGate
	// Stopped is called when everything of a sandbox is gone that was started; may be nil.
	Stopped func()
}

// Folders are the folders of one sandbox on the host.
type Folders struct{ Workspace, Home, Temporary, Etc string }

const startTimeout = 30 * time.Second

// Start starts a process and waits until its guest answers. On error nothing is left
// behind.
func (p *Processes) Start(ctx context.Context, launch Launch) (*Process, error) {
	info, dir, err := p.registry.Open(launch.Spec)
	if err != nil {
		return nil, err
	}
	p.running.Store(info.ID, true)
	started := &Process{of: p, launch: launch, info: info, dir: dir, folders: Folders{Workspace: launch.Spec.Workspace,
		Home: filepath.Join(dir, "home"), Temporary: filepath.Join(dir, "tmp"), Etc: filepath.Join(dir, "etc")}}
	if err := started.start(ctx); err != nil {
		stop := started.Stop(context.WithoutCancel(ctx))
		// All that it printed is there only now that the process has ended.
		if printed := textfmt.FirstLine(string(started.stderr.Bytes())); printed != "" {
			err = sandbox.WithTextReason(fmt.Errorf("%w: %s", err, printed), printed)
		}
		return nil, errors.Join(err, stop)
	}
	return started, nil
}

func (p *Process) start(ctx context.Context) error {
	for _, folder := range []string{p.folders.Workspace, p.folders.Home, p.folders.Temporary} {
		if err := GiveToUser(folder); err != nil {
			return fmt.Errorf("give %s to the sandbox: %w", folder, err)
		}
	}
	if p.launch.Prepare != nil {
		if err := p.launch.Prepare(p.folders); err != nil {
			return err
		}
	}
	var err error
	if p.group, err = p.of.groups.For(p.info, p.launch.Spec.Limits); err != nil {
		return err
	}
	command, err := p.launch.Command(p.folders, p.group)
	if err != nil {
		return err
	}
	connection, err := p.run(command)
	if err != nil {
		return task.Wrap(task.Unavailable, err, "the sandbox cannot be started")
	}
	if err := p.of.registry.Record(p.dir, p.info, command.Process.Pid); err != nil {
		return err
	}
	var serve func(net.Conn)
	if p.launch.NewGate != nil {
		p.gate = p.launch.NewGate(p.launch.Spec.Network)
		serve = p.gate.Serve
	}
	if p.client, err = guest.NewClient(connection, serve, p.launch.Spec.Limits.Disk); err != nil {
		return err
	}
	p.client.SetEnvironment(p.launch.Spec.Env)
	p.client.Guard(p.diskWatch(), cgroup.KillsOf(p.group)) //nolint:contextcheck // it watches for the life of the sandbox, not of the start
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return p.client.Hello(ctx)
}

// Command is the command that starts a program as the user of sandboxes. For the
// superuser that is the launcher of the guest program, which becomes that user and makes
// the paths reachable for it: they are replaced by where they are then, before arguments
// is called for the program and its arguments. The files that stay are found at their own
// paths.
func Command(guestProgram string, group *cgroup.Group, paths map[string]*string, stay []string, arguments func() ([]string, error)) (*exec.Cmd, error) {
	user, given := User()
	launch := guest.Launch{User: user}
	var err error
	if given {
		if group != nil {
			launch.Groups = group.Entrances()
		}
		if launch.Folder, err = guest.LaunchFolder(stay...); err != nil {
			return nil, err
		}
		for name, at := range paths {
			launch.Binds = append(launch.Binds, guest.Bind{From: *at, Name: name})
			*at = filepath.Join(launch.Folder, name)
		}
	}
	if launch.Args, err = arguments(); err != nil {
		return nil, err
	}
	command := exec.Command(launch.Args[0], launch.Args[1:]...) //nolint:noctx // the engine's own program; it outlives the call, and Stop ends it
	if given {
		outer, err := guest.LaunchArguments(launch)
		if err != nil {
			return nil, err
		}
		command = exec.Command(guestProgram, outer...) //nolint:noctx // as above
		command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	return command, nil
}
