package docker

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

var _ sandbox.Containers = (*Engine)(nil)

const (
	// noNetwork is the engine's name of a network that leads nowhere.
	noNetwork = "none"
	// keptOutput is how much is kept of what a program prints: the end of it.
	keptOutput = 64 << 10
	// diskEvery is how often the files are measured that a program writes.
	diskEvery = 2 * time.Second
	// handlingTime is how long it may take to copy files into a container, and to read those that
	// it leaves.
	handlingTime = 30 * time.Minute
)

// Image looks at an image.
func (e *Engine) Image(ctx context.Context, name string) (sandbox.Image, error) {
	found, err := e.api.ImageInspect(ctx, name)
	if err != nil {
		return sandbox.Image{}, failed(err, "the image "+name+" is not there")
	}
	image := sandbox.Image{Digest: found.ID}
	if found.Config != nil {
		image.Folder, image.Volumes = found.Config.WorkingDir, slices.Sorted(maps.Keys(found.Config.Volumes))
	}
	return image, nil
}

// archived is what a function writes, as it is read. Whoever reads it calls end, upon which the
// writer ends too. That returns the writer's own error, which the reader's then comes from.
func archived(write func(*tar.Writer) error) (files io.Reader, end func() error) {
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() { // ends when the reader is closed, or all is written
		to := &readEnd{PipeWriter: writer}
		archive := tar.NewWriter(to)
		err := write(archive)
		if err == nil {
			err = archive.Close()
		}
		_ = writer.CloseWithError(err) // always nil
		if to.closed {                 // what follows from that is no error of the writer
			err = nil
		}
		ended <- err
	}()
	return reader, func() error {
		_ = reader.Close() // always nil
		return <-ended
	}
}

// readEnd is a pipe that knows whether its reader has closed it.
type readEnd struct {
	*io.PipeWriter

	closed bool
}

func (r *readEnd) Write(data []byte) (int, error) {
	written, err := r.PipeWriter.Write(data)
	r.closed = r.closed || err != nil
	return written, err
}

// Once runs a program in a container of its own.
func (e *Engine) Once(ctx context.Context, once sandbox.Once) (ended sandbox.Ended, err error) {
	id, err := e.createOnce(ctx, once)
	if err != nil {
		return sandbox.Ended{}, err
	}
	e.mine.Store(id, true)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, e.remove(ctx, id))
		e.mine.Delete(id)
	}()
	if once.Files != nil {
		files, end := archived(once.Files)
		handling, cancel := context.WithTimeoutCause(ctx, handlingTime, errHandling)
		defer cancel()
		_, err := e.api.CopyToContainer(handling, id, client.CopyToContainerOptions{DestinationPath: "/", Content: files})
		if own := end(); own != nil {
			return sandbox.Ended{}, own
		}
		if err != nil {
			return sandbox.Ended{}, failed(err, "the files cannot be copied into the container")
		}
	}
	if len(once.Program) > 0 {
		if ended, err = e.runOnce(ctx, id, once); err != nil {
			return sandbox.Ended{}, err
		}
	}
	if once.Read != nil {
		handling, cancel := context.WithTimeoutCause(ctx, handlingTime, errHandling)
		defer cancel()
		err = once.Read(handling, containerFiles{e, id})
	}
	return ended, err
}

var errHandling = task.Errorf(task.Unavailable, "copying the files of a container took too long")

func (e *Engine) createOnce(ctx context.Context, once sandbox.Once) (string, error) {
	limits := once.Limits.OrDefaults()
	threads := int64(2*limits.Processes + spareThreads)
	network := container.NetworkMode("default")
	if !once.Network {
		network = noNetwork
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(once.Env)) {
		env = append(env, name+"="+once.Env[name])
	}
	program := once.Program
	if len(program) == 0 {
		program = []string{"none"} // which is never started
	}
	over := time.Now().Add(once.Timeout + beginTimeout + 2*handlingTime + measureTimeout + stopTimeout)
	// As for sandboxes: a request that is cut off makes a container of which nobody knows the name.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginTimeout)
	defer cancel()
	made, err := e.api.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{
			Image: once.Image, User: "0:0", Entrypoint: program, Cmd: []string{}, Env: env, WorkingDir: once.Folder, Hostname: "task", NetworkDisabled: !once.Network,
			OpenStdin: true, StdinOnce: true, AttachStdin: true, AttachStdout: true, AttachStderr: true, Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
			Labels: map[string]string{labelOwner: once.Owner, labelTask: sandbox.ScoreTask, labelGeneration: strconv.FormatInt(over.Unix(), 10)},
		},
		HostConfig: &container.HostConfig{
			ShmSize: limits.Memory / shmShare, NetworkMode: network, CapDrop: []string{"NET_RAW", "MKNOD"}, SecurityOpt: []string{"no-new-privileges"}, IpcMode: "private",
			LogConfig: container.LogConfig{Type: "none"},
			Resources: container.Resources{Memory: limits.Memory, MemorySwap: limits.Memory, NanoCPUs: int64(limits.CPUs * 1e9), PidsLimit: &threads},
		},
	})
	if err != nil {
		return "", failed(err, "the container cannot be made")
	}
	return made.ID, nil
}

// runOnce runs the program of a container, which is its first process: when that ends, the
// kernel ends all others.
func (e *Engine) runOnce(ctx context.Context, id string, once sandbox.Once) (sandbox.Ended, error) {
	attached, err := e.api.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return sandbox.Ended{}, failed(err, "the container cannot be attached to")
	}
	var said tail
	printed := make(chan struct{})
	go func() { // ends with the connection
		defer close(printed)
		_, _ = stdcopy.StdCopy(&said, &said, attached.Reader) // how it ended, the engine says
	}()
	defer attached.Close()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	wait := e.api.ContainerWait(waiting, id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	began := time.Now()
	if _, err := e.api.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return sandbox.Ended{}, failed(err, "the container cannot be started")
	}
	ended, err := e.await(ctx, id, once, wait)
	if err != nil {
		return sandbox.Ended{}, err
	}
	select { // what is still on its way
	case <-printed:
	case <-time.After(measureTimeout):
		attached.Close()
		<-printed
	}
	ended.Output, ended.Duration = said.end(keptOutput), time.Since(began)
	return ended, nil
}

// await waits until the program has ended, or kills it for a limit.
func (e *Engine) await(ctx context.Context, id string, once sandbox.Once, wait client.ContainerWaitResult) (ended sandbox.Ended, err error) {
	limit := time.NewTimer(once.Timeout)
	defer limit.Stop()
	measure := time.NewTimer(diskEvery)
	defer measure.Stop()
	measured, began := make(chan int64, 1), time.Now()
	measuring, stop := context.WithCancel(ctx)
	var measures sync.WaitGroup
	defer measures.Wait()
	defer stop()
	most := once.Limits.OrDefaults().Disk
	kill := func(why sandbox.Limit) error {
		if ended.Exceeded != sandbox.NoLimit {
			return nil
		}
		ended.Exceeded = why
		if _, err := e.api.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"}); err != nil && !errdefs.IsConflict(err) && !errdefs.IsNotFound(err) {
			return failed(err, "the container cannot be ended")
		}
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return ended, context.Cause(ctx)
		case <-limit.C:
			err = kill(sandbox.TimeLimit)
		case <-measure.C: // beside this, since it can take long
			began = time.Now()
			measures.Go(func() { measured <- e.taken(measuring, id) })
		case taken := <-measured:
			if taken > most {
				err = kill(sandbox.DiskLimit)
			}
			measure.Reset(max(diskEvery, time.Since(began)))
		case err := <-wait.Error:
			return ended, failed(err, "the container cannot be waited for")
		case result := <-wait.Result:
			ended.ExitCode = int(result.StatusCode)
			if result.Error != nil {
				return ended, task.Errorf(task.Unavailable, "the container did not end well: %s", result.Error.Message)
			}
			err := e.exceeded(ctx, id, &ended)
			return ended, err
		}
		if err != nil {
			return ended, err
		}
	}
}

// exceeded finds out whether the kernel has ended the program for its memory.
func (e *Engine) exceeded(ctx context.Context, id string, ended *sandbox.Ended) error {
	found, err := e.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return failed(err, "the container cannot be looked at")
	}
	if state := found.Container.State; ended.Exceeded == sandbox.NoLimit && state != nil && state.OOMKilled {
		ended.Exceeded = sandbox.MemoryLimit
	}
	return nil
}

// size is what a container has written, or 0 if that cannot be said now.
func (e *Engine) size(ctx context.Context, id string) int64 {
	found, err := e.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{Size: true})
	if err != nil || found.Container.SizeRw == nil {
		return 0
	}
	return *found.Container.SizeRw
}

// taken is what the files that a container has written take of the disk, or less if that cannot be said
// now. However empty, each of them takes some.
func (e *Engine) taken(ctx context.Context, id string) int64 {
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	return e.size(ctx, id) + e.changed(ctx, id)*workdir.MinSize
}

// changed is how many files of a container are new or others than those of its image. They are counted
// as they are read: the client would keep all of their names.
func (e *Engine) changed(ctx context.Context, id string) (files int64) {
	dial := e.api.Dialer()
	to := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/containers/"+url.PathEscape(id)+"/changes", http.NoBody)
	if err != nil {
		return 0
	}
	answer, err := to.Do(request)
	if err != nil {
		return 0
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	decoder := json.NewDecoder(answer.Body)
	if _, err := decoder.Token(); err != nil || answer.StatusCode != http.StatusOK {
		return 0
	}
	for decoder.More() {
		var one struct{}
		if decoder.Decode(&one) != nil {
			break
		}
		files++
	}
	return files
}

// containerFiles are the files of a container.
type containerFiles struct {
	engine *Engine
	id     string
}

// Archive implements [sandbox.Files].
func (c containerFiles) Archive(ctx context.Context, path string) (io.ReadCloser, error) {
	found, err := c.engine.api.CopyFromContainer(ctx, c.id, client.CopyFromContainerOptions{SourcePath: path})
	if err != nil {
		return nil, failed(err, fmt.Sprintf("%s of the container cannot be read", path))
	}
	return found.Content, nil
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(data []byte) (int, error) {
	t.kept = append(t.kept, data...)
	if len(t.kept) > 2*keptOutput {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-keptOutput:]...)
	}
	return len(data), nil
}

// end is the end of it, so many bytes at most, as valid text.
func (t *tail) end(most int) []byte {
	kept := t.kept[max(len(t.kept)-most, 0):]
	return []byte(strings.ToValidUTF8(string(kept), "\uFFFD"))
}
