package bubblewrap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/local"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Config says how sandboxes are made.
type Config struct {
	Dir        string          // for homes, records and snapshots
	Program    string          // bwrap; looked up when empty
	Guest      string          // the program that serves as the guest; this one when empty
	Toolchains []string        // folders of the host to read, besides /usr; their bin is searched for commands
	NewGate    sandbox.NewGate // the way out
	Groups     *cgroup.System  // this machine's when nil
	Log        *slog.Logger
}

// Engine starts sandboxes with bwrap.
type Engine struct {
	processes *local.Processes
	config    Config
	store     local.SnapshotStore
}

// Name is the adapter's name.
const Name = "bubblewrap"

// New makes an engine. It starts nothing.
func New(config Config) (*Engine, error) {
	if config.Dir == "" || config.NewGate == nil || config.Log == nil {
		return nil, task.Errorf(task.Invalid, "the bubblewrap engine needs a folder, a gate and a log")
	}
	dir, err := filepath.Abs(config.Dir)
	if err != nil {
		return nil, err
	}
	config.Dir = dir
	if config.Guest == "" {
		if config.Guest, err = guest.Program(); err != nil {
			return nil, err
		}
	}
	if config.Program == "" {
		config.Program = "bwrap"
	}
	if err := checkToolchains(config.Toolchains); err != nil {
		return nil, err
	}
	return &Engine{config: config, store: local.SnapshotStore{Dir: filepath.Join(dir, "snapshots")},
		processes: local.NewProcesses(Name, filepath.Join(dir, "sandboxes"), config.Groups)}, nil
}

// checkToolchains refuses folders that would be in the working copy, or hide what a sandbox
// has at fixed paths.
func checkToolchains(folders []string) error {
	for _, folder := range folders {
		inside := folder == sandbox.WorkspacePath || strings.HasPrefix(folder, sandbox.WorkspacePath+"/")
		for _, fixed := range []string{sandbox.WorkspacePath, sandbox.HomePath, "/tmp", guestPath} {
			if inside || strings.HasPrefix(fixed+"/", strings.TrimSuffix(folder, "/")+"/") {
				return task.Errorf(task.Invalid, "the toolchain in %s cannot be used in a sandbox, which has files of its own there", folder).
					WithHint("install it in another folder")
			}
		}
	}
	return nil
}

// Name is the adapter's name.
func (e *Engine) Name() string { return Name }

// Capabilities implements [sandbox.Engine].
func (e *Engine) Capabilities() sandbox.Capabilities {
	return sandbox.Capabilities{Network: true, Snapshots: true, Layers: true, FileOwner: local.NewOwner()}
}

// Check tries whether namespaces can be made.
func (e *Engine) Check(ctx context.Context) error {
	program, err := exec.LookPath(e.config.Program)
	if err != nil {
		return task.Wrap(task.NotReady, err, "bubblewrap is not installed").WithHint("install the package bubblewrap")
	}
	command := exec.CommandContext(ctx, program, "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "true")
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	command.WaitDelay = time.Second // if it is killed before its child knows that it is to end with it
	output, err := command.CombinedOutput()
	if err != nil {
		return task.Wrap(task.NotReady, fmt.Errorf("%w: %s", err, textfmt.FirstLine(string(output))), "bubblewrap cannot make a sandbox").
			WithHint("allow user namespaces for ordinary users on this machine")
	}
	return nil
}

// Identity changes when the host's packages do.
func (e *Engine) Identity(context.Context, string) (string, error) {
	hash := sha256.New()
	for _, file := range []string{"/etc/os-release", "/var/lib/dpkg/status", "/var/lib/rpm/rpmdb.sqlite", "/lib/apk/db/installed",
		"/usr/bin", "/usr/lib", "/usr/local/bin", "/usr/local/go/VERSION", "/usr/local/lib"} {
		if info, err := os.Stat(file); err == nil {
			fmt.Fprintln(hash, file, info.Size(), info.ModTime().UnixNano())
		}
	}
	return "host-" + hex.EncodeToString(hash.Sum(nil))[:32], nil
}

// Sweep removes what was left of snapshots.
func (e *Engine) Sweep(context.Context) error { return e.store.Sweep() }

// Snapshots lists the snapshots, least recently used first.
func (e *Engine) Snapshots(context.Context) ([]sandbox.Snapshot, error) { return e.store.All() }

// RemoveSnapshot removes a snapshot.
func (e *Engine) RemoveSnapshot(_ context.Context, key string) error { return e.store.Remove(key) }

// List returns the owner's sandboxes.
func (e *Engine) List(ctx context.Context, owner string) ([]sandbox.Info, error) {
	return e.processes.List(ctx, owner)
}

// Reap removes the owner's sandboxes that are not to be kept.
func (e *Engine) Reap(ctx context.Context, owner string, keep func(sandbox.Info) bool) (int, error) {
	return e.processes.Reap(ctx, owner, keep)
}
