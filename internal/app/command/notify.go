package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
)

// Notify is the command toryo notify.
func Notify(p site.Program) *cobra.Command {
	return cli.Group("notify", "Try the webhooks by which people are told what waits for them", notifyTestCommand(p))
}

type notifyTest struct {
	site.Program
	settings cli.Settings
}

func notifyTestCommand(p site.Program) *cobra.Command {
	o := notifyTest{Program: p}
	c := &cobra.Command{
		Use:   "test [NAME]...",
		Short: "Send a test message to the notification webhooks",
		Long: `Send a test message, as a notification would be sent, to the named webhooks of
notifications.webhooks, or to all of them. Quiet hours do not count. What is sent by hand is
not remembered.`,
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	o.settings.Bind(c)
	return c
}

func (o notifyTest) run(ctx context.Context, names []string) error {
	loaded, err := o.settings.Load(o.Program)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = loaded.Notifications.WebhookNames()
	}
	if len(names) == 0 {
		return task.Errorf(task.NotFound, "notifications.webhooks names no webhook").WithHint("add one to toryo.yaml: see docs/notifications.md")
	}
	var failed []error
	for _, name := range names {
		if err := site.TryNotification(ctx, loaded, name, o.Now); err != nil {
			failed = append(failed, err)
			continue
		}
		if _, err := fmt.Fprintf(o.Stdout, "%s accepted the test message\n", name); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}
