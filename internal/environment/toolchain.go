package environment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Toolchain is how the libraries of a toolchain are compiled that every project needs: a
// small project of our own, and commands that are run in its folder.
type Toolchain struct {
	Files map[string]string `yaml:"files"`
	Run   []string          `yaml:"run"`
}

// making has a [compiling] for each toolchain that this process compiles, by the key of its
// snapshot: runs that begin together compile it once.
var making sync.Map

// compiling is the compiling of one toolchain. One that failed is tried again after a while
// only: the next set-up would wait for the same failure.
type compiling struct {
	lock   chan struct{}
	failed time.Time
}

const compileAgain = time.Hour

// startCold starts the sandbox for a set-up from nothing, with what the toolchains have
// compiled where that can be had.
func (r *setupRun) startCold(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if key := r.toolchain(ctx, spec); key != "" {
		box, err := r.startFrom(ctx, spec, key)
		if err == nil {
			return box, nil
		}
		if _, fatal := errors.AsType[*failureError](err); fatal {
			return nil, err
		}
		r.Log.WarnContext(ctx, "environment set-up: failed to start with the compiled toolchain", "snapshot", key, "error", err)
	}
	return r.Engine.Start(ctx, spec)
}

// toolchain is the snapshot with what the toolchains of the projects have compiled; it is
// made if there is none. Nothing of any project is in it, and nothing that a plan says, so
// that every project may start from it. It is empty if there is none: set-up then only takes
// longer.
func (r *setupRun) toolchain(ctx context.Context, spec sandbox.Spec) string {
	if has := r.Engine.Capabilities(); r.Snapshots <= 0 || !has.Layers {
		return ""
	}
	entries := r.toCompile()
	if len(entries) == 0 {
		return ""
	}
	key, err := r.toolchainKey(ctx, spec.Image, entries)
	if err == nil {
		err = r.ensureToolchain(ctx, key, spec, entries)
	}
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, errFailedBefore) {
			r.Log.WarnContext(ctx, "environment set-up: failed to compile the toolchain ahead", "error", err)
		}
		return ""
	}
	return key
}

// toCompile are the environments of the projects whose toolchains have something to compile.
func (r *setupRun) toCompile() (entries []Environment) {
	for _, entry := range r.Table.All() {
		if len(entry.Toolchain.Run) > 0 && slices.ContainsFunc(r.projects, func(p *ProjectSetup) bool { return p.EnvironmentType == entry.Name }) {
			entries = append(entries, entry)
		}
	}
	return entries
}

func (r *setupRun) toolchainKey(ctx context.Context, image string, entries []Environment) (string, error) {
	identity, err := r.Engine.Identity(ctx, image)
	if err != nil {
		return "", err
	}
	made := []any{r.Engine.Name(), identity}
	for _, entry := range entries {
		made = append(made, []any{entry.Name, entry.Env, entry.Toolchain})
	}
	text, err := json.Marshal(made)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "tools-" + hex.EncodeToString(sum[:])[:40], nil
}

// errFailedBefore says that a toolchain could not be compiled not long ago.
var errFailedBefore = errors.New("it could not be compiled a while ago")

// ensureToolchain makes the snapshot if it is not there.
func (r *setupRun) ensureToolchain(ctx context.Context, key string, spec sandbox.Spec, entries []Environment) error {
	known, _ := making.LoadOrStore(key, &compiling{lock: make(chan struct{}, 1)})
	one, _ := known.(*compiling) // nothing else is stored
	select {
	case one.lock <- struct{}{}:
		defer func() { <-one.lock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	kept, err := r.Engine.Snapshots(ctx)
	if err != nil || slices.ContainsFunc(kept, func(s sandbox.Snapshot) bool { return s.Key == key }) {
		return err // another process may have made it
	}
	if !one.failed.IsZero() && time.Since(one.failed) < compileAgain {
		return errFailedBefore
	}
	spec.Progress("compiling what every project of this toolchain needs, once")
	// With the number of the process in front, as the workspaces of "toryo env", which removes those of processes that are gone.
	workspace, err := os.MkdirTemp(filepath.Dir(spec.Workspace), strconv.Itoa(os.Getpid())+"-toolchain-")
	if err != nil {
		return err
	}
	err = r.makeToolchain(ctx, key, workspace, spec, entries)
	if err := errors.Join(err, workdir.Remove(workspace)); err != nil {
		if ctx.Err() == nil {
			one.failed = time.Now()
		}
		return err
	}
	return prune(ctx, r.Engine, r.Snapshots)
}

// makeToolchain compiles in a sandbox that has our own files alone, no network, and none of
// the variables of the run.
func (r *setupRun) makeToolchain(ctx context.Context, key, workspace string, spec sandbox.Spec, entries []Environment) (err error) {
	env := map[string]string{}
	for _, entry := range entries {
		maps.Copy(env, entry.Env)
		if err := entry.Toolchain.write(workspace, entry.Name); err != nil {
			return err
		}
	}
	before, err := workdir.List(workspace)
	if err != nil {
		return err
	}
	box, err := r.Engine.Start(ctx, sandbox.Spec{Owner: spec.Owner, Task: spec.Task, Generation: spec.Generation, Image: spec.Image,
		Workspace: workspace, Env: env, Network: sandbox.NoNetwork, Limits: spec.Limits, Progress: spec.Progress})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Stop(context.WithoutCancel(ctx))) }()
	for _, entry := range entries {
		for _, text := range entry.Toolchain.Run {
			ran, err := box.Run(ctx, sandbox.Command{Text: text, Folder: entry.Name, Timeout: r.CommandTimeout, Fresh: true})
			if err != nil {
				return err
			}
			if ran.ExitCode != 0 || ran.Exceeded != sandbox.NoLimit {
				return fmt.Errorf("%s: exit code %d: %s", text, ran.ExitCode, textfmt.Shorten(textfmt.OneLine(textfmt.Plain(string(ran.Log))), longestShown))
			}
		}
	}
	made, err := box.Snapshot(ctx, key, before)
	if err == nil && made.Bytes > r.Snapshots { // all others would have to go for it, and then it too
		err = errors.Join(fmt.Errorf("it takes %d bytes, more than all snapshots may", made.Bytes), r.Engine.RemoveSnapshot(ctx, key))
	}
	return err
}

// write puts the project into a folder of the workspace.
func (t Toolchain) write(workspace, folder string) error {
	files, err := workdir.Open(workspace)
	if err != nil {
		return err
	}
	defer func() { _ = files.Close() }() // each file is closed already
	if err := files.Mkdir(folder, 0o755); err != nil {
		return err
	}
	for name, content := range t.Files {
		if err := files.WriteFile(path.Join(folder, name), []byte(content)); err != nil {
			return err
		}
	}
	return nil
}
