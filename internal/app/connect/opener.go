package connect

import (
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Adapters makes adapters of forges that need not be configured yet. Open makes that of one
// which a configuration describes.
func Adapters(c config.Config, open func(config.Config, task.Forge) (forge.Forge, error)) Opener {
	return func(target Target) (Forge, error) {
		made, err := open(aimedAt(c, target), target.Forge)
		if err != nil {
			return nil, err
		}
		able, is := made.(Forge)
		if !is {
			return nil, task.Errorf(task.Unsupported, "repositories on %s cannot be set up by Toryo", target.Forge).
				WithHint("see docs/forges.md for what to do by hand")
		}
		return able, nil
	}
}

// aimedAt is the configuration with an address and a token. Without a token a GitHub App that
// is configured for the address acts as the bot.
func aimedAt(c config.Config, target Target) config.Config {
	switch target.Forge {
	case task.GitHub:
		if target.Token != "" || strings.TrimSuffix(target.URL, "/") != strings.TrimSuffix(c.GitHub.URL, "/") {
			c.GitHub = config.GitHub{Token: target.Token}
		}
		c.GitHub.URL = target.URL
	case task.GitLab:
		c.GitLab.URL, c.GitLab.Token = target.URL, target.Token
	case task.Gitea:
		c.Gitea.URL, c.Gitea.Token = target.URL, target.Token
	}
	return c
}
