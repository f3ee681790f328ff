package docker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// longestBuildError is how much is told of what a build prints.
const longestBuildError = 1000

// Build builds an image with the engine's own builder, which needs no other program.
func (e *Engine) Build(ctx context.Context, b sandbox.Build) (digest string, err error) {
	if found, err := e.Image(ctx, b.Name); err == nil || task.CodeOf(err) != task.NotFound {
		return found.Digest, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.Timeout, errBuildTime)
	defer cancel()
	if !b.Network {
		for _, base := range b.Bases {
			if err := e.lookAt(ctx, base); err != nil {
				return "", buildFailed(ctx, err)
			}
		}
	}
	files, end := archived(b.Files)
	defer func() {
		if own := end(); own != nil {
			digest, err = "", own
		}
	}()
	limits := b.Limits.OrDefaults()
	const period = 100_000 // microseconds
	options := client.ImageBuildOptions{CPUPeriod: period, CPUQuota: int64(limits.CPUs * period), Tags: []string{b.Name}, Remove: true, ForceRemove: true, Memory: limits.Memory, MemorySwap: limits.Memory, Version: build.BuilderV1,
		Labels: map[string]string{labelOwner: "build"}}
	if !b.Network {
		options.NetworkMode = noNetwork
	}
	ctx, stop := context.WithCancelCause(ctx)
	commands, watched := make(chan string), make(chan struct{})
	go func() { // ends with the context
		defer close(watched)
		e.watchBuild(ctx, limits, commands, stop)
	}()
	defer func() {
		stop(context.Canceled)
		<-watched
	}()
	built, err := e.api.ImageBuild(ctx, files, options)
	if err != nil {
		return "", buildFailed(ctx, err)
	}
	defer func() { _ = built.Body.Close() }() // it was only read
	if err := readBuild(built.Body, b.Network, func(container string) {
		select {
		case commands <- container:
		case <-ctx.Done():
		}
	}); err != nil {
		return "", buildFailed(ctx, err)
	}
	found, err := e.Image(ctx, b.Name)
	return found.Digest, err
}

// lookAt makes sure that a base image is there, and refuses one with instructions of its own. The
// builder would say so only while it does the first of them.
func (e *Engine) lookAt(ctx context.Context, base sandbox.Base) error {
	found, err := e.image(ctx, base.Name, func(string) {})
	if err != nil {
		return err
	}
	if found.Config != nil && len(found.Config.OnBuild) > 0 {
		return &buildError{"its base image " + base.Name + " has ONBUILD instructions, which may fetch from the network"}
	}
	// Of another platform the builder would get another image by the same name.
	own := found.Os + "/" + found.Architecture
	if base.Platform != "" && base.Platform != own && base.Platform != own+"/"+found.Variant {
		return &buildError{"its base image " + base.Name + " is one of " + own + " here, and not of " + base.Platform}
	}
	return nil
}

// watchBuild limits the containers of a build that commands name, as far as the builder does not: it
// ends the build when they have written too much together, as far as was seen. A command can print what
// the builder prints of the next one: what it names counts too, and takes the place of none.
func (e *Engine) watchBuild(ctx context.Context, limits sandbox.Limits, commands <-chan string, stop context.CancelCauseFunc) {
	measure := time.NewTimer(diskEvery)
	defer measure.Stop()
	of := builders{engine: e, threads: int64(2*limits.Processes + spareThreads), seen: map[string]bool{}, wrote: map[string]int64{}}
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-commands:
			if err := of.add(ctx, next); err != nil {
				stop(failed(err, "the processes of a build cannot be limited"))
			}
		case <-measure.C:
			began := time.Now()
			if of.measure(ctx) > limits.Disk {
				stop(errBuildDisk)
			}
			measure.Reset(max(diskEvery, time.Since(began)))
		}
	}
}

// builders are the containers of a build.
type builders struct {
	engine  *Engine
	threads int64            // that each may have
	first   time.Time        // when the first was made, by the clock of the engine
	seen    map[string]bool  // those that were named already
	wrote   map[string]int64 // how much those wrote that may be running
	before  int64            // how much the others did
}

// add limits a container that was named. Others than the builder's are left alone as far as they can be
// told: those that are older than the build, and our own sandboxes.
func (b *builders) add(ctx context.Context, id string) error {
	if b.seen[id] {
		return nil
	}
	for one, wrote := range b.wrote {
		if b.engine.hasEnded(ctx, one) {
			delete(b.wrote, one)
			b.before += wrote
		}
	}
	found, err := b.engine.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		if b.engine.hasEnded(ctx, id) { // or there never was one
			return nil
		}
		return err
	}
	made, _ := time.Parse(time.RFC3339Nano, found.Container.Created) // without a date it is limited
	if _, mine := b.engine.mine.Load(found.Container.ID); mine || made.Before(b.first) || !strings.HasPrefix(found.Container.ID, id) {
		return nil
	}
	if b.first.IsZero() {
		b.first = made // before it no command could print anything
	}
	b.seen[id], b.wrote[id] = true, 0
	_, err = b.engine.api.ContainerUpdate(ctx, id, client.ContainerUpdateOptions{Resources: &container.Resources{PidsLimit: &b.threads}})
	if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) && !b.engine.hasEnded(ctx, id) {
		return err
	}
	return nil
}

// measure is how much they have written, as far as was seen.
func (b *builders) measure(ctx context.Context) int64 {
	total := b.before
	for one, wrote := range b.wrote {
		b.wrote[one] = max(wrote, b.engine.taken(ctx, one))
		total += b.wrote[one]
	}
	return total
}

// hasEnded reports whether a container surely runs no more.
func (e *Engine) hasEnded(ctx context.Context, id string) bool {
	found, err := e.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return errdefs.IsNotFound(err)
	}
	state := found.Container.State
	return state != nil && !state.Running && state.Status != container.StateCreated
}

var errBuildDisk = task.Errorf(task.Invalid, "building the image exceeded the limit of %s", sandbox.DiskLimit)

var errBuildTime = task.Errorf(task.Invalid, "building the image took longer than it may")

func buildFailed(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errBuildTime) {
		return errBuildTime
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var refused *buildError
	if errors.As(err, &refused) || errdefs.IsInvalidArgument(err) {
		return task.Wrap(task.Invalid, err, "the image cannot be built")
	}
	return failed(err, "the image cannot be built")
}

// buildError is what the builder said before it gave up.
type buildError struct{ said string }

func (b *buildError) Error() string { return b.said }

// triggers is what the builder says before it does the ONBUILD instructions of a base image. One of
// them may have the engine itself fetch something.
var triggers = lazyregexp.New(`^# Executing \d+ build trigger`)

// commandOf is what the builder says when it has made the container of a command, before it runs.
var commandOf = lazyregexp.New(`^ ---> Running in ([0-9a-f]{12})\s*$`)

// readBuild reads what the builder says to its end. Without network it ends when a base image has
// instructions of its own. It tells of the containers of commands.
func readBuild(from io.Reader, network bool, command func(container string)) error {
	decoder := json.NewDecoder(from)
	var said tail
	for {
		var message struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
		}
		err := decoder.Decode(&message)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if message.Error != "" {
			last := textfmt.OneLine(textfmt.Plain(string(said.end(longestBuildError))))
			return &buildError{textfmt.Shorten(textfmt.OneLine(message.Error), longestBuildError) + ": " + last}
		}
		if !network && triggers.MatchString(message.Stream) {
			return &buildError{"its base image has ONBUILD instructions, which may fetch from the network"}
		}
		if found := commandOf.FindStringSubmatch(message.Stream); found != nil {
			command(found[1])
		}
		_, _ = said.Write([]byte(message.Stream)) // never fails
	}
}
