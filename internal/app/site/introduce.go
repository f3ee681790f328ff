package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// introduceWithin is how long a forge may take to say who we are there.
	introduceWithin = time.Minute
	// mostNamed is how many repositories are named in the log.
	mostNamed = 10
)

// introduce returns a function for each forge that logs whom the server acts as there and which
// repositories it works on. They run in the background: a forge that is down does not keep a
// server from starting.
func introduce(c config.Config, forges map[task.Forge]forge.Forge, log *slog.Logger) []func(context.Context) {
	var all []func(context.Context)
	for _, name := range c.ConfiguredForges() {
		all = append(all, func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, introduceWithin)
			defer cancel()
			introduceOn(ctx, c, forges[name], log.With("forge", name, "url", c.Account(name).URL))
		})
	}
	return all
}

func introduceOn(ctx context.Context, c config.Config, on forge.Forge, log *slog.Logger) {
	self, err := on.Self(ctx)
	if err != nil {
		if !stopping(ctx) {
			log.WarnContext(ctx, "the forge does not say whom the server acts as", "error", err, "hint", moreByDoctor)
		}
		return
	}
	log = log.With("account", self)
	if account := c.Account(on.Name()); account.BotName != "" && !account.Is(self) {
		hint := fmt.Sprintf("set %s.bot_name to %s, or use the token of %s", on.Name(), self, account.BotName)
		if app, is := strings.CutSuffix(self, "[bot]"); is {
			hint = "set github.app_name to " + app
		}
		log.WarnContext(ctx, "the server acts as another account than the one that is configured", "bot_name", account.BotName, "hint", hint)
	}
	seen, err := on.Repositories(ctx)
	if err != nil {
		if !stopping(ctx) {
			log.WarnContext(ctx, "the forge does not say which repositories there are", "error", err, "hint", moreByDoctor)
		}
		return
	}
	scope := scopeOf(c)
	var ours, others []string
	for _, repository := range seen {
		if scope(on.Name(), repository.Name) {
			ours = append(ours, repository.Name)
		} else {
			others = append(others, repository.Name)
		}
	}
	if len(ours) == 0 {
		log.WarnContext(ctx, "no repository of the forge is worked on", "others", len(others), "first_others", firstNames(others),
			"hint", rangeOf(c, on.Name())+"; set it to where the repositories are that the bot may use, or let the bot into those that are there")
		return
	}
	log.InfoContext(ctx, "the server acts on a forge", "repositories", len(ours), "first", firstNames(ours), "others", len(others), "by", rangeOf(c, on.Name()))
}

// moreByDoctor is what to do when a forge does not answer as it should.
const moreByDoctor = "toryo doctor says more"

// stopping reports whether something failed because the server is about to stop.
func stopping(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// firstNames are the first names of a list, in order.
func firstNames(names []string) []string {
	sorted := slices.Sorted(slices.Values(names))
	return sorted[:min(len(sorted), mostNamed)]
}

// rangeOf says which repositories of a forge are worked on by the configuration.
func rangeOf(c config.Config, name task.Forge) string {
	switch name {
	case task.GitHub:
		return fmt.Sprintf("github.owner is %q", c.GitHub.Owner)
	case task.Gitea:
		return fmt.Sprintf("gitea.owner is %q", c.Gitea.Owner)
	default:
		return "gitlab.projects is [" + strings.Join(firstNames(c.GitLab.Projects), ", ") + "]"
	}
}

// outsideOf says why a repository is not worked on, and how to change that.
func outsideOf(c config.Config) func(task.Forge, string) (why, hint string) {
	return func(name task.Forge, repository string) (why, hint string) {
		why = rangeOf(c, name)
		if name == task.GitLab {
			return why, "to work on it, add " + repository + " to gitlab.projects in toryo.yaml and start the server again"
		}
		owner, _, _ := strings.Cut(repository, "/")
		return why, fmt.Sprintf("to work on it, set %s.owner to %s in toryo.yaml and start the server again, or move the repository to the configured owner", name, owner)
	}
}
