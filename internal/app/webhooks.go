package app

import (
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/task"
)

// webhooksOf says for each forge with a webhook secret how to read what it sends.
func webhooksOf(c config.Config) map[task.Forge]server.Webhook {
	all := map[task.Forge]server.Webhook{
		task.GitHub: {Signed: github.SignedWebhook, Parse: github.ParseWebhook, Secret: c.GitHub.WebhookSecret.Reveal(), Self: c.GitHub.BotName},
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

func agesOf(c config.Polling) broker.Ages {
	return broker.Ages{Shortest: c.Shortest, Longest: c.Longest, LongestAfter: c.LongestAfter, TrustFor: c.TrustFor, Grace: c.WebhookGrace}
}
