package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/app/env"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

const (
	sandboxStarts   = 10
	sandboxCommands = 100
	benchOwner      = "toryo-bench"
)

// benchEngine is an engine that is measured if this machine has it.
type benchEngine struct {
	kind   string
	needed string // the variable without which it is not there; empty for none
	image  string
	// projects says that the image has what the projects need.
	projects bool
	// copies says that the workspace is copied to and from the sandbox.
	copies bool
}

func benchEngines() []benchEngine {
	return []benchEngine{
		{kind: "docker", needed: "TORYO_TEST_DOCKER", image: os.Getenv("TORYO_TEST_DOCKER_IMAGE"), projects: true},
		{kind: "bubblewrap", projects: true},
	}
}

// measureSandboxes looks at each kind of sandbox that this machine has: its start,
// what a command costs in it, and set-up with and without a snapshot.
func measureSandboxes(ctx context.Context, folder string) ([]row, error) {
	directly, err := runDirectly(ctx)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, of := range benchEngines() {
		measured, err := measureSandbox(ctx, of, filepath.Join(folder, of.kind), directly)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.kind, err)
		}
		rows = append(rows, measured...)
	}
	return rows, nil
}

// runDirectly is how long a command takes without a sandbox.
func runDirectly(ctx context.Context) (time.Duration, error) {
	return median(sandboxCommands, func() error {
		return exec.CommandContext(ctx, "bash", "-c", "echo step").Run()
	})
}

func measureSandbox(ctx context.Context, of benchEngine, folder string, directly time.Duration) ([]row, error) {
	engines := env.Engines{Dir: folder, DockerHost: os.Getenv("TORYO_TEST_DOCKER"), Log: slog.New(slog.DiscardHandler)}
	engine, _, err := engines.Choose(ctx, of.kind)
	if err != nil || of.needed != "" && os.Getenv(of.needed) == "" {
		return []row{{of.kind + ": sandbox start, command, set-up", "no engine", ""}}, nil //nolint:nilerr // not having one is a result
	}
	rows, err := measureCommands(ctx, engine, of, filepath.Join(folder, "bench"), directly)
	if err != nil || !of.projects {
		return rows, err
	}
	for _, project := range benchProjects {
		cold, warm, err := measureSetup(ctx, engine, project, folder)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", project.name, err)
		}
		rows = append(rows,
			row{fmt.Sprintf("%s: cold set-up of a %s project", of.kind, project.name), cold.Round(time.Millisecond).String(), ""},
			row{fmt.Sprintf("%s: warm set-up of a %s project", of.kind, project.name), fmt.Sprintf("%s, %.1f %%", warm.Round(time.Millisecond), 100*warm.Seconds()/cold.Seconds()), "under 5 % of cold"})
	}
	return rows, nil
}

func measureCommands(ctx context.Context, engine sandbox.Engine, of benchEngine, workspace string, directly time.Duration) ([]row, error) {
	if err := os.MkdirAll(workspace, 0o700); err != nil {
		return nil, err
	}
	spec := sandbox.Spec{Owner: benchOwner, Image: of.image, Workspace: workspace}
	var boxes []sandbox.Sandbox
	start, err := median(sandboxStarts, func() error {
		box, err := engine.Start(ctx, spec)
		if err != nil {
			return err
		}
		boxes = append(boxes, box)
		return runStep(ctx, box)
	})
	stopAll := func() {
		for _, box := range boxes {
			_ = box.Stop(context.WithoutCancel(ctx)) // the measurement is over
		}
		boxes = nil
	}
	defer stopAll()
	if err != nil {
		return nil, err
	}
	command, err := median(sandboxCommands, func() error { return runStep(ctx, boxes[0]) })
	if err != nil {
		return nil, err
	}
	rows := []row{
		{engine.Name() + ": sandbox start to first command, median", start.Round(time.Millisecond).String(), ""},
		{engine.Name() + ": one command, median (directly " + directly.Round(10*time.Microsecond).String() + ")", command.Round(10 * time.Microsecond).String(), ""},
	}
	copied := []row{{of.kind + ": workspace in and out", "shared, nothing is copied", ""}}
	if of.copies {
		if copied, err = measureCopies(ctx, of.kind, boxes[0], command); err != nil {
			return nil, err
		}
	}
	stopAll()
	many, err := measureMany(ctx, engine, spec)
	return append(append(rows, copied...), many), err
}

func runStep(ctx context.Context, box sandbox.Sandbox) error {
	ran, err := box.Run(ctx, sandbox.Command{Text: "echo step"})
	if err == nil && string(ran.Stdout) != "step\n" {
		err = fmt.Errorf("it printed %q", ran.Log)
	}
	return err
}

// copySize is how much goes in and out when copying is measured.
const copySize = 100 << 20

// measureCopies looks at how quickly a large file of the host is seen inside, and
// one that a command makes is seen on the host.
func measureCopies(ctx context.Context, name string, box sandbox.Sandbox, command time.Duration) ([]row, error) {
	large := filepath.Join(box.Workspace(), "large")
	if err := os.WriteFile(large, make([]byte, copySize), 0o600); err != nil {
		return nil, err
	}
	speed := func(text string) (string, error) {
		begun := time.Now()
		ran, err := box.Run(ctx, sandbox.Command{Text: text})
		if err == nil && ran.ExitCode != 0 {
			err = fmt.Errorf("it printed %q", ran.Log)
		}
		return fmt.Sprintf("%.0f MB/s", copySize/1e6/(time.Since(begun)-command).Seconds()), err
	}
	in, err := speed("true")
	if err != nil {
		return nil, err
	}
	out, err := speed("mv large larger && echo >> larger")
	if err != nil {
		return nil, err
	}
	_, err = box.Run(ctx, sandbox.Command{Text: "rm larger"})
	return []row{{name + ": workspace in, one file of 100 MiB", in, ""}, {name + ": workspace out, the same", out, ""}}, err
}

const atOnce = 20

// measureMany starts many sandboxes at the same time, runs a command in each and
// stops them.
func measureMany(ctx context.Context, engine sandbox.Engine, spec sandbox.Spec) (row, error) {
	var group errgroup.Group
	begun := time.Now()
	took := make([]time.Duration, atOnce)
	for i := range took {
		group.Go(func() error {
			own := spec
			own.Workspace = filepath.Join(spec.Workspace, fmt.Sprint("many-", i))
			if err := os.MkdirAll(own.Workspace, 0o700); err != nil {
				return err
			}
			box, err := engine.Start(ctx, own)
			if err != nil {
				return err
			}
			err = runStep(ctx, box)
			took[i] = time.Since(begun)
			return errors.Join(err, box.Stop(context.WithoutCancel(ctx)))
		})
	}
	err := group.Wait()
	slices.Sort(took)
	return row{fmt.Sprintf("%s: %d sandboxes at once, first command of the median and of the last; all stopped", engine.Name(), atOnce),
		fmt.Sprintf("%s, %s; %s", took[atOnce/2].Round(time.Millisecond), took[atOnce-1].Round(time.Millisecond), time.Since(begun).Round(time.Millisecond)), ""}, err
}

// project is a small project of one language, with real downloads.
type project struct {
	name     string
	files    map[string]string
	commands []string
	check    environment.Check
}

var benchProjects = []project{
	{"go", map[string]string{
		"go.mod":  "module example.com/app\n\ngo 1.24\n\nrequire github.com/google/uuid v1.6.0\n",
		"go.sum":  "github.com/google/uuid v1.6.0 h1:NIvaJDMOsjHA8n1jAhLSgzrAzy1Hgr+hNrb57e+94F0=\ngithub.com/google/uuid v1.6.0/go.mod h1:TIyPZe4MgqvfeYDBFedMoGGpEw/LqOeaOT+nhxU+yHo=\n",
		"main.go": "package main\n\nimport \"github.com/google/uuid\"\n\nfunc main() { println(uuid.Nil.String()) }\n",
	}, []string{"go mod download", "CGO_ENABLED=0 go build ./..."}, environment.Check{Command: "go list -m -f '{{.Version}}' github.com/google/uuid", ExpectedOutput: "v1.6.0"}},
	{"node", map[string]string{"package.json": `{"name":"app","version":"1.0.0","dependencies":{"express":"4.21.2"}}`},
		[]string{"npm install"}, environment.Check{Command: "node -p 'require(\"express/package.json\").version'", ExpectedOutput: "4.21.2"}},
	{"python", map[string]string{"requirements.txt": ""},
		[]string{"python3 -m venv .venv", ". .venv/bin/activate", "pip install -r requirements.txt"},
		environment.Check{Command: "python -c 'import sys; print(sys.prefix != sys.base_prefix)'", ExpectedOutput: "True"}},
}

// authorities are where programs find those of this machine.
const authorities = "/etc/ssl/certs/ca-certificates.crt"

// measureSetup sets a project up twice: from nothing, and from the snapshot that
// the first time left.
func measureSetup(ctx context.Context, engine sandbox.Engine, what project, folder string) (cold, warm time.Duration, err error) {
	var key string
	times := make([]time.Duration, 2)
	defer func() {
		if key != "" {
			err = errors.Join(err, engine.RemoveSnapshot(context.WithoutCancel(ctx), key))
		}
	}()
	for i := range times {
		outcome, took, err := setUpOnce(ctx, engine, what, folder)
		if err != nil {
			return 0, 0, err
		}
		times[i] = took
		if result := outcome.Result; i == 0 {
			key = result.SetupResult.SnapshotKey
		} else if result.SetupResult.FromSnapshot != key {
			return 0, 0, fmt.Errorf("the second time did not start from the snapshot: %v", result.Warnings)
		}
	}
	return times[0], times[1], nil
}

func setUpOnce(ctx context.Context, engine sandbox.Engine, what project, folder string) (environment.Outcome, time.Duration, error) {
	workspace, err := os.MkdirTemp(folder, "workspace-")
	if err != nil {
		return environment.Outcome{}, 0, err
	}
	defer func() { _ = workdir.Remove(workspace) }() // all of the folder goes in the end
	setup := environment.Setup{Table: environment.BuiltIn(), Engine: engine, Log: slog.New(slog.DiscardHandler), Snapshots: 10 << 30,
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, SetupNetwork: sandbox.Registries}
	begun := time.Now()
	outcome, err := setup.Run(ctx, environment.Request{
		Source: environment.Source{Project: benchOwner},
		Plan:   environment.Selection{Name: what.name, SetupCommands: what.commands, Verification: []environment.Check{what.check}},
		Spec: sandbox.Spec{Owner: benchOwner, Image: os.Getenv("TORYO_TEST_DOCKER_IMAGE"), Workspace: workspace,
			Env: map[string]string{"NODE_EXTRA_CA_CERTS": authorities, "SSL_CERT_FILE": authorities, "npm_config_cafile": authorities}},
		Clone: func(_ context.Context, to string) error {
			for name, content := range what.files {
				if err := os.WriteFile(filepath.Join(to, name), []byte(content), 0o600); err != nil {
					return err
				}
			}
			return nil
		},
	})
	took := time.Duration(outcome.Result.SetupResult.Milliseconds) * time.Millisecond
	if took == 0 {
		took = time.Since(begun)
	}
	if err == nil && outcome.Sandbox != nil {
		err = outcome.Sandbox.Stop(context.WithoutCancel(ctx))
	}
	if err == nil && outcome.Result.OverallStatus != environment.Succeeded {
		err = fmt.Errorf("set-up failed: %s", outcome.Result.Comment(task.English))
	}
	return outcome, took, err
}

// measureReading looks at what reads the files and logs of others.
func measureReading(context.Context, string) ([]row, error) {
	log := []byte(strings.Repeat("Collecting requests\n  Downloading requests-2.32.3-py3-none-any.whl (64 kB)\n", 6000) +
		"ERROR: No matching distribution found for nonsense==1.0\n")
	classify, err := median(20, func() error {
		if found := environment.Classify(log, 1); found.Kind != environment.PackageNotFound {
			return fmt.Errorf("a log is classified as %s", found.Kind)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	table := environment.BuiltIn()
	detect, err := median(50, func() error {
		found, err := table.Detect(os.DirFS("."), "")
		if err == nil && found.EnvironmentType != "go" {
			err = fmt.Errorf("this repository is taken for %s", found.EnvironmentType)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return []row{
		{fmt.Sprintf("classify a log of %.1f MB, median", float64(len(log))/1e6), fmt.Sprintf("%s, %.0f MB/s", classify.Round(10*time.Microsecond), float64(len(log))/1e6/classify.Seconds()), ""},
		{"detect the environment of this repository, median", detect.Round(10 * time.Microsecond).String(), ""},
	}, nil
}

// median runs something several times and returns how long it takes.
func median(times int, do func() error) (time.Duration, error) {
	took := make([]time.Duration, times)
	for i := range took {
		begun := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	return took[times/2], nil
}
