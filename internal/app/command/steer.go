package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// tokenVariable names the environment variable with an operator's token.
const tokenVariable = config.TokenVariable

// operate is what every command has that steers tasks through a running server.
type operate struct {
	site.Program
	settings cli.Settings
	server   string
	json     bool
	dataDir  string // of the server that was found
}

func (o *operate) bind(c *cobra.Command) {
	o.settings.Bind(c, cli.DataFlag)
	o.settings.AllowRemote()
	c.Flags().StringVar(&o.server, "server", "", "address of the server (`URL`, default: the one that runs on the data directory); wants a token in "+tokenVariable)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON, in the shapes of the HTTP API")
}

// withServer runs a command that steers tasks on a server.
func (o *operate) withServer(ctx context.Context, do func(*wire.Client) error) error {
	return o.connect(ctx, access.Operator, do)
}

// connect runs a command on a server: the one that --server names, with the token in TORYO_TOKEN, or
// the one that runs on the data directory, with the token that it has put there. Nobody else is
// asked: whoever listens at an address may be anybody.
func (o *operate) connect(ctx context.Context, role access.Role, do func(*wire.Client) error) error {
	if o.server != "" {
		return o.connectTo(role, do)
	}
	loaded, err := o.settings.LoadData(o.Program)
	if err != nil {
		return err
	}
	o.dataDir = loaded.DataDir
	running, err := site.RunningServer(o.dataDir)
	if errors.Is(err, site.ErrNoServer) {
		return o.noServer(ctx)
	}
	if err != nil {
		return err
	}
	return do(o.clientOf(running))
}

// connectTo runs a command on the server that is named.
func (o *operate) connectTo(role access.Role, do func(*wire.Client) error) error {
	loaded, err := o.settings.LoadRemote(o.Program)
	if err != nil {
		return err
	}
	connection, err := site.AgentClient(loaded.Agent.CAFile)
	if err != nil {
		return err
	}
	token := o.Variable(tokenVariable)
	if token == "" {
		return task.Errorf(task.Usage, "%s wants a token, and none was given", o.server).
			WithHint("set %s to one; where the server is, toryo token create --role %s makes it", tokenVariable, role)
	}
	err = do(&wire.Client{Server: o.server, Token: token, HTTP: connection})
	if task.CodeOf(err) == task.Unauthorized {
		return task.Errorf(task.Unauthorized, "%s does not accept the token in %s", o.server, tokenVariable).
			WithHint("make one where the server is, with toryo token create")
	}
	return err
}

// clientOf asks the server that runs on the data directory.
func (o *operate) clientOf(running site.Running) *wire.Client {
	return &wire.Client{Server: running.URL, Token: running.Token, MachineUser: cli.MachineUser(), HTTP: running.Client()}
}

// renew makes a client ask the server that runs on the data directory now, which has another token
// than the one before it, and may have another address.
func (o *operate) renew(client *wire.Client) error {
	if o.server != "" {
		return nil
	}
	running, err := site.RunningServer(o.dataDir)
	if err != nil {
		return err
	}
	*client = *o.clientOf(running)
	return nil
}

// noServer says that no server runs on the data directory, or that there is no installation at all.
func (o *operate) noServer(ctx context.Context) error {
	return cli.WithStore(ctx, o.Program, &o.settings, func(store.Store) error {
		return task.Errorf(task.Unavailable, "no server runs on the data directory %s of this machine", o.dataDir).
			WithHint("start it with toryo serve; for one elsewhere, name it with --server and set %s to a token for it", tokenVariable)
	})
}

// steer makes a command that does something with one task.
func steer(p site.Program, use, short string, do func(*wire.Client, context.Context, task.ID) (wire.Task, error)) *cobra.Command {
	o := operate{Program: p}
	c := &cobra.Command{
		Use: use + " TASK", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.steer(c.Context(), args[0], do) },
	}
	o.bind(c)
	o.completeTasks(c)
	return c
}

func (o *operate) steer(ctx context.Context, name string, do func(*wire.Client, context.Context, task.ID) (wire.Task, error)) error {
	return o.withServer(ctx, func(client *wire.Client) error {
		found, err := findOn(ctx, client, name)
		if err != nil {
			return err
		}
		after, err := do(client, ctx, task.ID(found.ID))
		if err != nil {
			return fmt.Errorf("%s: %w", found.Item, err)
		}
		if o.json {
			return cli.PrintJSON(o.Stdout, after)
		}
		_, err = fmt.Fprintf(o.Stdout, "%s is %s: %s\n", after.Item, after.State, after.ReasonText)
		return err
	})
}

// findOn asks a server for the task that is named. A whole id is asked for as such: that is
// understood by servers of every version.
func findOn(ctx context.Context, client *wire.Client, name string) (wire.Task, error) {
	parsed, err := task.ParseName(name)
	if err != nil {
		return wire.Task{}, err
	}
	if parsed.Whole() {
		return client.Task(ctx, task.ID(parsed.ID))
	}
	return client.FindTask(ctx, name)
}

func tasksStopCommand(p site.Program) *cobra.Command {
	c := steer(p, "stop", "Stop a task permanently", (*wire.Client).StopTask)
	c.Long = "Stop a task permanently. A run has ten seconds to save its work; what it saved stays in the\nmirror, and a comment on the item says how to get it."
	return c
}

func tasksRetryCommand(p site.Program) *cobra.Command {
	return steer(p, "retry", "Queue a task again that has ended", (*wire.Client).RetryTask)
}

func tasksApproveCommand(p site.Program) *cobra.Command {
	o := operate{Program: p}
	c := &cobra.Command{
		Use: "approve TASK PLAN", Short: "Approve the plan of a task, by the number of the plan",
		Long: "Approve the plan of a task, by the number of the plan. The number is on the task page and in\nthe comment with the plan. If there is a newer plan by now, nothing is approved.",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			plan, err := strconv.Atoi(args[1])
			if err != nil || plan < 1 {
				return task.Errorf(task.Usage, "%q is not the number of a plan", args[1]).WithHint("the comment with the plan and the task page have it; the first plan is 1")
			}
			return o.steer(c.Context(), args[0], func(client *wire.Client, ctx context.Context, id task.ID) (wire.Task, error) {
				return client.ApproveTask(ctx, id, plan)
			})
		},
	}
	o.bind(c)
	o.completeTasks(c)
	return c
}

// Pause is the command toryo pause.
func Pause(p site.Program) *cobra.Command {
	o := operate{Program: p}
	everything := false
	c := &cobra.Command{
		Use:   "pause TASK | --all",
		Short: "Pause a task, or everything",
		Long: `Pause a task, or everything. What runs is saved and goes on where it was when it is
resumed, on any agent. While everything is paused nothing is handed out. The file
pause_signal in the folder of the contexts of a server pauses everything too, while it
is there, and in that of an agent the tasks of that agent.`,
		Args: func(c *cobra.Command, args []string) error { return oneOrAll(c, args, everything) },
		RunE: func(c *cobra.Command, args []string) error {
			if !everything {
				return o.steer(c.Context(), args[0], (*wire.Client).PauseTask)
			}
			return o.withServer(c.Context(), func(client *wire.Client) error {
				return o.pauses(client.PauseAll(c.Context()))
			})
		},
	}
	o.bind(c)
	o.completeTasks(c)
	c.Flags().BoolVar(&everything, "all", false, "pause everything")
	return c
}

// oneOrAll wants either a task or --all. A shell leaves out what begins with #.
func oneOrAll(c *cobra.Command, args []string, everything bool) error {
	switch {
	case len(args) > 1:
		return task.Errorf(task.Usage, "one task can be named, not %d", len(args))
	case everything && len(args) == 1:
		return task.Errorf(task.Usage, "a task and --all were given").WithHint("give one of them")
	case !everything && len(args) == 0:
		return task.Errorf(task.Usage, "%s needs TASK, such as team/app#3, or --all for everything", c.CommandPath()).
			WithHint(cli.NeedsQuotes)
	}
	return nil
}

// Resume is the command toryo resume.
func Resume(p site.Program) *cobra.Command {
	o := operate{Program: p}
	force, everything := false, false
	c := &cobra.Command{
		Use:   "resume TASK | --all",
		Short: "Resume a paused task, or everything",
		Long:  "Resume a paused task, or everything. A task whose plan waits for approval is not\nresumed: see toryo tasks approve.",
		Args:  func(c *cobra.Command, args []string) error { return oneOrAll(c, args, everything) },
		RunE: func(c *cobra.Command, args []string) error {
			if !everything {
				return o.steer(c.Context(), args[0], (*wire.Client).ResumeTask)
			}
			return o.withServer(c.Context(), func(client *wire.Client) error {
				return o.pauses(client.ResumeAll(c.Context(), force))
			})
		},
	}
	o.bind(c)
	o.completeTasks(c)
	c.Flags().BoolVar(&everything, "all", false, "resume everything")
	c.Flags().BoolVar(&force, "force", false, "also when a pause file asks for it, for example of a server or an agent that is gone")
	return c
}

// pauses prints who wants everything to be paused.
func (o *operate) pauses(pauses wire.Pauses, err error) error {
	if err != nil {
		return err
	}
	if o.json {
		return cli.PrintJSON(o.Stdout, pauses)
	}
	if len(pauses.Pauses) == 0 {
		_, err := fmt.Fprintln(o.Stdout, "everything is running: there is no global pause")
		return err
	}
	for _, pause := range pauses.Pauses {
		if _, err := fmt.Fprintf(o.Stdout, "everything is paused by %s since %s\n", printable(cmp.Or(pause.By, pause.Source)), pause.Since.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}
