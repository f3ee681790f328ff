package connect

import (
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/task"
)

// Forge is what connecting needs of a forge.
type Forge interface {
	forge.Reader
	forge.Setup
	forge.Git
}

// Target is a forge to connect to.
type Target struct {
	Forge task.Forge
	URL   string
	Token redact.Secret
}

// Opener makes the adapter of a forge. It asks the forge nothing yet.
type Opener func(Target) (Forge, error)

// Kind is what is known of a sort of forge before it is asked.
type Kind struct {
	Forge task.Forge
	Title string
	URL   string // the usual address; empty if there is none
	// Needs is what a token needs, in the words of the forge.
	Needs string

	tokenPage string // below the address
	events    forge.WebhookEvents
	signed    forge.WebhookSigned
	parse     forge.WebhookParser
}

// Kinds are the forges that can be connected. The built-in board is always there.
var Kinds = []Kind{
	{
		Forge: task.GitHub, Title: "GitHub", URL: "https://github.com", tokenPage: "/settings/personal-access-tokens/new",
		Needs:  "the permissions contents, issues, pull requests and commit statuses (read and write) and actions (read). For webhooks it also needs webhooks (read and write), and the account needs the Admin role in the repository",
		events: github.WebhookEvents, signed: github.SignedWebhook, parse: github.ParseWebhook,
	},
	{
		Forge: task.GitLab, Title: "GitLab", URL: "https://gitlab.com", tokenPage: "/-/user_settings/personal_access_tokens",
		Needs:  "the scope api. The account needs the Developer role in the project, or the Maintainer role for webhooks",
		events: gitlab.WebhookEvents, signed: gitlab.SignedWebhook, parse: gitlab.ParseWebhook,
	},
	{
		Forge: task.Gitea, Title: "Gitea or Forgejo", tokenPage: "/user/settings/applications",
		Needs:  "the scopes write:repository, write:issue and read:user. The account needs write access to the repository, and administrator access for webhooks",
		events: gitea.WebhookEvents, signed: gitea.SignedWebhook, parse: gitea.ParseWebhook,
	},
}

// KindOf finds what is known of a forge; the zero value for the board.
func KindOf(name task.Forge) Kind {
	for _, kind := range Kinds {
		if kind.Forge == name {
			return kind
		}
	}
	return Kind{}
}

// Events are those of webhooks that we know what to do with.
func (k Kind) Events() forge.WebhookEvents { return k.events }

// Webhook says how a delivery is read that is signed with a secret.
func (k Kind) Webhook(secret redact.Secret) server.Webhook {
	return server.Webhook{Signed: k.signed, Parse: k.parse, Secret: secret.Reveal()}
}

// TokenPage is where people make a token on the forge at an address.
func (k Kind) TokenPage(address string) string {
	return strings.TrimSuffix(address, "/") + k.tokenPage
}

// OneOwner reports whether an installation works on the repositories of one owner, and not on
// those of a list.
func (k Kind) OneOwner() bool { return k.Forge == task.GitHub || k.Forge == task.Gitea }
