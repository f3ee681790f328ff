package command

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/env"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// The flags that go over configuration keys of sandboxes.
var (
	sandboxFlag = cli.Flag{Name: "sandbox", Key: "sandbox.kind", Value: "KIND", Usage: "auto, docker, bubblewrap, kubernetes or landlock"}
	networkFlag = cli.Flag{Name: "network", Key: "sandbox.network.setup", Value: "POLICY", Usage: "what set-up can reach: none, registries or open"}
	timeoutFlag = cli.Flag{Name: "timeout", Key: "sandbox.command_timeout", Value: "DURATION", Usage: "time limit of one command, such as 90s"}
)

// Env is the command toryo env.
func Env(p site.Program) *cobra.Command {
	return cli.Group("env", "Detect, set up and diagnose the environment that a project needs",
		envDetectCommand(p), envSetupCommand(p), envClassifyCommand(p))
}

func envDetectCommand(p site.Program) *cobra.Command {
	var s cli.Settings
	o := env.Detect{Stdout: p.Stdout}
	c := &cobra.Command{
		Use:   "detect DIR",
		Short: "Detect the environment that a folder needs",
		Long:  "Read the manifests of a folder and say which environment it needs, and how it is set up\nand tested. Nothing is run and nothing is changed. No configuration is needed; with one,\ncommand_executor says which environments there are.",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			loaded, err := s.Load(p)
			if err != nil {
				return err
			}
			if o.Table, err = site.EnvironmentsOf(loaded); err != nil {
				return err
			}
			o.Dir = args[0]
			return o.Run()
		},
	}
	s.Own()
	s.Bind(c)
	c.Flags().StringVar(&o.Language, "language", "", "the programming `LANGUAGE` that the task is about")
	c.Flags().BoolVar(&o.JSON, "json", false, "print everything as JSON")
	return c
}

func envClassifyCommand(p site.Program) *cobra.Command {
	o := env.Classify{Stdin: p.Stdin, Stdout: p.Stdout}
	c := &cobra.Command{
		Use:   "classify < LOG",
		Short: "Classify the log of a failed command",
		Long:  "Read the log of a failed command from standard input and say whether to try again\n(retryable), to correct the command (fixable) or to give up (fatal), and which line of the\nlog decided that. No configuration is needed.",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return o.Run() },
	}
	c.Flags().IntVar(&o.ExitCode, "exit-code", 1, "the exit code of the command (`N`)")
	c.Flags().BoolVar(&o.JSON, "json", false, "print the answer as JSON")
	return c
}

type envSetup struct {
	site.Program
	settings cli.Settings
	work     env.Setup
}

func envSetupCommand(p site.Program) *cobra.Command {
	o := envSetup{Program: p}
	c := &cobra.Command{
		Use:   "setup DIR",
		Short: "Set up and verify a folder's environment in a sandbox",
		Long: `Copy a folder into a sandbox, run the set-up commands of a plan, or without one those
that detection proposes, and verify the outcome. What set-up leaves is kept as a
snapshot, from which the next run starts, and verified again then. The folder itself is not changed.

Commands that fail for a passing reason are tried again. Others are corrected by the
model that the configuration names (llm_overrides.environment_setup, or llm), three
times at most; without a model it says which command failed and why.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.work.Dir = args[0]
			return o.run(c.Context())
		},
	}
	o.settings.Own()
	o.settings.Bind(c, cli.DataFlag, sandboxFlag, networkFlag, timeoutFlag)
	c.Flags().StringVar(&o.work.Plan, "plan", "", "a plan with selected_environment, as a JSON `FILE`")
	c.Flags().StringVar(&o.work.Image, "image", "", "the container `IMAGE`, instead of the environment's own")
	c.Flags().BoolVar(&o.work.Baseline, "baseline", false, "also run the project's tests once, and say which fail")
	c.Flags().BoolVar(&o.work.JSON, "json", false, "print the result as JSON")
	return c
}

func (o envSetup) run(ctx context.Context) error {
	loaded, err := o.settings.Load(o.Program)
	if err != nil {
		return err
	}
	if o.work.Table, err = site.EnvironmentsOf(loaded); err != nil {
		return err
	}
	o.work.Stdout, o.work.Stderr, o.work.Log = o.Stdout, o.Stderr, connectionLog(o.Program, loaded)
	o.work.Now, o.work.Configuration, o.work.Data = o.Now, loaded.Sandbox, loaded.DataDir
	if loaded.Language == string(task.Japanese) {
		o.work.Language = task.Japanese
	}
	if loaded.LLM.Provider != "" {
		o.work.Repairer = repairer(o.Program, loaded)
	}
	return o.work.Run(ctx)
}

// repairer asks the configured model to correct commands.
func repairer(p site.Program, c config.Config) environment.Repairer {
	return environment.ChatRepairer{Ask: func(ctx context.Context, prompt string) (string, error) {
		said, err := askOnce(ctx, p, c, question{text: prompt, modelFor: string(task.EnvironmentSetup)})
		return said.Message.Text(), err
	}}
}

// connectionLog shows connections that a sandbox was refused, besides the progress.
func connectionLog(p site.Program, c config.Config) *slog.Logger {
	return slog.New(redact.Handler(slog.NewTextHandler(p.Stderr, nil), c.Redactor()))
}
