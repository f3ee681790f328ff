package config

import (
	"time"

	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// GitHub is the section "github".
type GitHub struct {
	URL               string        `key:"url" default:"https://github.com" format:"url" about:"Address of the forge."`
	Owner             string        `key:"owner" format:"name" example:"my-organisation" about:"User or organisation whose repositories are worked on."`
	BotName           string        `key:"bot_name" format:"name" example:"toryo-bot" about:"Account of the bot: assigning it starts a task, unassigning it stops it."`
	Token             redact.Secret `key:"token" about:"Access token of the bot."`
	TokenFile         string        `key:"token_file" example:"/run/secrets/github-token" about:"File that holds the access token and nothing else."`
	AppID             int           `key:"app_id" default:"0" min:"0" max:"9007199254740991" example:"123456" about:"Number of the GitHub App that acts as the bot, in place of an access token; 0 means none."`
	AppInstallationID int           `key:"app_installation_id" default:"0" min:"0" max:"9007199254740991" about:"Number of the App's installation; 0 means the one at the owner."`
	AppName           string        `key:"app_name" format:"name" example:"my-app" about:"Name of the App as in its address; what it does is shown under that name with [bot] behind it. Not needed if it is bot_name."`
	AppPrivateKey     redact.Secret `key:"app_private_key" format:"pem" lines:"true" about:"Private key of the App, in PEM."`
	AppPrivateKeyFile string        `key:"app_private_key_file" example:"/run/secrets/github-app.pem" about:"File that holds the private key and nothing else, as GitHub gives it."`
	WebhookSecret     redact.Secret `key:"webhook_secret" about:"Secret that webhooks are signed with; without it they are refused."`
	WebhookSecretFile string        `key:"webhook_secret_file" example:"/run/secrets/github-webhook" about:"File that holds the secret of the webhooks and nothing else."`
	Labels
}

// GitLab is the section "gitlab".
type GitLab struct {
	URL               string        `key:"url" default:"https://gitlab.com" format:"url" about:"Address of the forge."`
	Projects          []string      `key:"projects" format:"project" example:"[group/project]" about:"Projects that are worked on."`
	BotName           string        `key:"bot_name" format:"name" example:"toryo-bot" about:"Account of the bot: assigning it starts a task, unassigning it stops it."`
	Token             redact.Secret `key:"token" about:"Access token of the bot."`
	TokenFile         string        `key:"token_file" example:"/run/secrets/gitlab-token" about:"File that holds the access token and nothing else."`
	WebhookSecret     redact.Secret `key:"webhook_secret" about:"Secret token that comes with webhooks; without it they are refused."`
	WebhookSecretFile string        `key:"webhook_secret_file" example:"/run/secrets/gitlab-webhook" about:"File that holds the secret of the webhooks and nothing else."`
	Labels
}

// Gitea is the section "gitea".
type Gitea struct {
	URL               string        `key:"url" format:"url" example:"https://gitea.example.com" about:"Address of the forge."`
	Owner             string        `key:"owner" format:"name" example:"my-organisation" about:"User or organisation whose repositories are worked on."`
	BotName           string        `key:"bot_name" format:"name" example:"toryo-bot" about:"Account of the bot: assigning it starts a task, unassigning it stops it."`
	Token             redact.Secret `key:"token" about:"Access token of the bot."`
	TokenFile         string        `key:"token_file" example:"/run/secrets/gitea-token" about:"File that holds the access token and nothing else."`
	WebhookSecret     redact.Secret `key:"webhook_secret" about:"Secret that webhooks are signed with; without it they are refused."`
	WebhookSecretFile string        `key:"webhook_secret_file" example:"/run/secrets/gitea-webhook" about:"File that holds the secret of the webhooks and nothing else."`
	Labels
}

// Labels are the texts of the state labels on one forge. Their defaults are
// those of [task.DefaultLabelNames].
type Labels struct {
	Bot        string `key:"bot_label" format:"label" about:"Label of a task that waits."`
	Processing string `key:"processing_label" format:"label" about:"Label of a task that is being worked on."`
	Paused     string `key:"paused_label" format:"label" about:"Label of a paused task."`
	Stopped    string `key:"stopped_label" format:"label" about:"Label of a task that a person stopped."`
	Done       string `key:"done_label" format:"label" about:"Label of a finished task."`
	Failed     string `key:"failed_label" format:"label" about:"Label of a task that failed."`
}

// Names gives the labels in the form in which the rest of Toryo uses them.
func (l Labels) Names() task.LabelNames {
	return task.LabelNames{
		task.BotLabel:        l.Bot,
		task.ProcessingLabel: l.Processing,
		task.PausedLabel:     l.Paused,
		task.StoppedLabel:    l.Stopped,
		task.DoneLabel:       l.Done,
		task.FailedLabel:     l.Failed,
	}
}

// UsesApp says that a GitHub App acts as the bot, and not the owner of a token.
func (g GitHub) UsesApp() bool { return g.AppID != 0 }

// HasCredentials says that there is a token, or a GitHub App with its key.
func (g GitHub) HasCredentials() bool {
	return g.Token != "" || g.UsesApp() && g.AppPrivateKey != ""
}

// DescribesApp says that something is set about a GitHub App, be it enough or not.
func (g GitHub) DescribesApp() bool {
	return g.AppID != 0 || g.AppInstallationID != 0 || g.AppPrivateKey != "" || g.AppPrivateKeyFile != ""
}

// ConfiguredForges lists the forges that the configuration says something about:
// a credential, the secret of webhooks, whose repositories, or an address of its own. The built-in board
// needs no configuration and is not among them.
func (c Config) ConfiguredForges() []task.Forge {
	usual := Default()
	var forges []task.Forge
	if g := c.GitHub; g.DescribesApp() || isGiven(g.Token, g.TokenFile, g.WebhookSecret, g.WebhookSecretFile) || g.Owner != "" || g.URL != usual.GitHub.URL {
		forges = append(forges, task.GitHub)
	}
	if g := c.GitLab; isGiven(g.Token, g.TokenFile, g.WebhookSecret, g.WebhookSecretFile) || len(g.Projects) > 0 || g.URL != usual.GitLab.URL {
		forges = append(forges, task.GitLab)
	}
	if g := c.Gitea; isGiven(g.Token, g.TokenFile, g.WebhookSecret, g.WebhookSecretFile) || g.Owner != "" || g.URL != usual.Gitea.URL {
		forges = append(forges, task.Gitea)
	}
	return forges
}

// isGiven says that a token or the secret of webhooks is set, or a file for it.
func isGiven(token redact.Secret, tokenFile string, webhook redact.Secret, webhookFile string) bool {
	return token != "" || tokenFile != "" || webhook != "" || webhookFile != ""
}

// LabelNames gives the texts of the state labels on a forge; the board has those
// of the specifications.
func (c Config) LabelNames(forge task.Forge) task.LabelNames {
	switch forge {
	case task.GitHub:
		return c.GitHub.Names()
	case task.GitLab:
		return c.GitLab.Names()
	case task.Gitea:
		return c.Gitea.Names()
	default:
		return task.DefaultLabelNames()
	}
}

// Account is what a forge knows us by.
type Account struct {
	Forge       task.Forge
	URL         string
	BotName     string
	App         string   // name of the GitHub App that acts in its place; empty if it has the same
	Credentials bool     // a token, or on GitHub an App
	Variables   []string // from which the token is taken, in their order
}

// Account returns our account on a forge; the zero value for the board.
func (c Config) Account(forge task.Forge) Account {
	account := Account{Forge: forge}
	switch forge {
	case task.GitHub:
		account.URL, account.BotName, account.Credentials = c.GitHub.URL, c.GitHub.BotName, c.GitHub.HasCredentials()
		account.App = c.GitHub.AppName
	case task.GitLab:
		account.URL, account.BotName, account.Credentials = c.GitLab.URL, c.GitLab.BotName, c.GitLab.Token != ""
	case task.Gitea:
		account.URL, account.BotName, account.Credentials = c.Gitea.URL, c.Gitea.BotName, c.Gitea.Token != ""
	default:
		return Account{}
	}
	account.Variables = tokenVariables(forge, account.URL)
	return account
}

// Is reports whether a login is the account's, or that of the App which acts in its place.
func (a Account) Is(login string) bool {
	return task.SameBot(login, a.BotName) || task.SameBot(login, a.App)
}

// Polling is the section "polling".
type Polling struct {
	Shortest     time.Duration `key:"shortest" default:"30s" min:"1s" max:"24h" about:"How often, for what no webhook tells of."`
	Longest      time.Duration `key:"longest" default:"15m" min:"1s" max:"24h" about:"How often, for what webhooks tell of that are trusted in full; it is how late a change can be seen whose webhook is lost."`
	LongestAfter int           `key:"longest_after" default:"20" min:"1" max:"100000" about:"How many webhooks of an event a repository has to deliver to be trusted in full; fewer count in proportion. A change that is found without a webhook ends the trust, and counting begins again."`
	TrustFor     time.Duration `key:"trust_for" default:"72h" min:"1m" max:"720h" about:"How long after the last webhook of an event it is trusted."`
	WebhookGrace time.Duration `key:"webhook_grace" default:"30s" min:"1s" max:"1h" about:"How late a webhook may come after polling has found the change that it is about."`
}
