// Package app is the program: Main reads the command line, runs a command of package
// command, prints its error in one line and turns the code of the error into the exit
// code. Package site puts the parts of an installation together.
package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/command"
	"github.com/toryo-dev/toryo/internal/app/command/board"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
)

// Main runs the command that the process was called with and returns its exit
// code. The first interrupt or termination signal asks the command to stop; the
// second ends the process at once. A process that was started to be the inside of
// a sandbox is that and nothing else.
func Main() int { return MainAround(nil) }

// MainAround is Main with something around the executors of its agents: tests of
// whole installations have to know where a run is, and to cut it there.
func MainAround(around func(agent.Executor) agent.Executor) int {
	site.ServeAsGuest()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if os.Getenv("GOGC") == "" {
		// Most of what a server or an agent has in memory stays: there is little to collect, so
		// that twice as often costs little.
		debug.SetGCPercent(50)
	}
	p := site.Program{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Now: time.Now, Around: around}
	return run(ctx, p, os.Args[1:])
}

func run(ctx context.Context, p site.Program, args []string) int {
	root := rootCommand(p)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	err = coded(err)
	if !errors.Is(err, cli.ErrReported) {
		// What forges and models say may be in it, and must not command the terminal.
		text := strings.Map(cli.Visible, strings.ReplaceAll(err.Error(), "\n", "; "))
		_, _ = fmt.Fprintf(p.Stderr, "toryo: %s\n", text) // nowhere else to say it
	}
	return task.CodeOf(err).Info().Exit
}

// usageError marks what the command-line library finds wrong with a command.
type usageError struct {
	error
	command string
}

// coded gives the errors of other packages that mean something to a user a code.
func coded(err error) error {
	var usage usageError
	switch {
	case errors.As(err, &usage):
		return task.Errorf(task.Usage, "%v", usage.error).WithHint("see %s --help", usage.command)
	case errors.Is(err, context.Canceled) && task.CodeOf(err) == task.Internal:
		return task.Errorf(task.Interrupted, "interrupted")
	default:
		return err
	}
}

func rootCommand(p site.Program) *cobra.Command {
	root := &cobra.Command{
		Use:   "toryo",
		Short: "A self-hosted coding agent: from an assigned issue to a reviewed pull request",
		Long: `Toryo (棟梁, the master carpenter) takes an issue that you assign to it and carries
it to a reviewed pull request, on your own machines and with your own model keys.

Start with:
  toryo demo           see it work, with no account and no key
  toryo init           connect your forge and your model, and see a first issue through
  toryo doctor         what is there and what is missing
  toryo up             server and agent in one process

Every command finds its configuration and its data in the same way: see toryo help
configuration. Tasks are named like team/app#3: see toryo help task-names.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cli.CommandsOnly,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usageError{cli.WrongFlag(c, err), c.CommandPath()} })
	root.AddCommand(
		command.Up(p),
		command.Serve(p),
		command.Agent(p),
		command.Egress(p),
		command.Demo(p), command.Init(p),
		command.Run(p),
		command.Config(p),
		command.Doctor(p), command.Notify(p),
		command.Token(p),
		command.User(p),
		command.Data(p), command.Backup(p), command.Restore(p),
		board.Command(p),
		command.Tasks(p), command.Pause(p), command.Resume(p), command.Stats(p), command.Memory(p),
		command.Receipt(p),
		command.Review(p),
		command.Chat(p),
		command.Env(p),
		command.LLM(p),
		command.Script(p), command.Drill(p), command.Eval(p),
		command.Replay(p),
		command.Version(p), command.Man(p),
	)
	root.AddCommand(topics()...)
	root.InitDefaultCompletionCmd()
	nameUsageErrors(root)
	return root
}

// nameUsageErrors makes the errors about arguments usage errors, for a command and
// all below it.
func nameUsageErrors(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usageError{cli.WrongArguments(c, args, err), c.CommandPath()}
			}
			return nil
		}
	}
	for _, below := range c.Commands() {
		nameUsageErrors(below)
	}
}
