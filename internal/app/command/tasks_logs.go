package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// logsPage is how many entries are asked for at once.
const logsPage = 500

type tasksLogs struct {
	operate
	follow bool
}

func tasksLogsCommand(p site.Program) *cobra.Command {
	o := tasksLogs{operate: operate{Program: p}}
	c := &cobra.Command{
		Use:   "logs TASK [--follow]",
		Short: "Print the journal of a task",
		Args:  cobra.ExactArgs(1),
		RunE:  func(c *cobra.Command, args []string) error { return o.run(c.Context(), task.ID(args[0])) },
	}
	o.bind(c)
	c.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on as it grows, until the task has ended")
	return c
}

var errTaskEnded = errors.New("the task has ended")

func (o tasksLogs) run(ctx context.Context, id task.ID) error {
	return o.withServer(ctx, func(client *wire.Client) error {
		after := int64(0)
		ended := false
		for {
			page, err := client.TaskEvents(ctx, id, after, logsPage)
			if err != nil {
				return err
			}
			for _, event := range page.Events {
				if err := o.print(event); err != nil {
					return err
				}
				after, ended = event.Position, endsTask(event) || ended && event.Kind != string(task.StateChanged)
			}
			if len(page.Events) < logsPage {
				break
			}
		}
		if !o.follow || ended {
			return nil
		}
		return o.keepFollowing(ctx, client, id, after)
	})
}

// keepFollowing follows until the task ends, and connects again when the server
// goes away.
func (o tasksLogs) keepFollowing(ctx context.Context, client *wire.Client, id task.ID, after int64) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.MaxInterval = 30 * time.Second
	for {
		var err error
		after, err = client.Follow(ctx, id, after, func(event wire.Event) error {
			pauses.Reset()
			if err := o.print(event); err != nil {
				return err
			}
			if endsTask(event) {
				return errTaskEnded
			}
			return nil
		})
		switch {
		case errors.Is(err, errTaskEnded):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case task.CodeOf(err) != task.Unavailable:
			return err
		}
		fmt.Fprintf(o.Stderr, "toryo: %v; connecting again\n", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pauses.NextBackOff()):
		}
	}
}

// endsTask reports whether an entry is the end of the task.
func endsTask(event wire.Event) bool {
	var change task.StateChange
	return event.Kind == string(task.StateChanged) && json.Unmarshal(event.Data, &change) == nil && change.To.Terminal()
}

// print prints one entry on one line. What a run wrote is data: as JSON it cannot
// command the terminal.
func (o tasksLogs) print(event wire.Event) error {
	if o.json {
		line, err := json.Marshal(event)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.Stdout, "%s\n", line)
		return err
	}
	_, err := fmt.Fprintf(o.Stdout, "%5d  %s  %d  %-8s %s\n", event.Position, event.At.Format(time.RFC3339), event.Generation, event.Kind, event.Data)
	return err
}
