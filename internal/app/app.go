// Package app is the program around everything else: the commands, the choice of
// adapters by configuration, start and stop.
//
// Each command is a struct of options with a run method, so that reading the
// command line and doing the work can be tested apart. A command returns its
// error; Main prints it in one line and turns its code into the exit code.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/task"
)

// program is what a command has of the world.
type program struct {
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	environ []string
	now     func() time.Time
	// around puts something around the executors of agents; nil means nothing.
	around func(agent.Executor) agent.Executor
}

// commands makes the commands of the program. They are no methods of program itself,
// because the options of each command embed that: the compiler writes every method of
// it again for each of them.
type commands struct{ program }

// Main runs the command that the process was called with and returns its exit
// code. The first interrupt or termination signal asks the command to stop; the
// second ends the process at once. A process that was started to be the inside of
// a sandbox is that and nothing else.
func Main() int { return MainAround(nil) }

// MainAround is Main with something around the executors of its agents: tests of
// whole installations have to know where a run is, and to cut it there.
func MainAround(around func(agent.Executor) agent.Executor) int {
	serveAsGuest()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), now: time.Now, around: around}
	return p.run(ctx, os.Args[1:])
}

func (p program) run(ctx context.Context, args []string) int {
	root := commands{p}.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	err = coded(err)
	if !errors.Is(err, errReported) {
		_, _ = fmt.Fprintf(p.stderr, "toryo: %s\n", strings.ReplaceAll(err.Error(), "\n", "; ")) // nowhere else to say it
	}
	return task.CodeOf(err).Info().Exit
}

// errReported is the cause of an error whose command has printed everything that
// there is to say.
var errReported = errors.New("already printed")

// usageError marks what the command-line library finds wrong.
type usageError struct{ error }

// coded gives the errors of other packages that mean something to a user a code.
func coded(err error) error {
	var usage usageError
	switch {
	case errors.As(err, &usage):
		return task.Errorf(task.Usage, "%v", usage.error).WithMend("see toryo --help")
	case errors.Is(err, context.Canceled) && task.CodeOf(err) == task.Internal:
		return task.Errorf(task.Interrupted, "interrupted")
	default:
		return err
	}
}

func (p commands) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "toryo",
		Short: "A self-hosted coding agent: from an assigned issue to a reviewed pull request",
		Long: `Toryo (棟梁, the master carpenter) takes an issue that you assign to it and carries
it to a reviewed pull request, on your own machines and with your own model keys.

Start with:
  toryo demo           see it work, with no account and no key
  toryo config init    write a commented toryo.yaml
  toryo doctor         what is there and what is missing
  toryo up             server and agent in one process`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          commandsOnly,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		p.upCommand(),
		p.serveCommand(),
		p.agentCommand(),
		p.egressCommand(),
		p.demoCommand(),
		p.runCommand(),
		p.configCommand(),
		p.doctorCommand(),
		p.tokenCommand(),
		p.userCommand(),
		p.boardCommand(),
		p.tasksCommand(), p.pauseCommand(), p.resumeCommand(),
		p.receiptCommand(),
		p.reviewCommand(),
		p.chatCommand(),
		p.envCommand(),
		p.llmCommand(),
		p.scriptCommand(), p.drillCommand(),
		p.replayCommand(),
		p.versionCommand(),
		exitCodesTopic(),
	)
	root.CompletionOptions.HiddenDefaultCmd = true
	nameUsageErrors(root)
	return root
}

// nameUsageErrors makes the errors about arguments usage errors, for a command and
// all below it.
func nameUsageErrors(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	for _, below := range c.Commands() {
		nameUsageErrors(below)
	}
}

// group makes a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	parent := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  commandsOnly,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	parent.AddCommand(commands...)
	return parent
}

// commandsOnly is for commands that only hold others: what reaches them as an
// argument is a command that does not exist.
func commandsOnly(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2 // letters that may be wrong
	err := fmt.Errorf("%s has no command %q", c.CommandPath(), args[0])
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return err
}

// exitCodesTopic is help on the exit codes, from the table of package task.
func exitCodesTopic() *cobra.Command {
	var text strings.Builder
	text.WriteString("Every way to fail has its own exit code:\n\n    0  success\n")
	for _, info := range task.Codes {
		fmt.Fprintf(&text, "  %3d  %s (%s)\n", info.Exit, info.Meaning, info.Code)
	}
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: text.String()}
}
