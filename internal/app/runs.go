package app

import (
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/task"
)

// runSide is everything of the server that has to do with runs and signals.
type runSide struct {
	bell *broker.Bell
	runs *broker.Runs
}

// newRunSide makes what runs need. The sender of the forges rings the bell.
func newRunSide(c config.Config, f *forgeSide, url string) *runSide {
	words := &broker.Words{
		Labels: c.LabelNames, Language: c.Language, Snapshots: f.snapshots,
		GitURL: func(id task.ID) string { return url + "/git/" + string(id) + ".git" },
	}
	return &runSide{bell: f.bell, runs: broker.NewRuns(broker.RunOptions{
		Store: f.store, Sender: f.sender, Snapshots: f.snapshots, Bell: f.bell, Words: words, Own: ownLogin(c),
		Lease: c.Leases.Duration, Now: f.handing.clock.Now, Log: f.log,
	})}
}

// ownLogin tells whether a login on a forge is the bot's. The login of a GitHub
// App has "[bot]" behind its name.
func ownLogin(c config.Config) func(task.Forge, string) bool {
	return func(of task.Forge, login string) bool {
		name := c.Account(of).BotName
		if of == task.Board {
			name = boardBot
		}
		return task.SameLogin(strings.TrimSuffix(strings.ToLower(login), "[bot]"), strings.TrimSuffix(strings.ToLower(name), "[bot]"))
	}
}
