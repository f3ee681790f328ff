package site

import (
	"context"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// accounts lets people write on items under their own accounts, with their own tokens.
type accounts struct {
	config  config.Config
	forges  map[task.Forge]forge.Forge // as the bot
	changes *items.Feed
}

// open is a forge in the hands of whoever the token is of. What people write goes over no transport of
// the bot's: its limits and its cache are not theirs.
func (a accounts) open(of task.Forge, token string) (forge.Forge, error) {
	if _, connected := a.forges[of]; !connected || of == task.Board {
		return nil, task.Errorf(task.Unsupported, "%s is not connected", of)
	}
	c := a.config
	switch of {
	case task.GitHub:
		c.GitHub.AppID, c.GitHub.Token = 0, redact.Secret(token)
	case task.GitLab:
		c.GitLab.Token = redact.Secret(token)
	case task.Gitea:
		c.Gitea.Token = redact.Secret(token)
	default:
	}
	return connectForge(c, of, forge.HTTPClient(nil))
}

// LoginOf implements [web.LinkedAccounts].
func (a accounts) LoginOf(ctx context.Context, of task.Forge, token string) (string, error) {
	person, err := a.open(of, token)
	if err != nil {
		return "", err
	}
	login, err := person.Self(ctx)
	if task.CodeOf(err) == task.Unauthorized {
		// It is the token that is refused, not the reader.
		return "", task.Wrap(task.Invalid, err, string(of)+" does not accept the token").WithHint("make one that may read your account and write comments")
	}
	if err != nil {
		return "", err
	}
	self, err := a.forges[of].Self(ctx)
	if err != nil {
		return "", err
	}
	if task.SameBot(login, self) {
		return "", task.Errorf(task.Forbidden, "the token is the bot's").WithHint("use one of your own account")
	}
	return login, nil
}

// Comment implements [web.LinkedAccounts].
func (a accounts) Comment(ctx context.Context, on task.Key, token, text string) error {
	person, err := a.open(on.Forge, token)
	if err != nil {
		return err
	}
	if _, err := person.CreateComment(ctx, on, forge.Post{Text: forge.TextOfPerson(text)}); err != nil {
		if task.CodeOf(err) == task.Unauthorized {
			return task.Wrap(task.Forbidden, err, string(on.Forge)+" does not accept your token any more").WithHint("unlink your account on the page of the task, and link it again")
		}
		return err
	}
	a.changes.Publish(items.Change{Repository: on.Repo(), Items: []task.Key{on}})
	return nil
}
