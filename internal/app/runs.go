package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/redact/rules"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/task"
)

// pauseFile is the name of the file, in the folder of the contexts, that pauses
// everything while it is there.
const pauseFile = "pause_signal"

// watchEvery is how often the items of running tasks are gone through. How often a
// forge is asked about one is another matter.
const watchEvery = time.Second

// runSide is everything of the server that has to do with runs and signals.
type runSide struct {
	runs    *broker.Runs
	halts   *broker.Halts
	talk    *broker.Talk
	watcher *broker.Watcher
}

// newRunSide makes what runs need. The watcher is made when there is an intake.
func newRunSide(c config.Config, f *forgeSide, now func() time.Time) (*runSide, error) {
	gate, err := f.gate(c)
	if err != nil {
		return nil, err
	}
	words := &broker.Words{
		Labels: c.LabelNames, Language: c.Language, Snapshots: f.snapshots,
		GitURL: func(id task.ID) string { return f.url + "/git/" + string(id) + ".git" },
	}
	own, readers := ownLogin(c), f.readers()
	talk := broker.NewTalk(broker.TalkOptions{
		Store: f.store, Snapshots: f.snapshots, Own: own, Steering: f.steering, Off: !c.CommentDetection.Enabled, Now: now, Log: f.log,
	})
	return &runSide{
		runs: broker.NewRuns(broker.RunOptions{
			Store: f.store, Sender: f.sender, Snapshots: f.snapshots, Bell: f.bell, Words: words, Own: own, Base: f.base, Forges: readers,
			Steering: f.steering, Talk: talk, Reviews: f.reviewSources(), Gate: gate, Addresses: f.addresses(c.Git), Receipts: f.receipts,
			Lease: c.Leases.Duration, ReviewLabel: ownReviewLabel(c.Review), Now: now, Log: f.log,
		}),
		halts: broker.NewHalts(haltOptions(c, f, words, now)),
		talk:  talk,
	}, nil
}

// gate is what work passes before it is published.
func (f *forgeSide) gate(c config.Config) (broker.Gate, error) {
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
		Inspect: func(ctx context.Context, p broker.Publication) ([]inspect.Found, error) {
			return f.mirrors.Inspect(ctx, mirror.Publication(p), inspector)
		},
		Retract: func(ctx context.Context, p broker.Publication) error {
			return f.mirrors.Retract(ctx, mirror.Publication(p))
		},
		Refuse: c.Publishing.Unasked == "refuse",
	}, nil
}

// reviewSources are the forges, to read reviews from.
func (f *forgeSide) reviewSources() map[task.Forge]broker.ReviewSource {
	sources := make(map[task.Forge]broker.ReviewSource, len(f.forges))
	for name, one := range f.forges {
		sources[name] = one
	}
	return sources
}

// base is the branch that the work of a task started from.
func (f *forgeSide) base(ctx context.Context, t task.Task) (string, error) {
	return f.mirrors.Base(ctx, mirror.Repository{Forge: t.Key.Forge, Name: t.Key.Repository}, t.ID)
}

// readers are the forges, to read from.
func (f *forgeSide) readers() map[task.Forge]forge.Reader {
	readers := make(map[task.Forge]forge.Reader, len(f.forges))
	for name, one := range f.forges {
		readers[name] = one
	}
	return readers
}

// ownReviewLabel is the label that the bot puts on its own pull requests, if any.
func ownReviewLabel(c config.Review) string {
	if !c.OwnPulls {
		return ""
	}
	return c.Label
}

func haltOptions(c config.Config, f *forgeSide, words *broker.Words, now func() time.Time) broker.HaltOptions {
	options := broker.HaltOptions{
		Store: f.store, Sender: f.sender, Words: words, Off: !c.PauseResume.Enabled, Now: now, Log: f.log,
		Expiry: time.Duration(c.PauseResume.PausedTaskExpiryDays) * 24 * time.Hour,
	}
	if c.PauseResume.Enabled {
		options.PauseFile = filepath.Join(c.ContextsPath(), pauseFile)
		options.PauseSource = "file " + options.PauseFile
		if host, err := os.Hostname(); err == nil { // else the path alone will do
			options.PauseSource += " on " + host
		}
	}
	return options
}

// watch makes the watcher. Whether a task is still wanted is for the intake to
// say.
func (r *runSide) watch(f *forgeSide, intake *broker.Intake, answerWithin time.Duration, now func() time.Time) {
	r.watcher = broker.NewWatcher(broker.WatchOptions{
		Tasks: f.store, Notices: f.store, Snapshots: f.snapshots, Talk: r.talk, Wanted: intake.Look,
		Answered: r.halts.Answered, AnswerWithin: answerWithin, Now: now, Log: f.log,
	})
}

// start begins to watch and to see to halts.
func (r *runSide) start(ctx context.Context) {
	r.halts.Start(ctx)
	r.watcher.Start(ctx)
}

// stop ends what start began.
func (r *runSide) stop() {
	r.watcher.Stop()
	r.halts.Stop()
}

// ownLogin tells whether a login on a forge is the bot's. The login of a GitHub
// App has "[bot]" behind its name.
func ownLogin(c config.Config) func(task.Forge, string) bool {
	plain := func(login string) string { return strings.TrimSuffix(strings.ToLower(login), "[bot]") }
	return func(of task.Forge, login string) bool {
		name := c.Account(of).BotName
		if of == task.Board {
			name = boardBot
		}
		return task.SameLogin(plain(login), plain(name))
	}
}
