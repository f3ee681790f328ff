package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Tasks is the command toryo tasks.
func Tasks(p site.Program) *cobra.Command {
	c := cli.Group("tasks", "See what there is to do and what is next, and steer tasks",
		tasksNeedsCommand(p), tasksNextCommand(p), tasksListCommand(p), tasksShowCommand(p), tasksLogsCommand(p), tasksStopCommand(p), tasksRetryCommand(p), tasksApproveCommand(p))
	c.Long = `See what there is to do and what is next, and steer tasks. needs-you, next, list, show and logs
ask the server that runs on the data directory, or read its database if none runs. The others
need the server. With --server and TORYO_TOKEN all of them work from anywhere. TASK is named in
any of the ways of toryo help task-names. See also toryo pause and toryo resume.`
	c.Example = `  toryo tasks needs-you
  toryo tasks list --state running
  toryo tasks show team/app#3
  toryo tasks logs team/app#3 --follow
  TORYO_TOKEN=… toryo tasks list --server https://toryo.example.com`
	return c
}

// onTasks is what the commands have that show tasks.
type onTasks struct{ operate }

// table prints lines whose columns are separated by tabs.
func (o *onTasks) table(lines [][]string) error {
	out := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(out, strings.Join(line, "\t"))
	}
	return out.Flush()
}

type tasksNext struct {
	onTasks
	explain bool
	agent   string
}

func tasksNextCommand(p site.Program) *cobra.Command {
	o := tasksNext{onTasks: onTasks{operate{Program: p}}}
	c := &cobra.Command{
		Use:   "next [--explain]",
		Short: "Show the next task, or why each task is or is not next",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.bind(c)
	c.Flags().BoolVar(&o.explain, "explain", false, "show everything that is queued, with the reason")
	c.Flags().StringVar(&o.agent, "agent", "", "as if this agent asked (`NAME`, default: one that holds nothing)")
	return c
}

func (o *tasksNext) run(ctx context.Context) error {
	return o.withTasks(ctx, access.Operator, func(tasks taskSource) error {
		next, err := tasks.next(ctx, o.agent)
		if err != nil {
			return err
		}
		return o.print(next)
	})
}

func (o *tasksNext) print(next wire.NextTasks) error {
	if !o.explain {
		var only []wire.NextTask
		for _, t := range next.Tasks {
			if t.Verdict == string(task.ReasonNext) {
				only = append(only, t)
				break
			}
		}
		next.Tasks, next.Waits = only, nil
	}
	if o.json {
		return cli.PrintJSON(o.Stdout, next)
	}
	if err := o.printTasks(next.Tasks); err != nil {
		return err
	}
	for _, wait := range next.Waits {
		if _, err := fmt.Fprintf(o.Stdout, "\n%s", waitText(wait)); err != nil {
			return err
		}
	}
	return nil
}

func (o *tasksNext) printTasks(tasks []wire.NextTask) error {
	if len(tasks) == 0 {
		_, err := fmt.Fprintln(o.Stdout, "no task is ready")
		return err
	}
	lines := [][]string{{"VERDICT", "TYPE", "PRIORITY", "ASSIGNED", "ITEM", "TITLE", "REASON"}}
	for _, t := range tasks {
		why := t.VerdictText
		if len(t.BlockedBy) > 0 {
			why += ": " + strings.Join(t.BlockedBy, ", ")
		}
		if t.Until != nil {
			why += ", until " + t.Until.Format(time.RFC3339)
		}
		lines = append(lines, []string{
			t.Verdict, t.Type + " (" + t.Cause + ")", fmt.Sprint(t.Priority), t.AssignedAt.Format(time.RFC3339), t.Item, cli.OneLine(t.Title), why,
		})
	}
	return o.table(lines)
}

type tasksList struct {
	onTasks
	states []string
}

func tasksListCommand(p site.Program) *cobra.Command {
	o := tasksList{onTasks: onTasks{operate{Program: p}}}
	c := &cobra.Command{
		Use:   "list",
		Short: "List tasks, oldest first",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.bind(c)
	c.Flags().StringSliceVar(&o.states, "state", nil, "only tasks in this `STATE`: "+strings.Join(stateNames(), ", ")+"; may be given several times")
	cli.CompleteFlag(c, "state", stateNames()...)
	return c
}

func (o *tasksList) run(ctx context.Context) error {
	for _, name := range o.states {
		if !task.State(name).Valid() {
			return task.Errorf(task.Usage, "there is no state %q", name).WithHint("use one of %s", strings.Join(stateNames(), ", "))
		}
	}
	return o.withTasks(ctx, access.Viewer, func(tasks taskSource) error {
		found, err := tasks.list(ctx, o.states)
		if err != nil {
			return err
		}
		if o.json {
			return cli.PrintJSON(o.Stdout, found)
		}
		lines := [][]string{{"ID", "STATE", "TYPE", "ROLE", "AGENT", "ITEM", "TITLE", "REASON"}}
		for _, t := range found.Tasks {
			lines = append(lines, []string{t.ID, t.State, t.Type, t.Role, t.Agent, t.Item, cli.OneLine(t.Title), shortWhy(t)})
		}
		return o.table(lines)
	})
}

// stateNames are the states that tasks can be in.
func stateNames() []string {
	names := make([]string, 0, len(task.States))
	for _, state := range task.States {
		names = append(names, string(state))
	}
	return names
}

type tasksShow struct{ onTasks }

func tasksShowCommand(p site.Program) *cobra.Command {
	o := tasksShow{onTasks{operate{Program: p}}}
	c := &cobra.Command{
		Use:   "show TASK",
		Short: "Show one task",
		Args:  cobra.ExactArgs(1),
		RunE:  func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	o.bind(c)
	o.completeTasks(c)
	return c
}

func (o *tasksShow) run(ctx context.Context, name string) error {
	return o.withTasks(ctx, access.Viewer, func(tasks taskSource) error {
		t, err := tasks.find(ctx, name)
		if err != nil {
			return err
		}
		if o.json {
			return cli.PrintJSON(o.Stdout, t)
		}
		lines := [][]string{
			{"id", t.ID}, {"item", t.Item}, {"title", cli.OneLine(t.Title)}, {"url", t.URL},
			{"state", t.State + ": " + t.ReasonText}, {"type", t.Type + ": " + messages.Reason(task.English, task.Reason(t.Cause))},
			{"role", t.Role}, {"branch", t.Branch}, {"priority", fmt.Sprint(t.Priority)},
			{"generation", fmt.Sprint(t.Generation)}, {"attempts", fmt.Sprint(t.Attempts)}, {"agent", t.LastAgent},
			{"assigned", t.AssignedAt.Format(time.RFC3339)}, {"updated", t.UpdatedAt.Format(time.RFC3339)},
		}
		for _, item := range t.BlockedBy {
			lines = append(lines, []string{"blocked by", item})
		}
		if err := o.table(lines); err != nil {
			return err
		}
		_, err = io.WriteString(o.Stdout, whyText(t))
		return err
	})
}
