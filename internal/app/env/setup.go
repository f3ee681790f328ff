package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Setup sets a folder's environment up in a sandbox.
type Setup struct {
	Stdout io.Writer // for the result
	Stderr io.Writer // for progress
	Log    *slog.Logger
	Now    func() time.Time

	Table         *environment.Table
	Repairer      environment.Repairer // nil: no model is configured, and nothing is repaired
	Configuration config.Sandbox
	Language      task.Language // of the text about a failure; English when empty
	Data          string        // the data directory, for snapshots and what sandboxes need

	Dir            string // the project
	Plan           string // file of the plan, or nothing
	Image          string // instead of the environment's own, or nothing
	Baseline, JSON bool
}

// report is what is printed as JSON: the result, and what goes with it.
type report struct {
	environment.Result
	Handover environment.Handover `json:"handover"`
	Receipt  environment.Receipt  `json:"receipt"`
}

// folder is where snapshots and the state of sandboxes are, in the data directory.
func (s Setup) folder() string { return filepath.Join(s.Data, "sandbox") }

// commandOwner marks the sandboxes of this command.
const commandOwner = "toryo-env"

// startTime is how long a sandbox may take to start. One that is not running by
// then was left by a run that is over.
const startTime = 10 * time.Minute

// Run sets the environment up, prints how that went and removes the sandbox.
// NotReady means that the environment could not be made ready.
func (s Setup) Run(ctx context.Context) (err error) {
	plan, err := s.readPlan()
	if err != nil {
		return err
	}
	engine, err := s.engine(ctx)
	if err != nil {
		return err
	}
	weakened := Weakened(s.Configuration, engine)
	if weakened.Network.Setup != s.Configuration.Network.Setup {
		s.printProgress("this sandbox has no network; set-up goes on without")
	}
	s.Configuration = weakened
	workspace, remove, err := s.workspace()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	folder, err := filepath.Abs(s.Dir)
	if err != nil {
		return task.Wrap(task.NotFound, err, "the folder cannot be opened")
	}
	outcome, err := s.sub(engine).Run(ctx, environment.Request{
		Plan: plan, Baseline: s.Baseline, Source: environment.Source{Project: "folder " + folder},
		Spec:  sandbox.Spec{Owner: commandOwner, Image: s.Image, Workspace: workspace, Limits: s.limits()},
		Clone: s.copyProject,
	})
	if err != nil {
		return err
	}
	if outcome.Sandbox != nil {
		if err := outcome.Sandbox.Stop(context.WithoutCancel(ctx)); err != nil {
			s.printProgress("the sandbox could not be removed: " + err.Error())
		}
	}
	return s.print(outcome)
}

func (s Setup) readPlan() (environment.Selection, error) {
	if s.Plan == "" {
		found, err := detect(s.Table, s.Dir, "")
		return found.Selection(), err
	}
	if info, err := os.Stat(s.Dir); err != nil {
		return environment.Selection{}, task.Wrap(task.NotFound, err, "the folder cannot be opened")
	} else if !info.IsDir() {
		return environment.Selection{}, task.Errorf(task.NotFound, "%s is not a folder", s.Dir)
	}
	file, err := os.Open(s.Plan)
	if err != nil {
		return environment.Selection{}, task.Wrap(task.NotFound, err, "the plan cannot be opened")
	}
	defer func() { _ = file.Close() }() // it was only read
	return environment.ReadPlan(file)
}

// engine chooses the sandbox engine and removes what earlier runs left in it.
func (s Setup) engine(ctx context.Context) (sandbox.Engine, error) {
	engines := Engines{Dir: s.folder(), DockerHost: s.Configuration.ContainerEngine, Kubernetes: s.Configuration.Kubernetes, Hosts: s.Configuration.Network.Hosts,
		Log: s.Log, AllowWeak: true} // it is the user's own folder
	engine, warning, err := engines.Choose(ctx, s.Configuration.Kind)
	if err != nil {
		return nil, err
	}
	s.printProgress(warning)
	_, err = engine.Reap(ctx, commandOwner, func(info sandbox.Info) bool {
		return info.Running || s.Now().Sub(info.Started) < startTime
	})
	if err != nil {
		s.printProgress("what an earlier run left could not be removed: " + err.Error())
	}
	return engine, nil
}

func (s Setup) limits() sandbox.Limits {
	c := s.Configuration
	return sandbox.Limits{Memory: int64(c.Memory), Processes: c.PIDs, CPUs: c.CPUs, Disk: int64(c.Disk)}
}

// copyProject copies the folder. The data directory may lie inside it, and is no
// part of the project.
func (s Setup) copyProject(ctx context.Context, to string) error {
	var kept []os.FileInfo
	for _, folder := range []string{s.Data, s.folder()} {
		info, err := os.Stat(folder)
		if err != nil {
			return err
		}
		kept = append(kept, info)
	}
	_, err := workdir.CopyTree(ctx, s.Dir, to, workdir.CopyOptions{Skip: func(name string) bool {
		info, err := os.Lstat(filepath.Join(s.Dir, name))
		return err == nil && info.IsDir() && slices.ContainsFunc(kept, func(one os.FileInfo) bool { return os.SameFile(one, info) })
	}})
	return err
}

// sub is the sub-phase as the configuration wants it.
func (s Setup) sub(engine sandbox.Engine) *environment.Setup {
	c := s.Configuration
	snapshots := int64(c.Snapshots.MaxSize)
	if !c.Snapshots.Enabled {
		snapshots = 0
	}
	return &environment.Setup{
		Table: s.Table, Engine: engine, Repairer: s.Repairer, Wait: lifecycle.Sleep, OnStep: s.progress,
		Log:            slog.New(slog.DiscardHandler), // its warnings are in the result too
		CommandTimeout: c.CommandTimeout, OutputLimit: int(c.OutputLimit), Snapshots: snapshots,
		SetupNetwork: sandbox.Policy(c.Network.Setup), WorkNetwork: sandbox.Policy(c.Network.Execution),
	}
}

func (s Setup) progress(step environment.Step) {
	switch step.Kind {
	case environment.CommandPrinted:
		_, _ = io.WriteString(s.Stderr, step.Message) // progress is a courtesy
	case environment.CommandStarted:
		s.printProgress(prompt(step) + step.Command)
	case environment.Cloning:
		s.printProgress("copying " + s.Dir)
	case environment.Starting:
		s.printProgress("starting a sandbox: " + step.Message)
	case environment.EngineProgressed:
		s.printProgress(step.Message)
	case environment.Waiting:
		s.printProgress(fmt.Sprintf("waiting %s before the next try (%s)", step.Wait, step.Message))
	case environment.Repairing:
		s.printProgress("asking the model for other commands: " + step.Message)
	case environment.Verifying:
		s.printProgress("verifying")
	case environment.CheckEnded:
		s.printProgress(fmt.Sprintf("%s%s (%s)", prompt(step), step.Command, step.Message))
	case environment.KeepingSnapshot:
		s.printProgress("keeping a snapshot")
	case environment.RunningBaseline:
		s.printProgress("running the tests: " + prompt(step) + step.Command)
	}
}

// prompt comes before a command, as a shell in its folder would show it.
func prompt(step environment.Step) string {
	if step.Directory == "" || step.Directory == "." {
		return "$ "
	}
	return step.Directory + "$ "
}

func (s Setup) printProgress(message string) {
	if message != "" {
		_, _ = fmt.Fprintln(s.Stderr, message) // progress is a courtesy
	}
}

func (s Setup) print(outcome environment.Outcome) error {
	for _, warning := range outcome.Result.Warnings {
		s.printProgress("warning: " + warning)
	}
	var err error
	switch {
	case s.JSON:
		err = printJSON(s.Stdout, report{outcome.Result, outcome.Handover, outcome.Receipt})
	case outcome.Result.OverallStatus == environment.Succeeded:
		err = s.printReady(outcome)
	default:
		language := s.Language
		if language == "" {
			language = task.English
		}
		_, err = io.WriteString(s.Stdout, outcome.Result.Comment(language))
	}
	if err != nil || outcome.Result.OverallStatus == environment.Succeeded {
		return err
	}
	return task.Errorf(task.NotReady, "the environment %s is not ready", outcome.Handover.EnvironmentName)
}

func (s Setup) printReady(outcome environment.Outcome) error {
	from := ""
	if outcome.Result.SetupResult.FromSnapshot != "" {
		from = " from a snapshot"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s is ready%s (%d ms)\n", outcome.Handover.EnvironmentName, from, outcome.Result.SetupResult.Milliseconds)
	for _, project := range outcome.Receipt.Projects {
		if project.Baseline == nil {
			continue
		}
		fmt.Fprintf(&text, "tests: %s ended with exit code %d\n", project.Baseline.Line(), project.Baseline.ExitCode)
		for _, name := range project.Baseline.Failing {
			fmt.Fprintf(&text, "fails before any change: %s\n", name)
		}
	}
	_, err := io.WriteString(s.Stdout, text.String())
	return err
}
