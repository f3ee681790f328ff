package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/leader"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// expireEvery is how often leases that have run out are looked for.
	expireEvery = time.Second
	// boardEvery is how often the board is looked at that lies in a file: what
	// another process does on it is heard of in no other way.
	boardEvery = 3 * time.Second
	// seedAge is how old a mirror may be when a task begins, unless it lacks a commit
	// that the task needs.
	seedAge = 10 * time.Second
)

// handingOut is everything of the server that makes tasks and hands them out.
type handingOut struct {
	*broker.HandOut
	clock      *leader.Clock // that of the database
	intake     *broker.Intake
	background *leader.Election

	stopBell func()
}

// startHandOut begins to take in work and to hand it out.
func (f *forgeSide) startHandOut(ctx context.Context, c config.Config) (*handingOut, error) {
	h := &handingOut{clock: f.clock}
	bot := botOf(c, f)
	var err error
	if f.running, err = newRunSide(c, f, h.clock.Now); err != nil {
		return nil, err
	}
	preparer := &broker.Preparer{
		Snapshots: f.snapshots, Forges: f.forges, Tasks: f.store, Events: f.store, Ground: ground{f.mirrors}, Now: h.clock.Now,
		Comments: f.running.talk.Present, Steering: f.steering,
	}
	expiry := &broker.Expiry{
		Leases: f.store, Tasks: f.store, MaxAttempts: c.MaxAttempts, Labels: c.LabelNames, Now: h.clock.Now, Wrote: f.sender.Wake, Log: f.log,
		Halted: f.running.halts.Halted,
		GaveUp: func(t task.Task) string { return broker.AttemptsComment(c.Language, t) },
	}
	h.HandOut = broker.NewHandOut(broker.HandOutOptions{
		Leases: f.store, Known: f.store, Tasks: f.store, Notices: f.store, Limits: broker.Limits(c.Limits),
		Lease: c.Leases.Duration, Renew: c.Leases.RenewEvery, Labels: c.LabelNames, Language: task.Language(c.Language),
		Token: access.NewLeaseToken, Hash: access.Hash, Prepare: preparer.Prepare, Now: h.clock.Now, Wrote: f.sender.Wake, Log: f.log,
		Ended: expiry.Restarted,
	})
	h.intake = broker.NewIntake(broker.IntakeOptions{
		Tasks: f.store, Notices: f.store, Forges: f.forges, Snapshots: f.snapshots, Trust: f.trust, Scope: scopeOf(c), Bot: bot, Steering: f.steering,
		Labels: c.LabelNames, Rules: rulesOf(c), TakenUp: f.running.talk.TakenUp, KeepUnassigned: !c.TaskStop.Enabled, Withdraw: f.running.halts.Unwanted, Now: h.clock.Now, Wrote: f.sender.Wake, Log: f.log,
	})
	f.running.watch(f, h.intake, c.PauseResume.AnswerWithin, h.clock.Now)
	f.webhooks.Changes = f.running.watcher
	server, err := serverName()
	if err != nil {
		return nil, err
	}
	h.background = &leader.Election{Elections: f.store, Server: server, Log: f.log, Jobs: h.jobs(f, c, expiry)}
	h.Start(ctx)
	h.intake.Start(ctx)
	f.running.start(ctx)
	h.background.Start(ctx)
	h.clock.Start(ctx, f.log)
	h.stopBell = f.bell.Follow(f.store)
	return h, nil
}

// stop ends everything in the order in which one uses the other.
func (h *handingOut) stop(ctx context.Context) {
	h.background.Stop(ctx)
	h.intake.Stop()
	h.Stop()
	h.clock.Stop()
	h.stopBell()
}

// jobs lists what one server of several does in the background.
func (h *handingOut) jobs(f *forgeSide, c config.Config, expiry *broker.Expiry) []leader.Job {
	jobs := []leader.Job{
		{Name: "end leases that have run out", Every: expireEvery, Do: expiry.Expire},
		{Name: "look at the items of running tasks", Every: watchEvery, Do: f.running.watcher.GoThrough},
		{Name: "look for what webhooks missed", Every: c.SyncInterval, Do: h.sync(c.ConfiguredForges())},
		{Name: "remove what is no longer of use", Every: tidyEvery, Do: f.tidy},
	}
	board := leader.Job{Name: "look at the board", Every: c.SyncInterval, Do: h.sync([]task.Forge{task.Board})}
	if c.Database.Driver == "sqlite" {
		board.Every = min(board.Every, boardEvery)
	}
	return append(jobs, board)
}

// sync looks at forges, each time at what has changed since the last.
func (h *handingOut) sync(forges []task.Forge) func(context.Context) error {
	var last time.Time
	return func(ctx context.Context) error {
		begun := h.clock.Now()
		err := h.intake.Sync(ctx, forges, last)
		if err == nil {
			last = begun
		}
		return err
	}
}

// serverName tells this server from every other, also from the one that ran here
// before.
func serverName() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name the server: %w", err)
	}
	id, err := uuid.NewRandom()
	return host + "/" + id.String(), err
}

// tidy removes what is no longer of use.
func (f *forgeSide) tidy(ctx context.Context) error {
	_, err := f.store.PruneAnswers(ctx, time.Now().Add(-keepAnswers))
	_, failed := f.store.PruneSpending(ctx, time.Now().Add(-keepCalls))
	_, stayed := f.store.PruneRefs(ctx, time.Now().Add(-keepRefs))
	_, stale := f.store.PruneSessions(ctx, time.Now())
	return errors.Join(err, failed, stayed, stale, f.webhooks.Prune(ctx))
}

// botOf says who we are on a forge: as the configuration says, and else as the
// forge does.
func botOf(c config.Config, f *forgeSide) func(context.Context, task.Forge) (string, error) {
	return func(ctx context.Context, name task.Forge) (string, error) {
		if name == task.Board {
			return boardBot, nil
		}
		if bot := c.Account(name).BotName; bot != "" {
			return bot, nil
		}
		return f.forges[name].Self(ctx)
	}
}

// scopeOf says which repositories are worked on.
func scopeOf(c config.Config) func(task.Forge, string) bool {
	of := func(owner, repository string) bool {
		first, _, _ := strings.Cut(repository, "/")
		return strings.EqualFold(first, owner)
	}
	return func(name task.Forge, repository string) bool {
		switch name {
		case task.GitHub:
			return of(c.GitHub.Owner, repository)
		case task.Gitea:
			return of(c.Gitea.Owner, repository)
		case task.GitLab:
			return slices.ContainsFunc(c.GitLab.Projects, func(project string) bool { return strings.EqualFold(project, repository) })
		default:
			return name == task.Board
		}
	}
}

func rulesOf(c config.Config) broker.Rules {
	rules := broker.Rules{
		DefaultRole: task.Role(c.DefaultRole), Priorities: c.Priority.Values(),
		ReviewLabel: c.Review.Label, ReviewDelay: c.Review.Delay, ReviewRounds: c.Review.MaxRounds,
	}
	for _, name := range c.RoleNames() {
		rules.Roles = append(rules.Roles, task.Role(name))
	}
	return rules
}

// ground prepares repositories in the mirrors.
type ground struct{ mirrors *mirror.Mirrors }

// Prepare implements broker.Ground.
func (g ground) Prepare(ctx context.Context, t task.Task, needs broker.Needs) error {
	repository := mirror.Repository{Forge: t.Key.Forge, Name: t.Key.Repository}
	if err := g.mirrors.Fetch(ctx, repository, baseAge(repository)); err != nil {
		return err
	}
	return g.mirrors.Seed(ctx, mirror.Seed{
		Repository: repository, Task: t.ID, Generation: t.Generation,
		Base: needs.Base, Branches: needs.Branches, Refs: needs.Refs, Commits: needs.Commits,
	})
}
