package env

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// World is what the commands have of the world.
type World struct {
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Table    *environment.Table   // the built-in one when nil
	Repairer environment.Repairer // nil: failures are not repaired
	Engines  Engines              // Dir is the user's cache when empty
}

// Command is "toryo env" with its subcommands.
func Command(world World) *cobra.Command {
	if world.Table == nil {
		world.Table = environment.BuiltIn()
	}
	if world.Engines.Log == nil {
		world.Engines.Log = slog.New(slog.DiscardHandler)
	}
	root := &cobra.Command{Use: "env", Short: "Detect, set up and diagnose the environment that a project needs"}

	detect := Detect{World: world}
	detectCommand := &cobra.Command{Use: "detect DIR", Short: "Say what environment a folder needs", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			detect.Dir = args[0]
			return detect.Run()
		}}
	detectCommand.Flags().BoolVar(&detect.JSON, "json", false, "print everything as JSON")
	detectCommand.Flags().StringVar(&detect.Language, "language", "", "the language that the task is about")

	classify := Classify{World: world}
	classifyCommand := &cobra.Command{Use: "classify", Short: "Say what the log on standard input of a failed command means", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return classify.Run() }}
	classifyCommand.Flags().IntVar(&classify.ExitCode, "exit-code", 1, "the command's exit code")
	classifyCommand.Flags().BoolVar(&classify.JSON, "json", false, "print everything as JSON")

	setup := Setup{World: world}
	setupCommand := &cobra.Command{Use: "setup DIR", Short: "Set up and verify a folder's environment in a sandbox", Args: cobra.ExactArgs(1),
		Long: "Copies the folder into a sandbox, runs the set-up commands of a plan or those that detection proposes, verifies the outcome and keeps it as a snapshot. The folder itself is not changed.",
		RunE: func(command *cobra.Command, args []string) error {
			setup.Dir = args[0]
			return setup.Run(command.Context())
		}}
	flags := setupCommand.Flags()
	flags.StringVar(&setup.Plan, "plan", "", "a plan with selected_environment, as JSON")
	flags.StringVar(&setup.Sandbox, "sandbox", Automatic, "auto, docker, bubblewrap or landlock")
	flags.StringVar(&setup.Image, "image", "", "the container image, instead of the environment's own")
	flags.StringVar(&setup.Network, "network", string(sandbox.Registries), "none, registries or open")
	flags.BoolVar(&setup.Baseline, "baseline", false, "also run the project's tests once")
	flags.BoolVar(&setup.JSON, "json", false, "print the result as JSON")
	flags.DurationVar(&setup.Timeout, "timeout", sandbox.DefaultTimeout, "time limit of one command")
	flags.Int64Var(&setup.Snapshots, "snapshots", 20<<30, "bytes that snapshots may take; 0 keeps none")

	root.AddCommand(detectCommand, classifyCommand, setupCommand)
	return root
}

// Detect is "toryo env detect".
type Detect struct {
	World
	Dir      string
	Language string
	JSON     bool
}

// Run prints what the folder needs.
func (d Detect) Run() error {
	root, err := os.OpenRoot(d.Dir)
	if err != nil {
		return task.Wrap(task.NotFound, err, "the folder cannot be opened")
	}
	defer func() { _ = root.Close() }()
	found, err := d.Table.Detect(root.FS(), d.Language)
	if err != nil {
		return err
	}
	if d.JSON {
		return printJSON(d.Stdout, found)
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, "environment: %s (%s)\npackage manager: %s\n", found.EnvironmentType, found.Reason, found.PackageManager)
	if found.LanguageVersion != "" {
		fmt.Fprintf(&lines, "version: %s\n", found.LanguageVersion)
	}
	for _, command := range found.SetupCommands {
		fmt.Fprintf(&lines, "set up: %s\n", command)
	}
	if found.TestCommand != "" {
		fmt.Fprintf(&lines, "test: %s\n", found.TestCommand)
	}
	for _, warning := range found.Warnings {
		fmt.Fprintf(&lines, "warning: %s\n", warning)
	}
	_, err = io.WriteString(d.Stdout, lines.String())
	return err
}

// Classify is "toryo env classify".
type Classify struct {
	World
	ExitCode int
	JSON     bool
}

const longestLog = 64 << 20

// Run prints what the log on standard input means.
func (c Classify) Run() error {
	log, err := io.ReadAll(io.LimitReader(c.Stdin, longestLog))
	if err != nil {
		return task.Wrap(task.Invalid, err, "the log cannot be read")
	}
	found := environment.Classify(log, c.ExitCode)
	if c.JSON {
		return printJSON(c.Stdout, found)
	}
	_, err = fmt.Fprintf(c.Stdout, "%s: %s\n%s\n", found.Class, found.Kind, found.Line)
	return err
}

// Setup is "toryo env setup".
type Setup struct {
	World
	Dir, Plan, Sandbox, Image, Network string
	Baseline, JSON                     bool
	Timeout                            time.Duration
	Snapshots                          int64
}

// report is what setup prints as JSON: the result, and what goes with it.
type report struct {
	environment.Result
	Handover environment.Handover `json:"handover"`
	Receipt  environment.Receipt  `json:"receipt"`
}

// Run sets the folder's environment up in a sandbox, which goes at the end.
func (s Setup) Run(ctx context.Context) (err error) {
	plan, err := s.readPlan()
	if err != nil {
		return err
	}
	if s.Engines.Dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return task.Wrap(task.DataDir, err, "there is no folder for what is kept")
		}
		s.Engines.Dir = filepath.Join(cache, "toryo", "sandboxes")
	}
	if !sandbox.Policy(s.Network).Valid() {
		return task.Errorf(task.Usage, "there is no network policy %q; it is none, registries or open", s.Network)
	}
	s.Engines.AllowWeak = true // it is the user's own folder
	engine, warning, err := s.Engines.Choose(ctx, s.Sandbox)
	if err != nil {
		return err
	}
	s.tell(warning)
	if engine.Name() == weakEngine && s.Network != string(sandbox.NoNetwork) {
		s.tell("this sandbox has no network; set-up goes on without")
		s.Network, s.Snapshots = string(sandbox.NoNetwork), 0
	}
	if _, err := engine.Reap(ctx, commandOwner, func(info sandbox.Info) bool { return info.Running }); err != nil {
		s.tell("what an earlier run left could not be removed: " + err.Error())
	}
	if err := os.MkdirAll(s.Engines.Dir, 0o700); err != nil {
		return task.Wrap(task.DataDir, err, "the folder for what is kept cannot be made")
	}
	workspace, err := os.MkdirTemp(s.Engines.Dir, "workspace-")
	if err != nil {
		return task.Wrap(task.DataDir, err, "a workspace cannot be made")
	}
	defer func() {
		if removed := sandbox.RemoveTree(workspace); err == nil {
			err = removed
		}
	}()
	outcome, err := s.setup(engine).Run(ctx, environment.Request{Plan: plan, Baseline: s.Baseline,
		Spec: sandbox.Spec{Owner: commandOwner, Image: s.Image, Workspace: workspace},
		Clone: func(_ context.Context, to string) error {
			_, err := sandbox.CopyTree(s.Dir, to, sandbox.Copying{})
			return err
		}})
	if err != nil {
		return err
	}
	if outcome.Sandbox != nil {
		if err := outcome.Sandbox.Stop(context.WithoutCancel(ctx)); err != nil {
			s.tell("the sandbox could not be removed: " + err.Error())
		}
	}
	return s.print(outcome)
}

// commandOwner marks the sandboxes of this command.
const commandOwner = "toryo-env"

func (s Setup) readPlan() (environment.Selection, error) {
	if s.Plan == "" {
		root, err := os.OpenRoot(s.Dir)
		if err != nil {
			return environment.Selection{}, task.Wrap(task.NotFound, err, "the folder cannot be opened")
		}
		defer func() { _ = root.Close() }()
		found, err := s.Table.Detect(root.FS(), "")
		return found.Selection(), err
	}
	file, err := os.Open(s.Plan)
	if err != nil {
		return environment.Selection{}, task.Wrap(task.NotFound, err, "the plan cannot be opened")
	}
	defer func() { _ = file.Close() }() // it was only read
	return environment.ReadPlan(file)
}

func (s Setup) setup(engine sandbox.Engine) *environment.Setup {
	return &environment.Setup{Table: s.Table, Engine: engine, Repairer: s.Repairer, Log: s.Engines.Log, Language: environment.English,
		CommandTimeout: s.Timeout, Snapshots: s.Snapshots, SetupNetwork: sandbox.Policy(s.Network), WorkNetwork: sandbox.NoNetwork,
		Wait: wait, Tell: s.progress}
}

func wait(ctx context.Context, howLong time.Duration) error {
	timer := time.NewTimer(howLong)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s Setup) progress(step environment.Step) {
	switch step.Kind {
	case environment.CommandPrinted:
		_, _ = io.WriteString(s.Stderr, step.Message) // progress is a courtesy
	case environment.CommandStarted:
		s.tell("$ " + step.Command)
	case environment.Waiting:
		s.tell(fmt.Sprintf("waiting %s before the next try (%s)", step.Wait, step.Message))
	case environment.Starting, environment.EngineProgressed, environment.Repairing, environment.WentWrong:
		s.tell(string(step.Kind) + ": " + step.Message)
	case environment.Verifying, environment.KeepingSnapshot, environment.RunningBaseline:
		s.tell(string(step.Kind))
	}
}

func (s Setup) tell(message string) {
	if message != "" {
		_, _ = fmt.Fprintln(s.Stderr, message) // progress is a courtesy
	}
}

func (s Setup) print(outcome environment.Outcome) error {
	var err error
	switch {
	case s.JSON:
		err = printJSON(s.Stdout, report{outcome.Result, outcome.Handover, outcome.Receipt})
	case outcome.Result.OverallStatus == environment.Succeeded:
		_, err = fmt.Fprintf(s.Stdout, "%s is ready (%d ms)\n", outcome.Handover.EnvironmentName, outcome.Result.SetupResult.Milliseconds)
	default:
		_, err = io.WriteString(s.Stdout, outcome.Result.Comment(environment.English))
	}
	if err != nil || outcome.Result.OverallStatus == environment.Succeeded {
		return err
	}
	return task.Errorf(task.NotReady, "the environment %s is not ready", outcome.Handover.EnvironmentName)
}

func printJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
