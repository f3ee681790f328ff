package doctor

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
)

// app is a GitHub App that acts as the bot. It has no token that somebody could make anew: it signs
// with its private key, and acts where it is installed.
type app struct {
	id, installation int
	owner            string // at which it is installed, if no installation is named
}

// installed is how the configuration says where the App is installed.
func (a *app) installed() string {
	if a.installation == 0 {
		return "at " + a.owner + " (github.owner)"
	}
	return fmt.Sprintf("with the number %d (github.app_installation_id)", a.installation)
}

// privateKeys is where the private key of an App comes from.
const privateKeys = "github.app_private_key_file or TORYO_GITHUB_APP_PRIVATE_KEY"

// lacking is a finding about what the configuration of the App does not have.
func (a *app) lacking(account config.Account) *Finding {
	finding := &Finding{Name: string(account.Forge), Status: Missing}
	const where = "; its page in the settings of the account or organisation that owns it has "
	switch {
	case a.id == 0:
		finding.Found, finding.Hint = "a GitHub App is described, but not its number", "set github.app_id"+where+"the App ID"
	case !account.Credentials:
		finding.Found, finding.Hint = fmt.Sprintf("the GitHub App %d has no private key", a.id), "set "+privateKeys+where+"a button that makes one"
	case a.installation == 0 && a.owner == "":
		finding.Found = fmt.Sprintf("it is not said where the GitHub App %d is installed", a.id)
		finding.Hint = "set github.owner to the user or organisation at which it is installed"
	case account.BotName == "":
		finding.Found = "a GitHub App is set, but not whom people assign"
		finding.Hint = "set github.bot_name to the account that people assign: no App can be assigned"
	default:
		return nil
	}
	return finding
}

// appSuffix is what GitHub puts behind the name of an App where it shows what the App did.
const appSuffix = "[bot]"

// cannotBeAssigned is a finding about a bot_name that is the App's own.
func (a *app) cannotBeAssigned(account config.Account) Finding {
	return Finding{
		Name: string(account.Forge), Status: Warning,
		Found: fmt.Sprintf("bot_name is %s, but GitHub lets nobody assign an App", account.BotName),
		Hint: fmt.Sprintf("set github.bot_name to an account that people can assign, such as one that you make for it, and github.app_name to %s",
			strings.TrimSuffix(account.BotName, appSuffix)),
	}
}

// answered says what a status means that GitHub gives the App itself, or nothing.
func (a *app) answered(url string, status int, said string) (found, hint string) {
	switch status {
	case http.StatusUnauthorized:
		return fmt.Sprintf("%s does not accept what the GitHub App %d signs with its private key (status 401)%s", url, a.id, said),
			"check whether github.app_id and the private key (" + privateKeys + ") are of the same App, make another key on its page if this one was deleted, and check the clock of this machine"
	case http.StatusForbidden:
		return fmt.Sprintf("%s does not let the GitHub App %d act (status 403)%s", url, a.id, said),
			"check whether the App or its installation " + a.installed() + " is suspended"
	case http.StatusNotFound:
		return fmt.Sprintf("%s knows no GitHub App %d (status 404)", url, a.id),
			"set github.app_id to the App ID on its page, the private key (" + privateKeys + ") to one of that App, and github.url to the address of the first page of GitHub"
	}
	return "", ""
}

// configured is where to look when no connection can be made of the configuration.
func (s forgeSurvey) configured() string {
	if s.app != nil {
		return "see github.app_id, github.owner, github.app_installation_id and the private key (" + privateKeys + ")"
	}
	return "see " + string(s.name) + " in toryo.yaml"
}

// needs is where to look when repositories cannot be listed.
func (s forgeSurvey) needs() string {
	if s.app != nil {
		return fmt.Sprintf("check whether the App %d has an installation %s and that is not suspended, and docs/forges.md for what an App needs", s.app.id, s.app.installed())
	}
	return "see docs/forges.md for what the token needs"
}

// access is how the bot gets to see repositories.
func (s forgeSurvey) access() string {
	if s.app != nil {
		return fmt.Sprintf("install the App at %s, and choose the repositories there that it may access", s.where.owner)
	}
	return fmt.Sprintf("give %s write access to a repository of %s", s.account.BotName, s.where.owner)
}
