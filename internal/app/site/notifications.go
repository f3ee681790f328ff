package site

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/leader"
	"github.com/toryo-dev/toryo/internal/notify"
	"github.com/toryo-dev/toryo/internal/notify/format"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// notifyEvery is how often it is looked whether people have to be told of something.
const notifyEvery = 5 * time.Second

// NotificationTargets are the webhooks by which people are told what waits for them.
func NotificationTargets(c config.Config) []notify.Target {
	var all []notify.Target
	for _, name := range c.Notifications.WebhookNames() {
		hook := c.Notifications.Webhooks[name]
		to := notify.Target{
			Name: name, URL: hook.URL, Format: format.Name(hook.Format), Template: hook.Template, Secret: hook.Secret, Language: c.NotificationLanguage(hook),
		}
		for _, kind := range hook.About {
			to.Kinds = append(to.Kinds, task.NeedKind(kind))
		}
		all = append(all, to)
	}
	return all
}

// notifying tells people what waits for them, if the configuration says by which webhooks. It
// is for the leader alone. It begins when the server can say what it cannot use: before that, such
// a need would count as over.
func notifying(c config.Config, f *connections, tasks *dispatch) ([]leader.Job, error) {
	targets := NotificationTargets(c)
	if len(targets) == 0 {
		return nil, nil
	}
	hours, err := c.Notifications.Quiet()
	if err != nil {
		return nil, err
	}
	deliverer := notify.NewDeliverer(notify.Options{
		Targets: targets, Needs: tasks.needs.All, Store: f.store, Send: notify.NewSender(f.clock.Now).Send, Pages: notify.Pages(f.url), Quiet: hours,
		Happened: func() int64 {
			happened, _ := tasks.notifier.Counts()
			return happened
		},
		Now: f.clock.Now, Log: f.log,
	})
	deliver := func(ctx context.Context) error {
		if tasks.faults.Load() == nil {
			return nil
		}
		return deliverer.Deliver(ctx)
	}
	return []leader.Job{{Name: "tell people what waits for them", Every: notifyEvery, Do: deliver}}, nil
}

// notificationFaults says which webhooks do not take what people have to be told.
func notificationFaults(ctx context.Context, c config.Config, in store.Notifications) (faults []broker.Fault) {
	var problems []string
	for _, name := range c.Notifications.WebhookNames() {
		// A database that cannot be read is a fault of its own.
		if problem, err := notify.Problem(ctx, in, name); err == nil && problem != "" {
			problems = append(problems, problem)
		}
	}
	if len(problems) > 0 {
		faults = append(faults, broker.Fault{Name: notify.FaultName, Detail: strings.Join(problems, "\n")})
	}
	return faults
}

// quietIn says whether it is quiet at a moment, for browsers. Hours that are wrong keep the server
// from starting before that.
func quietIn(c config.Config) func(time.Time) bool {
	hours, err := c.Notifications.Quiet()
	if err != nil {
		return nil
	}
	return hours.In
}

// LookAtNotifications is how toryo doctor looks at the webhooks by which people are told: whether
// something answers there, and what servers could not send.
func LookAtNotifications(c config.Config) []doctor.NotificationAccess {
	sender := notify.NewSender(time.Now)
	var all []doctor.NotificationAccess
	for _, to := range NotificationTargets(c) {
		all = append(all, doctor.NotificationAccess{
			Name: to.Name, Format: string(to.Format),
			Reach: func(ctx context.Context) (int, error) { return sender.Reach(ctx, to) },
			Unsent: func(ctx context.Context) (count int, why string, err error) {
				err = lookInto(ctx, c, func(database store.Store) error {
					known, err := database.ListNotifications(ctx, to.Name)
					count, why = unsentOf(known)
					return err
				})
				return count, why, err
			},
		})
	}
	return all
}

// unsentOf is how many things could not be told that still wait, and why.
func unsentOf(known []store.Notification) (count int, why string) {
	for _, one := range known {
		if one.SentAt.IsZero() && one.OverAt.IsZero() && one.Problem != "" {
			count, why = count+1, one.Problem
		}
	}
	return count, why
}

// TryNotification sends a test message to a webhook of the configuration.
func TryNotification(ctx context.Context, c config.Config, name string, now func() time.Time) error {
	for _, to := range NotificationTargets(c) {
		if to.Name == name {
			return notify.NewSender(now).Send(ctx, to, notify.Pages(PublicURL(c, c.Server.Addr)).Test(to.Language, now()))
		}
	}
	return task.Errorf(task.NotFound, "notifications.webhooks has no %q", name).WithHint("%s", notificationNames(c))
}

func notificationNames(c config.Config) string {
	names := c.Notifications.WebhookNames()
	if len(names) == 0 {
		return "add one to notifications.webhooks in toryo.yaml: see docs/notifications.md"
	}
	return fmt.Sprintf("there are: %q", names)
}
