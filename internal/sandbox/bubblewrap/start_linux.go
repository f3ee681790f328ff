package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/cgroup"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	proxyAddress = "127.0.0.1:3128"
	innerID      = "1000"
	guestPath    = "/run/toryo/guest"
	beginTimeout = 30 * time.Second
)

// Start makes a sandbox.
func (e *Engine) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec, err := spec.Validate()
	if err != nil {
		return nil, err
	}
	program, err := exec.LookPath(e.config.Program)
	if err != nil {
		return nil, task.Wrap(task.NotReady, err, "bubblewrap is not installed").WithMend("install the package bubblewrap")
	}
	info, dir, err := e.books.Open(spec)
	if err != nil {
		return nil, err
	}
	e.mine.Store(info.ID, true)
	running, err := e.begin(ctx, program, info, dir, spec)
	if err != nil {
		e.mine.Delete(info.ID)
		return nil, errors.Join(err, sandbox.RemoveTree(dir))
	}
	return running, nil
}

func (e *Engine) begin(ctx context.Context, program string, info sandbox.Info, dir string, spec sandbox.Spec) (*box, error) {
	if err := writeEtc(filepath.Join(dir, "etc")); err != nil {
		return nil, err
	}
	for _, folder := range []string{spec.Workspace, filepath.Join(dir, "home"), filepath.Join(dir, "tmp")} {
		if err := sandbox.Give(folder); err != nil {
			return nil, fmt.Errorf("give %s to the sandbox: %w", folder, err)
		}
	}
	if spec.Snapshot != "" {
		spec.Progress("restoring the environment from a snapshot")
		if err := e.shelf.Get(spec.Snapshot, filepath.Join(dir, "home"), spec.Workspace); err != nil {
			return nil, err
		}
	}
	group, err := e.groups.For(info, spec.Limits)
	if err != nil {
		return nil, err
	}
	started := &box{engine: e, info: info, dir: dir, spec: spec, group: group, ended: make(chan struct{})}
	command, err := e.command(program, dir, spec, group)
	if err != nil {
		return nil, errors.Join(err, started.leaveGroup())
	}
	connection, err := started.launch(command)
	if err != nil {
		return nil, errors.Join(task.Wrap(task.Unavailable, err, "the sandbox cannot be started"), started.leaveGroup())
	}
	if err := e.books.Record(dir, info, command.Process.Pid); err != nil {
		return nil, errors.Join(err, started.Stop(ctx))
	}
	started.gate = e.config.NewGate(spec.Network)
	client, err := guest.NewClient(connection, func(c net.Conn) { started.gate.Serve(c) }, spec.Limits.Disk)
	if err != nil {
		return nil, errors.Join(err, started.Stop(ctx))
	}
	started.client = client
	client.SetEnvironment(spec.Env)
	client.Guard(started.diskWatch(), cgroup.KillsOf(group)) //nolint:contextcheck // it watches for the life of the sandbox, not of the start
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	if err := client.Hello(ctx); err != nil {
		stop := started.Stop(context.WithoutCancel(ctx))
		return nil, errors.Join(fmt.Errorf("%w: %s", err, firstLine(started.complaint.Bytes())), stop)
	}
	return started, nil
}

// command is the program to start: bwrap itself, or for the superuser the
// launcher that becomes an ordinary user before it starts bwrap.
func (e *Engine) command(program, dir string, spec sandbox.Spec, group *cgroup.Group) (*exec.Cmd, error) {
	user, given := sandbox.User()
	places := places{workspace: spec.Workspace, home: filepath.Join(dir, "home"), tmp: filepath.Join(dir, "tmp"),
		etc: filepath.Join(dir, "etc"), guest: e.config.Guest}
	options := guest.Options{Home: sandbox.HomePath, Workspace: sandbox.WorkspacePath, State: sandbox.HomePath + "/.toryo",
		OwnProcesses: true, CountUser: true, Memory: spec.Limits.Memory, Processes: spec.Limits.Processes,
		Proxy: proxyAddress}
	if group != nil {
		options.Memory = 0 // the kernel counts it, and better
	}
	inner, err := guest.Arguments(options)
	if err != nil {
		return nil, err
	}
	if !given {
		arguments := append(arguments(places, e.config.Toolchains, spec.Limits.Memory), inner...)
		return exec.Command(program, arguments...), nil //nolint:noctx // it outlives the call; Stop ends it
	}
	launch := guest.Launch{User: user}
	if group != nil {
		launch.Groups = group.Entrances()
	}
	for name, at := range map[string]*string{"workspace": &places.workspace, "home": &places.home, "tmp": &places.tmp,
		"etc": &places.etc, "guest": &places.guest} {
		launch.Binds = append(launch.Binds, guest.Bind{From: *at, Name: name})
		*at = filepath.Join(guest.LaunchFolder, name)
	}
	launch.Args = append(append([]string{program}, arguments(places, e.config.Toolchains, spec.Limits.Memory)...), inner...)
	outer, err := guest.LaunchArguments(launch)
	if err != nil {
		return nil, err
	}
	command := exec.Command(e.config.Guest, outer...) //nolint:noctx // it outlives the call; Stop ends it
	command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return command, nil
}

// shmShare is the part of the memory that files in /dev/shm may take.
const shmShare = 4

// places are where the sandbox's parts are outside.
type places struct{ workspace, home, tmp, etc, guest string }

// arguments are bwrap's. Later ones go on top of earlier ones.
func arguments(at places, toolchains []string, memory int64) []string {
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
		list = append(list, "--ro-bind", filepath.Join(at.etc, name), "/etc/"+name)
	}
	for _, folder := range toolchains {
		list = append(list, "--ro-bind-try", folder, folder)
	}
	list = append(list, "--proc", "/proc", "--dev", "/dev", "--size", strconv.FormatInt(memory/shmShare, 10), "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
		"--bind", at.tmp, "/tmp", "--symlink", "/tmp", "/var/tmp",
		"--bind", at.home, sandbox.HomePath, "--bind", at.workspace, sandbox.WorkspacePath,
		"--ro-bind", at.guest, guestPath)
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
