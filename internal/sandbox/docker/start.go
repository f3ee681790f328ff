package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/disk"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/local"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	proxyAddress = "127.0.0.1:3128"
	beginTimeout = 60 * time.Second
	// spareThreads lets the guest see that the processes are too many before the
	// engine makes every fork fail. The engine counts threads.
	spareThreads = 256
	// shmShare is the part of the memory that files in /dev/shm may take.
	shmShare = 4
)

// Start makes and starts a container.
func (e *Engine) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec, err := spec.Validate()
	if err != nil {
		return nil, err
	}
	if err := e.Check(ctx); err != nil {
		return nil, err
	}
	name := spec.Image
	if spec.Snapshot != "" {
		name = snapshotImage + ":" + spec.Snapshot
		if !e.store.Has(spec.Snapshot) {
			return nil, task.Errorf(task.NotFound, "there is no snapshot %s", spec.Snapshot)
		}
		if _, err := e.api.ImageInspect(ctx, name); err != nil {
			return nil, failed(err, "the snapshot's image is not there")
		}
	}
	image, err := e.image(ctx, name, spec.Progress)
	if err != nil {
		return nil, err
	}
	volume, err := e.guest.fill(ctx, e, image.ID)
	if err != nil {
		return nil, err
	}
	user, _ := local.User()
	if err := local.GiveToUser(spec.Workspace); err != nil {
		return nil, fmt.Errorf("give the workspace to the sandbox: %w", err)
	}
	if spec.Snapshot != "" {
		spec.Progress("restoring the environment from a snapshot")
		if err := e.store.Get(ctx, spec.Snapshot, "", spec.Workspace); err != nil {
			return nil, err
		}
	}
	return e.begin(ctx, spec, image, volume, user)
}

func (e *Engine) begin(ctx context.Context, spec sandbox.Spec, image client.ImageInspectResult, volume string, user int) (sandbox.Sandbox, error) {
	made, err := e.create(ctx, spec, image, volume, user)
	if err != nil {
		return nil, err
	}
	e.mine.Store(made, true)
	started := &box{engine: e, spec: spec, info: sandbox.Info{ID: made, Engine: Name, Owner: spec.Owner, Task: spec.Task,
		Generation: spec.Generation, Started: time.Now().UTC(), Running: true}}
	started.disks = e.disks(ctx, spec.Workspace)
	started.env = environment(image, spec)
	if err := started.connect(ctx, user); err != nil {
		return nil, errors.Join(started.explain(err), started.Stop(context.WithoutCancel(ctx)))
	}
	return started, nil
}

// disks are the workspace and, if it is on this machine and can be seen, the
// folder in which the engine keeps what containers write.
func (e *Engine) disks(ctx context.Context, workspace string) []string {
	about, err := e.api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return []string{workspace}
	}
	if _, err := disk.FreeSpace(about.Info.DockerRootDir); err != nil {
		return []string{workspace}
	}
	return []string{workspace, about.Info.DockerRootDir}
}

// environment is the variables for commands: the image's and those of the
// specification. The guest is told of them when it is greeted: among its arguments
// everybody on the machine could read them.
func environment(image client.ImageInspectResult, spec sandbox.Spec) map[string]string {
	env := map[string]string{}
	if image.Config != nil {
		for _, variable := range image.Config.Env {
			if name, value, found := strings.Cut(variable, "="); found && name != "PATH" && name != "HOME" {
				env[name] = value
			}
		}
	}
	maps.Copy(env, spec.Env)
	return env
}

func (e *Engine) create(ctx context.Context, spec sandbox.Spec, image client.ImageInspectResult, volume string, user int) (string, error) {
	arguments, err := guest.Arguments(guest.Options{Home: sandbox.HomePath, Workspace: sandbox.WorkspacePath, State: sandbox.HomePath + "/.toryo",
		OwnProcesses: true, Memory: spec.Limits.Memory, Processes: spec.Limits.Processes, Proxy: proxyAddress})
	if err != nil {
		return "", err
	}
	mounts := []mount.Mount{{Type: mount.TypeBind, Source: spec.Workspace, Target: sandbox.WorkspacePath}, guestMount(volume, true)}
	if spec.Also != "" {
		mounts = append(mounts, mount.Mount{Type: mount.TypeBind, Source: spec.Workspace, Target: spec.Also})
	}
	memory := spec.Limits.Memory + sandbox.SpareMemory
	threads := int64(2*spec.Limits.Processes + spareThreads)
	// A request that is cut off makes a container of which nobody knows the name. When
	// the context has ended meanwhile, what comes next removes it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginTimeout)
	defer cancel()
	made, err := e.api.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{
			Image: image.ID, User: fmt.Sprintf("%d:%d", user, local.Group()), Entrypoint: []string{guestFolder + "/" + guestFile}, Cmd: arguments,
			OpenStdin: true, StdinOnce: true, AttachStdin: true, AttachStdout: true, AttachStderr: true, Hostname: "toryo",
			WorkingDir: "/", NetworkDisabled: true, Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
			Labels: map[string]string{labelOwner: spec.Owner, labelTask: spec.Task, labelGeneration: strconv.FormatInt(spec.Generation, 10)},
		},
		HostConfig: &container.HostConfig{
			ShmSize: spec.Limits.Memory / shmShare, NetworkMode: "none", CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"}, IpcMode: "private",
			LogConfig: container.LogConfig{Type: "none"}, // what the guest prints is its session with us
			Mounts:    mounts,
			Resources: container.Resources{Memory: memory, MemorySwap: memory,
				NanoCPUs: int64(spec.Limits.CPUs * 1e9), PidsLimit: &threads},
		},
	})
	if err != nil {
		return "", failed(err, "the container cannot be made")
	}
	return made.ID, nil
}

// connect starts the container and waits for its guest.
func (b *box) connect(ctx context.Context, user int) error {
	api, id := b.engine.api, b.info.ID
	if b.spec.Snapshot == "" {
		if err := b.makeHome(ctx, user); err != nil {
			return err
		}
	}
	attached, err := api.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return failed(err, "the container cannot be attached to")
	}
	reader, writer := io.Pipe()
	go func() { // ends with the connection
		_, err := stdcopy.StdCopy(writer, &b.stderr, attached.Reader)
		_ = writer.CloseWithError(errors.Join(err, io.EOF))
	}()
	if _, err := api.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		attached.Close()
		return failed(err, "the container cannot be started")
	}
	b.gate = b.engine.config.NewGate(b.spec.Network)
	b.client, err = guest.NewClient(&attachment{Reader: reader, connection: attached.Conn}, func(c net.Conn) { b.gate.Serve(c) }, b.spec.Limits.Disk)
	if err != nil {
		attached.Close()
		return err
	}
	b.client.SetEnvironment(b.env)
	b.client.Guard(b.diskWatch(), nil) //nolint:contextcheck // it watches for the life of the sandbox, not of the start
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	return b.client.Hello(ctx)
}

// makeHome makes the home folder, which images do not have.
func (b *box) makeHome(ctx context.Context, user int) error {
	var archive bytes.Buffer
	header := tar.Header{Name: strings.TrimPrefix(sandbox.HomePath, "/") + "/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: user, Gid: user}
	if err := writeTar(&archive, header, nil); err != nil {
		return err
	}
	_, err := b.engine.api.CopyToContainer(ctx, b.info.ID, client.CopyToContainerOptions{DestinationPath: "/", Content: &archive})
	if err != nil {
		return failed(err, "the home folder cannot be made")
	}
	return nil
}

// attachment is the connection to the guest's standard streams.
type attachment struct {
	io.Reader
	connection net.Conn
}

func (a *attachment) Write(data []byte) (int, error) { return a.connection.Write(data) }
func (a *attachment) Close() error                   { return a.connection.Close() }
