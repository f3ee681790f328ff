package site

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/web"
)

// webhooksOf says for each forge with a webhook secret how to read what it sends.
func webhooksOf(c config.Config) map[task.Forge]server.Webhook {
	all := map[task.Forge]server.Webhook{
		task.GitHub: {Signed: github.SignedWebhook, Parse: github.ParseWebhook, Secret: c.GitHub.WebhookSecret.Reveal(), Self: cmp.Or(c.GitHub.AppName, c.GitHub.BotName)},
		task.GitLab: {Signed: gitlab.SignedWebhook, Parse: gitlab.ParseWebhook, Secret: c.GitLab.WebhookSecret.Reveal(), Self: c.GitLab.BotName},
		task.Gitea:  {Signed: gitea.SignedWebhook, Parse: gitea.ParseWebhook, Secret: c.Gitea.WebhookSecret.Reveal(), Self: c.Gitea.BotName},
	}
	for name, hook := range all {
		if hook.Secret == "" {
			delete(all, name)
		}
	}
	return all
}

// webhookEventsOf says for each forge with a webhook secret which events tell of changes
// to items.
func webhookEventsOf(c config.Config) map[task.Forge]forge.WebhookEvents {
	events := map[task.Forge]forge.WebhookEvents{
		task.GitHub: github.WebhookEvents, task.GitLab: gitlab.WebhookEvents, task.Gitea: gitea.WebhookEvents,
	}
	taken := map[task.Forge]forge.WebhookEvents{}
	for name := range webhooksOf(c) {
		taken[name] = events[name]
	}
	return taken
}

// newSnapshots makes what reads items, and what it knows about webhooks.
func newSnapshots(c config.Config, database store.Store, forges map[task.Forge]forge.Forge, now func() time.Time, log *slog.Logger) (*items.WebhookTrust, *items.Snapshots) {
	ages := agesOf(c.Polling)
	trust := items.NewWebhookTrust(items.TrustOptions{Store: database, Events: webhookEventsOf(c), Ages: ages, Now: now, Log: log})
	snapshots := items.NewSnapshots(readersOf(forges), ages, now)
	snapshots.TrustWebhooks(trust)
	if c.CommentDetection.ReviewComments {
		snapshots.ReadReviews(reviewsOf(forges))
	}
	return trust, snapshots
}

// reviewsForImages are where the images in reviews are read if the snapshots are without reviews.
func reviewsForImages(c config.Config, forges map[task.Forge]forge.Forge) map[task.Forge]items.ReviewSource {
	if c.CommentDetection.ReviewComments {
		return nil
	}
	return reviewsOf(forges)
}

func agesOf(c config.Polling) items.Ages {
	return items.Ages{Shortest: c.Shortest, Longest: c.Longest, LongestAfter: c.LongestAfter, TrustFor: c.TrustFor, Grace: c.WebhookGrace}
}

// webhookRepositories says which repositories deliver what, for the pages.
func (f *connections) webhookRepositories(c config.Config) func(context.Context) ([]web.WebhookRepository, error) {
	return func(ctx context.Context) ([]web.WebhookRepository, error) {
		known, err := f.store.ListWebhookEvents(ctx)
		if err != nil {
			return nil, err
		}
		var all []web.WebhookRepository
		for _, one := range items.ReportWebhooks(known, webhookEventsOf(c), agesOf(c.Polling), f.clock.Now()) {
			repository := web.WebhookRepository{Forge: one.Forge, Name: one.Repository, IssuesEvery: one.IssuesEvery.Round(time.Second), PullsEvery: one.PullsEvery.Round(time.Second)}
			for _, event := range one.Events {
				repository.Events = append(repository.Events, web.WebhookEvent{
					Name: event.Event, Title: event.Title, State: string(event.State), Delivered: event.Delivered,
					LastAt: event.LastAt, MissedAt: event.MissedAt, Missed: event.Missed, Every: event.Every.Round(time.Second),
				})
			}
			all = append(all, repository)
		}
		return all, nil
	}
}

// LookAtWebhooks reads which repositories deliver what, without changing anything.
func LookAtWebhooks(c config.Config) func(context.Context) ([]items.WebhookReport, error) {
	return func(ctx context.Context) (reports []items.WebhookReport, err error) {
		events := webhookEventsOf(c)
		if len(events) == 0 {
			return nil, nil
		}
		err = lookInto(ctx, c, func(database store.Store) error {
			known, err := database.ListWebhookEvents(ctx)
			reports = items.ReportWebhooks(known, events, agesOf(c.Polling), time.Now())
			return err
		})
		return reports, err
	}
}

// lookInto has something read from the database. One that is not there, or that an older program
// has made, is not looked into: what is wrong with it, the check of the database says.
func lookInto(ctx context.Context, c config.Config, read func(store.Store) error) error {
	found, there, err := inspectDatabase(ctx, c)
	if err != nil || !there || found.Schema != found.Newest {
		return nil
	}
	opened, err := OpenStore(ctx, c)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }() // nothing was written
	return read(opened)
}
