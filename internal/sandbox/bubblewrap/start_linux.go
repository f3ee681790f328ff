package bubblewrap

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/local"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

const (
	proxyAddress = "127.0.0.1:3128"
	innerID      = "1000"
	guestPath    = "/run/toryo/guest"
)

// Start makes a sandbox.
func (e *Engine) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec, err := spec.Validate()
	if err != nil {
		return nil, err
	}
	program, err := exec.LookPath(e.config.Program)
	if err != nil {
		return nil, task.Wrap(task.NotReady, err, "bubblewrap is not installed").WithHint("install the package bubblewrap")
	}
	started, err := e.processes.Start(ctx, local.Launch{Spec: spec, NewGate: e.config.NewGate,
		Prepare: func(at local.Folders) error {
			if err := writeEtc(at.Etc); err != nil || spec.Snapshot == "" {
				return err
			}
			spec.Progress("restoring the environment from a snapshot")
			return e.store.Get(ctx, spec.Snapshot, at.Home, at.Workspace)
		},
		Command: func(at local.Folders, group *cgroup.Group) (*exec.Cmd, error) {
			return e.command(program, at, spec, group)
		},
		Stopped: func() { e.store.PrepareNext(context.WithoutCancel(ctx), spec.Snapshot, e.config.Log) },
	})
	if err != nil {
		return nil, err
	}
	return &box{started, e.store, spec.Limits.Disk}, nil
}

// box is one running sandbox.
type box struct {
	*local.Process
	store local.SnapshotStore
	disk  int64 // how much it may take
}

// Snapshot keeps home and workspace.
func (b *box) Snapshot(ctx context.Context, key string, before workdir.Listing) (sandbox.Snapshot, error) {
	made, err := b.store.Put(ctx, key, local.Contents{Home: b.Folders().Home, Workspace: b.Workspace(), Before: before, Most: b.disk})
	made.Kept = "folder"
	return made, err
}

// command is bwrap with the guest in it.
func (e *Engine) command(program string, at local.Folders, spec sandbox.Spec, group *cgroup.Group) (*exec.Cmd, error) {
	guestProgram := e.config.Guest
	paths := map[string]*string{"workspace": &at.Workspace, "home": &at.Home, "tmp": &at.Temporary, "etc": &at.Etc, "guest": &guestProgram}
	stay := append([]string{program}, e.config.Toolchains...)
	return local.Command(e.config.Guest, group, paths, stay, func() ([]string, error) {
		options := guest.Options{Home: sandbox.HomePath, Workspace: sandbox.WorkspacePath, State: sandbox.HomePath + "/.toryo",
			OwnProcesses: true, CountUser: true, Memory: spec.Limits.Memory, Processes: spec.Limits.Processes,
			Proxy: proxyAddress}
		if group != nil {
			options.Memory = 0 // the kernel counts it, and better
		}
		inner, err := guest.Arguments(options)
		outer := arguments(at, guestProgram, e.config.Toolchains, spec.Limits.Memory)
		return append(append([]string{program}, outer...), inner...), err
	})
}

// shmShare is the part of the memory that files in /dev/shm may take.
const shmShare = 4

// arguments are bwrap's. Later ones go on top of earlier ones.
func arguments(at local.Folders, guestProgram string, toolchains []string, memory int64) []string {
	path := []string{"/run/toryo/bin"}
	for _, folder := range toolchains {
		path = append(path, filepath.Join(folder, "bin"))
	}
	path = append(path, "/usr/local/go/bin", "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
	list := []string{"--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--as-pid-1",
		"--hostname", "toryo", "--uid", innerID, "--gid", innerID, "--clearenv", "--setenv", "PATH",
		strings.Join(path, ":"),
		"--ro-bind", "/usr", "/usr"}
	for _, folder := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if target, err := os.Readlink(folder); err == nil {
			list = append(list, "--symlink", target, folder)
		} else {
			list = append(list, "--ro-bind-try", folder, folder)
		}
	}
	for _, path := range hostEtc {
		list = append(list, "--ro-bind-try", path, path)
	}
	for _, name := range []string{"passwd", "group", "hosts", "nsswitch.conf", "resolv.conf"} {
		list = append(list, "--ro-bind", filepath.Join(at.Etc, name), "/etc/"+name)
	}
	list = append(list, "--proc", "/proc", "--dev", "/dev", "--size", strconv.FormatInt(memory/shmShare, 10), "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
		"--bind", at.Temporary, "/tmp", "--symlink", "/tmp", "/var/tmp",
		"--bind", at.Home, sandbox.HomePath, "--bind", at.Workspace, sandbox.WorkspacePath,
		"--ro-bind", guestProgram, guestPath)
	for _, folder := range toolchains { // which may be in the host's /tmp
		list = append(list, "--ro-bind-try", folder, folder)
	}
	// Plans say python and pip; some systems have them under other names only.
	for name, target := range map[string]string{"python": "/usr/bin/python3", "pip": "/usr/bin/pip3"} {
		list = append(list, "--symlink", target, "/run/toryo/bin/"+name)
	}
	return append(list, "--remount-ro", "/", "--chdir", sandbox.WorkspacePath, "--", guestPath)
}

// hostEtc is what toolchains need of the host's settings. Nothing secret is kept
// in these.
var hostEtc = []string{"/etc/alternatives", "/etc/ssl", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/pki/tls", "/etc/pki/ca-trust",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/protocols", "/etc/services",
	"/etc/os-release", "/etc/debian_version", "/etc/maven", "/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/java-11-openjdk", "/etc/fonts"}

func writeEtc(dir string) error {
	files := map[string]string{
		"passwd":        "root:x:0:0:root:/root:/bin/sh\ntoryo:x:" + innerID + ":" + innerID + "::" + sandbox.HomePath + ":/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
		"group":         "root:x:0:\ntoryo:x:" + innerID + ":\nnogroup:x:65534:\n",
		"hosts":         "127.0.0.1 localhost toryo\n::1 localhost\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
		"resolv.conf":   "",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil { //nolint:gosec // the sandbox's user is another
			return task.Wrap(task.DataDir, err, "the sandbox's settings cannot be written")
		}
	}
	return nil
}
