package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// logsPage is how many entries are asked for at once.
const logsPage = 500

type tasksLogs struct {
	operate
	follow bool
	full   bool
}

func tasksLogsCommand(p site.Program) *cobra.Command {
	o := tasksLogs{operate: operate{Program: p}}
	c := &cobra.Command{
		Use:   "logs TASK [--follow]",
		Short: "Print the journal of a task",
		Long: `Print the journal of a task: what its runs did, entry by entry, as toryo replay does. With
--follow a server has to run.`,
		Example: `  toryo tasks logs team/app#3 --follow
  toryo tasks logs team/app#3 --json | jq .kind`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	o.bind(c)
	o.completeTasks(c)
	c.Flags().BoolVarP(&o.follow, "follow", "f", false, "follow the journal until the task has ended")
	c.Flags().BoolVar(&o.full, "full", false, "print long texts whole")
	return c
}

var errTaskEnded = errors.New("the task has ended")

func (o tasksLogs) run(ctx context.Context, name string) error {
	if !o.follow {
		return o.withTasks(ctx, access.Viewer, func(tasks taskSource) error {
			return printJournal(ctx, o.entries(), tasks, name)
		})
	}
	return o.connect(ctx, access.Viewer, func(client *wire.Client) error {
		tasks := serverTasks{client}
		of, err := tasks.find(ctx, name)
		if err != nil {
			return err
		}
		entries := o.entries()
		if err := entries.begin(of); err != nil {
			return err
		}
		if err := o.keepFollowing(ctx, client, task.ID(of.ID), entries); err != nil {
			return err
		}
		return finish(ctx, entries, tasks, of.ID)
	})
}

func (o tasksLogs) entries() *taskEntries {
	return &taskEntries{journalPrinter: journalPrinter{out: o.Stdout, full: o.full}, json: o.json}
}

// keepFollowing follows until the task ends, and connects again when the server
// goes away.
func (o tasksLogs) keepFollowing(ctx context.Context, client *wire.Client, id task.ID, entries *taskEntries) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.MaxInterval = 30 * time.Second
	for {
		err := entries.follow(ctx, client, id, pauses.Reset)
		switch {
		case errors.Is(err, errTaskEnded):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case task.CodeOf(err) == task.Unavailable:
		case task.CodeOf(err) == task.Unauthorized && o.server == "": // the token was that of a server that has ended
		default:
			return err
		}
		fmt.Fprintf(o.Stderr, "toryo: %v; connecting again\n", err)
		if err := o.connectAgain(ctx, client, pauses); err != nil {
			return err
		}
	}
}

// follow prints what is there and what comes, until the task has ended or the server breaks off.
func (e *taskEntries) follow(ctx context.Context, client *wire.Client, id task.ID, seen func()) error {
	if err := e.page(ctx, serverTasks{client}, id); err != nil {
		return err
	}
	if e.ended {
		return errTaskEnded
	}
	_, err := client.Follow(ctx, id, e.after, func(event wire.Event) error {
		seen()
		if err := e.next(event); err != nil {
			return err
		}
		if e.ended {
			return errTaskEnded
		}
		return nil
	})
	return err
}

// connectAgain waits until there may be a server again.
func (o tasksLogs) connectAgain(ctx context.Context, client *wire.Client, pauses backoff.BackOff) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pauses.NextBackOff()):
		}
		if err := o.renew(client); !errors.Is(err, site.ErrNoServer) {
			return err
		}
	}
}

// endsTask reports whether an entry is the end of the task.
func endsTask(event wire.Event) bool {
	var change task.StateChange
	return event.Kind == string(task.StateChanged) && json.Unmarshal(event.Data, &change) == nil && change.To.Terminal()
}

// taskEntries prints the journal of a task, for people or as JSON.
type taskEntries struct {
	journalPrinter
	json bool
	// after is the position of the last entry that was printed, and ended says whether the task has
	// ended with it.
	after int64
	ended bool
	// between is called before each entry but the first; nil for nothing. It ends the printing
	// with errEnough.
	between func() error
}

// errEnough says that whoever reads has seen enough.
var errEnough = errors.New("seen enough")

// printJournal prints the journal of the task that is named.
func printJournal(ctx context.Context, entries *taskEntries, tasks taskSource, name string) error {
	of, err := tasks.find(ctx, name)
	if err != nil {
		return err
	}
	if err := entries.begin(of); err != nil {
		return err
	}
	if err := entries.page(ctx, tasks, task.ID(of.ID)); err != nil {
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	}
	return finish(ctx, entries, tasks, of.ID)
}

// begin prints what the journal is of.
func (e *taskEntries) begin(of wire.Task) error {
	if e.json {
		return nil
	}
	return e.heading([2]string{"task", of.ID + "  " + of.Item}, [2]string{"title", of.Title},
		[2]string{"type", of.Type + "  " + of.Role}, [2]string{"began", of.CreatedAt.Format(time.RFC3339)})
}

// page prints all that is there after what was printed.
func (e *taskEntries) page(ctx context.Context, tasks taskSource, id task.ID) error {
	for {
		page, err := tasks.events(ctx, id, e.after, logsPage)
		if err != nil {
			return err
		}
		for _, event := range page.Events {
			if e.between != nil && e.count > 0 {
				if err := e.between(); err != nil {
					return err
				}
			}
			if err := e.next(event); err != nil {
				return err
			}
		}
		if len(page.Events) == 0 { // one that is shorter may be full
			return nil
		}
	}
}

// next prints the next entry.
func (e *taskEntries) next(event wire.Event) error {
	if err := e.print(event); err != nil {
		return err
	}
	e.after, e.ended = event.Position, endsTask(event) || e.ended && event.Kind != string(task.StateChanged)
	return nil
}

// finish says how the task stands.
func finish(ctx context.Context, entries *taskEntries, tasks taskSource, id string) error {
	if entries.json {
		return nil
	}
	now, err := tasks.find(ctx, id)
	if err != nil {
		return err
	}
	if err := entries.ending(now.State, task.Reason(now.Reason)); err != nil {
		return err
	}
	_, err = io.WriteString(entries.out, whyText(now))
	return err
}

// print prints one entry: as JSON on a line, which cannot command the terminal, or for
// people.
func (e *taskEntries) print(event wire.Event) error {
	if !e.json {
		return e.show(event.Position, task.Event{Generation: event.Generation, Position: event.Position, Kind: task.EventKind(event.Kind), At: event.At, Data: event.Data})
	}
	line, err := json.Marshal(event)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "%s\n", line)
	return err
}
