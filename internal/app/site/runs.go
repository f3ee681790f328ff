package site

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/redact/rules"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/task"
)

// PauseFile is the name of the file, in the folder of the contexts, that pauses
// everything while it is there.
const PauseFile = "pause_signal"

// watchEvery is how often the items of running tasks are gone through. How often a
// forge is asked about one is another matter.
const watchEvery = time.Second

// gateOf is what work passes before it is published.
func gateOf(c config.Config, mirrors *mirror.Mirrors) (broker.Gate, error) {
	recognised, err := rules.New(nil)
	if err != nil {
		return broker.Gate{}, err
	}
	registries, err := egress.Registries(c.Sandbox.Network.Hosts...)
	if err != nil {
		return broker.Gate{}, err
	}
	const https = 443
	inspector := inspect.New(inspect.Options{
		Known: c.Redactor(), Recognised: recognised, Protect: c.Publishing.Protect, Allow: c.Publishing.Allow, MaxDiff: int64(c.Publishing.MaxDiff),
		Registry: func(host string) bool { return registries.Trust(host, https) != egress.Unlisted },
	})
	return broker.Gate{
		Inspect: func(ctx context.Context, p outbox.Publication) ([]inspect.Found, error) {
			return mirrors.Inspect(ctx, mirror.Publication(p), inspector)
		},
		Retract: func(ctx context.Context, p outbox.Publication) error {
			return mirrors.Retract(ctx, mirror.Publication(p))
		},
		Refuse: c.Publishing.Unasked == "refuse",
	}, nil
}

// ownReviewLabel is the label that the bot puts on its own pull requests, if any.
func ownReviewLabel(c config.Review) string {
	if !c.OwnPulls {
		return ""
	}
	return c.Label
}

func controllerOptions(c config.Config, f *connections, status *broker.StatusText) broker.ControllerOptions {
	options := broker.ControllerOptions{
		Store: f.store, Sender: f.sender, Status: status, Disabled: !c.PauseResume.Enabled, Now: f.clock.Now, Log: f.log,
		Expiry: time.Duration(c.PauseResume.PausedTaskExpiryDays) * 24 * time.Hour,
	}
	if c.PauseResume.Enabled {
		options.PauseFile = filepath.Join(c.ContextsPath(), PauseFile)
		options.PauseSource = "file " + options.PauseFile
		if host, err := os.Hostname(); err == nil { // else the path alone will do
			options.PauseSource += " on " + host
		}
	}
	return options
}

// ownLogin tells whether a login on a forge is the bot's.
func ownLogin(c config.Config) func(task.Forge, string) bool {
	return func(of task.Forge, login string) bool {
		if of == task.Board {
			return task.SameLogin(login, BoardBot)
		}
		return c.Account(of).Is(login)
	}
}
