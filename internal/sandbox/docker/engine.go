package docker

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/local"
	"github.com/toryo-dev/toryo/internal/task"
)

// Config says how sandboxes are made.
type Config struct {
	Host    string          // the engine's address; the usual one when empty
	Dir     string          // for what snapshots keep of workspaces
	Guest   string          // the program that serves as the guest; [guest.Program] when empty
	NewGate sandbox.NewGate // the way out
	Log     *slog.Logger
	Now     func() time.Time // tells how old volumes are; the clock when nil
}

// Engine starts containers.
type Engine struct {
	config Config
	api    *client.Client
	store  local.SnapshotStore

	guest guestVolume

	mine sync.Map // the containers that this process runs, by ID
}

// Name is the adapter's name.
const Name = "docker"

const (
	labelOwner      = "dev.toryo.owner"
	labelTask       = "dev.toryo.task"
	labelGeneration = "dev.toryo.generation"
	labelSnapshot   = "dev.toryo.snapshot"
	snapshotImage   = "toryo-snapshot"
)

// New makes an engine. It does not speak to Docker yet.
func New(config Config) (*Engine, error) {
	if config.Dir == "" || config.NewGate == nil || config.Log == nil {
		return nil, task.Errorf(task.Invalid, "the docker engine needs a folder, a gate and a log")
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
	if config.Now == nil {
		config.Now = time.Now
	}
	options := []client.Opt{client.WithUserAgent("toryo")}
	if config.Host != "" {
		options = append(options, client.WithHost(config.Host))
	} else {
		options = append(options, client.FromEnv)
	}
	api, err := client.New(options...)
	if err != nil {
		return nil, task.Wrap(task.BadConfig, err, "the address of the Docker Engine cannot be used")
	}
	return &Engine{config: config, api: api, store: local.SnapshotStore{Dir: filepath.Join(dir, "snapshots")}}, nil
}

// Name is the adapter's name.
func (e *Engine) Name() string { return Name }

// Capabilities implements [sandbox.Engine].
func (e *Engine) Capabilities() sandbox.Capabilities {
	return sandbox.Capabilities{Images: true, Network: true, Snapshots: true, Layers: true, FileOwner: local.NewOwner()}
}

const checkTimeout = 10 * time.Second

// Check asks whether the engine answers.
func (e *Engine) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	answer, err := e.api.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	if err != nil {
		return notReady(err)
	}
	if answer.OSType != "" && answer.OSType != "linux" {
		return task.Errorf(task.Unsupported, "the Docker Engine runs %s containers; Linux ones are needed", answer.OSType)
	}
	return nil
}

func notReady(err error) error {
	return task.Wrap(task.NotReady, err, "the Docker Engine does not answer").
		WithHint("install and start it, or choose another sandbox")
}

// failed gives an error of the API its code.
func failed(err error, doing string) error {
	err = sandbox.WithTextReason(err, err.Error())
	switch {
	case errdefs.IsNotFound(err):
		return task.Wrap(task.NotFound, err, doing)
	case client.IsErrConnectionFailed(err):
		return notReady(err)
	default:
		return task.Wrap(task.Unavailable, err, doing)
	}
}

// List names the owner's sandboxes.
func (e *Engine) List(ctx context.Context, owner string) ([]sandbox.Info, error) {
	found, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: client.Filters{}.Add("label", labelOwner+"="+owner)})
	if err != nil {
		return nil, failed(err, "the containers cannot be listed")
	}
	var infos []sandbox.Info
	for _, one := range found.Items {
		generation, _ := strconv.ParseInt(one.Labels[labelGeneration], 10, 64) // our own label
		infos = append(infos, sandbox.Info{ID: one.ID, Engine: Name, Owner: owner, Task: one.Labels[labelTask],
			Generation: generation, Started: time.Unix(one.Created, 0).UTC(), Running: one.State == "running"})
	}
	return infos, nil
}

// Reap removes the owner's containers that are not to be kept.
func (e *Engine) Reap(ctx context.Context, owner string, keep func(sandbox.Info) bool) (int, error) {
	infos, err := e.List(ctx, owner)
	if err != nil {
		return 0, err
	}
	reaped := 0
	for _, info := range infos {
		if _, mine := e.mine.Load(info.ID); mine || keep(info) {
			continue
		}
		if err := e.remove(ctx, info.ID); err != nil {
			return reaped, err
		}
		reaped++
	}
	return reaped, nil
}

// removalTimeout is how long the engine may take to remove a container that it is
// removing already.
const removalTimeout = 30 * time.Second

// remove kills and removes a container, and returns when it is gone. One that is gone
// already is not an error.
func (e *Engine) remove(ctx context.Context, id string) error {
	_, err := e.api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsConflict(err) { // it is being removed
		err = e.awaitRemoval(ctx, id)
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return failed(err, "the container cannot be removed")
	}
	return nil
}

func (e *Engine) awaitRemoval(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	removed := e.api.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	select {
	case <-removed.Result:
		return nil
	case err := <-removed.Error:
		return err
	}
}

// Identity is the digest of the image.
func (e *Engine) Identity(ctx context.Context, image string) (string, error) {
	found, err := e.image(ctx, image, func(string) {})
	if err != nil {
		return "", err
	}
	return found.ID, nil
}

// Snapshots lists the snapshots, least recently used first.
func (e *Engine) Snapshots(ctx context.Context) ([]sandbox.Snapshot, error) {
	kept, err := e.store.All()
	if err != nil {
		return nil, err
	}
	images, err := e.api.ImageList(ctx, client.ImageListOptions{Filters: client.Filters{}.Add("reference", snapshotImage)})
	if err != nil {
		return nil, failed(err, "the snapshots cannot be listed")
	}
	there := map[string]bool{}
	for _, image := range images.Items {
		for _, tag := range image.RepoTags {
			there[tag] = true
		}
	}
	var whole []sandbox.Snapshot
	for _, snapshot := range kept {
		if there[snapshotImage+":"+snapshot.Key] {
			whole = append(whole, snapshot)
		}
	}
	return whole, nil
}

// RemoveSnapshot removes a snapshot's image and folder, in this order: a folder without an
// image is found by Sweep, and an image without a folder may be that of another agent.
func (e *Engine) RemoveSnapshot(ctx context.Context, key string) error {
	if err := sandbox.ValidateKey(key); err != nil {
		return err
	}
	_, err := e.api.ImageRemove(ctx, snapshotImage+":"+key, client.ImageRemoveOptions{Force: true, PruneChildren: true})
	if err != nil && !errdefs.IsNotFound(err) {
		return failed(err, "the snapshot's image cannot be removed")
	}
	return e.store.Remove(key)
}

// Sweep removes the folders of snapshots whose image is gone, what was left of others, and
// the guest volumes of other versions. Images of environments are not ours to remove.
func (e *Engine) Sweep(ctx context.Context) error {
	if err := e.store.Sweep(); err != nil {
		return err
	}
	kept, err := e.store.All()
	if err != nil {
		return err
	}
	whole, err := e.Snapshots(ctx)
	if err != nil {
		return err
	}
	for _, one := range kept {
		there := slices.ContainsFunc(whole, func(other sandbox.Snapshot) bool { return other.Key == one.Key })
		if there || e.config.Now().Sub(one.Used) < oldAfter {
			continue
		}
		if err := e.store.Remove(one.Key); err != nil {
			return err
		}
	}
	return e.guest.sweep(ctx, e)
}
