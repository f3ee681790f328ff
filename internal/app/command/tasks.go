package command

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// Tasks is the command toryo tasks.
func Tasks(p site.Program) *cobra.Command {
	c := cli.Group("tasks", "See what there is to do and what is next, and steer tasks",
		tasksNextCommand(p), tasksListCommand(p), tasksShowCommand(p), tasksLogsCommand(p), tasksStopCommand(p), tasksRetryCommand(p), tasksApproveCommand(p))
	c.Long = "See what there is to do and what is next, and steer tasks. next, list and show read the\ndatabase; the others ask a running server. See also toryo pause and toryo resume."
	return c
}

// onTasks is what every command on tasks has.
type onTasks struct {
	site.Program
	settings cli.Settings
	json     bool
}

func (o *onTasks) bind(c *cobra.Command) {
	o.settings.Bind(c, cli.DataFlag)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON, in the shapes of the HTTP API")
}

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
	o := tasksNext{onTasks: onTasks{Program: p}}
	c := &cobra.Command{
		Use:   "next [--explain]",
		Short: "Show the task that the next agent gets, or why each task is or is not next",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.bind(c)
	c.Flags().BoolVar(&o.explain, "explain", false, "show everything that is queued, with the reason")
	c.Flags().StringVar(&o.agent, "agent", "", "as if this agent asked (`NAME`, default: one that holds nothing)")
	return c
}

func (o *tasksNext) run(ctx context.Context) error {
	loaded, err := o.settings.Load(o.Program)
	if err != nil {
		return err
	}
	return cli.WithStore(ctx, o.Program, &o.settings, func(database store.Store) error {
		now, err := database.Time(ctx)
		if err != nil {
			return err
		}
		verdicts, err := broker.Explain(ctx, database, broker.Limits(loaded.Limits), now, o.agent)
		if err != nil {
			return err
		}
		waits, err := broker.Waits(ctx, database, broker.Limits(loaded.Limits), now)
		if err != nil {
			return err
		}
		return o.print(server.NextTasksOf(verdicts, waits))
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
		_, err := fmt.Fprintln(o.Stdout, "nothing is next")
		return err
	}
	lines := [][]string{{"VERDICT", "TYPE", "PRIORITY", "ASSIGNED", "ITEM", "TITLE", "WHY"}}
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
	o := tasksList{onTasks: onTasks{Program: p}}
	c := &cobra.Command{
		Use:   "list",
		Short: "List tasks, oldest first",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.bind(c)
	c.Flags().StringSliceVar(&o.states, "state", nil, "only tasks in this state (`STATE`; may be given several times)")
	return c
}

func (o *tasksList) run(ctx context.Context) error {
	var filter store.TaskFilter
	for _, name := range o.states {
		state := task.State(name)
		if !state.Valid() {
			return task.Errorf(task.Usage, "there is no state %q", name).WithHint("use one of %v", task.States)
		}
		filter.States = append(filter.States, state)
	}
	return cli.WithStore(ctx, o.Program, &o.settings, func(database store.Store) error {
		found, err := database.ListTasks(ctx, filter)
		if err != nil {
			return err
		}
		if o.json {
			shown := wire.Tasks{Tasks: []wire.Task{}}
			for _, t := range found {
				shown.Tasks = append(shown.Tasks, wire.TaskOf(t))
			}
			return cli.PrintJSON(o.Stdout, shown)
		}
		lines := [][]string{{"ID", "STATE", "TYPE", "ROLE", "AGENT", "ITEM", "TITLE"}}
		for _, t := range found {
			lines = append(lines, []string{string(t.ID), string(t.State), string(t.Type), string(t.Role), t.Lease.Agent, t.Key.String(), cli.OneLine(t.Title)})
		}
		return o.table(lines)
	})
}

type tasksShow struct{ onTasks }

func tasksShowCommand(p site.Program) *cobra.Command {
	o := tasksShow{onTasks{Program: p}}
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show one task",
		Args:  cobra.ExactArgs(1),
		RunE:  func(c *cobra.Command, args []string) error { return o.run(c.Context(), task.ID(args[0])) },
	}
	o.bind(c)
	return c
}

func (o *tasksShow) run(ctx context.Context, id task.ID) error {
	return cli.WithStore(ctx, o.Program, &o.settings, func(database store.Store) error {
		t, err := database.Task(ctx, id)
		if err != nil {
			return err
		}
		if o.json {
			return cli.PrintJSON(o.Stdout, wire.TaskOf(t))
		}
		lines := [][]string{
			{"id", string(t.ID)}, {"item", t.Key.String()}, {"title", cli.OneLine(t.Title)}, {"url", t.URL},
			{"state", fmt.Sprintf("%s: %s", t.State, messages.Reason(task.English, t.Reason))}, {"type", fmt.Sprintf("%s: %s", t.Type, messages.Reason(task.English, t.Cause))},
			{"role", string(t.Role)}, {"branch", t.Branch}, {"priority", fmt.Sprint(t.Priority)},
			{"generation", fmt.Sprint(t.Generation)}, {"attempts", fmt.Sprint(t.Attempts)}, {"agent", t.LastAgent},
			{"assigned", t.AssignedAt.Format(time.RFC3339)}, {"changed", t.UpdatedAt.Format(time.RFC3339)},
		}
		for _, key := range t.BlockedBy.List() {
			lines = append(lines, []string{"blocked by", key.String()})
		}
		return o.table(lines)
	})
}
