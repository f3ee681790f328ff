package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/toryo-dev/toryo/internal/app/env"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/testreport"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// tester runs the tests of modules, in sandboxes without a network. There is no other way to
// run them: they are code of strangers.
type tester struct {
	options

	engine sandbox.Engine
	place  string
	warmed bool
}

const (
	owner  = "toryo-evalset"
	engine = "bubblewrap"
	// compiled is the key of the environment that each sandbox starts from: the compiler's
	// cache with the standard library in it, and nothing of a module. So no module can leave
	// something for the next one.
	compiled = "compiled-packages"
)

// environ is what the go command is told in a sandbox.
var environ = map[string]string{"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}

// newTester refuses a machine without sandboxes.
func newTester(ctx context.Context, place string, o options) (*tester, error) {
	log := slog.New(slog.NewTextHandler(o.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	found, _, err := (env.Engines{Dir: filepath.Join(place, "sandboxes"), Log: log}).Choose(ctx, engine)
	if err != nil {
		return nil, fmt.Errorf("tests of modules run in sandboxes only: %w", err)
	}
	return &tester{options: o, engine: found, place: place}, nil
}

// compile makes the environment that sandboxes start from.
func (t *tester) compile(ctx context.Context) error {
	fmt.Fprintf(t.log, "compiling %s for the sandboxes\n", t.warm)
	workspace, err := os.MkdirTemp(t.place, "warm-")
	if err != nil {
		return err
	}
	before, err := workdir.List(workspace)
	if err != nil {
		return err
	}
	return t.within(ctx, sandbox.Spec{Workspace: workspace}, func(box sandbox.Sandbox) error {
		ran, err := box.Run(ctx, sandbox.Command{Text: "go build " + t.warm})
		if err != nil {
			return err
		}
		if ran.ExitCode != 0 {
			return fmt.Errorf("go build %s in a sandbox: %s", t.warm, firstLine(string(ran.Log)))
		}
		_, err = box.Snapshot(ctx, compiled, before)
		return err
	})
}

// within starts a sandbox and stops it when do has returned.
func (t *tester) within(ctx context.Context, spec sandbox.Spec, do func(sandbox.Sandbox) error) (err error) {
	spec.Owner, spec.Env, spec.Network = owner, environ, sandbox.NoNetwork
	box, err := t.engine.Start(ctx, spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Stop(context.WithoutCancel(ctx))) }()
	return do(box)
}

// reports is the folder of a workspace that has the reports of its tests.
const reports = ".toryo"

// test runs the tests of a task with patches applied to its repository.
func (t *tester) test(ctx context.Context, repository, command string, patches ...string) (report testreport.Report, err error) {
	if !t.warmed {
		if err := t.compile(ctx); err != nil {
			return report, err
		}
		t.warmed = true
	}
	folder, err := os.MkdirTemp(t.place, "test-")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, workdir.Remove(folder)) }()
	files := filepath.Join(folder, "files")
	if err := checkOut(ctx, repository, files, patches...); err != nil {
		return report, err
	}
	workspace, err := workdir.Open(files)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, workspace.Close()) }()
	runner, known := testreport.Find(command, workspace.FS())
	if !known {
		return report, fmt.Errorf("%q is no command that reports on tests", command)
	}
	name := path.Join(reports, "report-"+rand.Text())
	err = t.within(ctx, sandbox.Spec{Workspace: files, Snapshot: compiled}, func(box sandbox.Sandbox) error {
		run := sandbox.Command{Text: runner.Command(path.Join(sandbox.WorkspacePath, name)), Timeout: t.timeout, Fresh: true}
		ran, err := environment.RunTests(ctx, box, run, func(output []byte, exit int) testreport.Report {
			found, err := workspace.Sub(name)
			if err != nil {
				return runner.Read(output, exit, workdir.Files{}) // there are none
			}
			defer func() { _ = found.Close() }() // it was only read
			return runner.Read(output, exit, found.FS())
		})
		if err != nil {
			return err
		}
		if ran.Exceeded != "" {
			return unfitError{reason: fmt.Sprintf("its tests exceed the limit: %s", ran.Exceeded), passing: true}
		}
		report = *ran.Tests
		return nil
	})
	return report, err
}

// verdict is what the tests of a pair say.
type verdict struct {
	failToPass, passToPass []string
}

// judge runs the newer tests twice with the gold patch, and twice without it. A pair is a task
// only if all pass with it, at least one does not without it, and both times are alike.
func (t *tester) judge(ctx context.Context, repository, command, gold, tests string) (v verdict, err error) {
	with, err := t.passing(ctx, repository, command, gold, tests)
	if err != nil {
		return v, err
	}
	without, err := t.passing(ctx, repository, command, "", tests)
	if err != nil {
		return v, err
	}
	for _, name := range with {
		if _, has := slices.BinarySearch(without, name); has {
			v.passToPass = append(v.passToPass, name)
		} else {
			v.failToPass = append(v.failToPass, name)
		}
	}
	if len(v.failToPass) == 0 {
		return v, unfit("its tests pass on the older source too")
	}
	for patch, before := range map[string][]string{gold: with, "": without} {
		again, err := t.passing(ctx, repository, command, patch, tests)
		if err != nil {
			return v, err
		}
		if !slices.Equal(before, again) {
			return v, unfit("other tests pass when they are run a second time")
		}
	}
	return v, nil
}

// passing are the names of the tests that pass, in order. With a gold patch none may fail.
func (t *tester) passing(ctx context.Context, repository, command, gold, tests string) ([]string, error) {
	patches := []string{tests}
	if gold != "" {
		patches = append(patches, gold)
	}
	report, err := t.test(ctx, repository, command, patches...)
	if err != nil {
		return nil, err
	}
	if gold != "" && !report.Passed() {
		reason := report.Note
		if failing := report.Failing(); len(failing) > 0 {
			reason = fmt.Sprintf("%d fail, such as %s", len(failing), failing[0])
		}
		return nil, unfit("its tests do not pass with the gold patch: %s", reason)
	}
	var names []string
	for _, one := range report.Cases {
		if one.Status == testreport.Passed {
			names = append(names, one.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
