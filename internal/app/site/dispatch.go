package site

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/broker/assignment"
	"github.com/toryo-dev/toryo/internal/broker/comments"
	"github.com/toryo-dev/toryo/internal/broker/intake"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/leader"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/retention"
	"github.com/toryo-dev/toryo/internal/review/verdicts"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

const (
	// expireEvery is how often leases that have run out are looked for.
	expireEvery = time.Second
	// graceLooks is how many looks at leases must be missing for an outage.
	graceLooks = 3
	// seedAge is how old a mirror may be when a task begins, unless it lacks a commit
	// that the task needs.
	seedAge = 10 * time.Second
)

// dispatch makes tasks, hands them out, and brings signals to their runs.
type dispatch struct {
	*broker.HandOut
	notifier   *broker.Notifier // tells that something happened to a task
	runs       *broker.Runs
	controller *broker.Controller
	watcher    *broker.Watcher
	intake     *intake.Intake
	background *leader.Election
	mirrors    *retention.Mirrors
	board      *boardWatch
	needs      *broker.Needs // what waits for a person
	faults     atomic.Pointer[faultsFunc]
}

// faultsFunc says what the server cannot use.
type faultsFunc func(ctx context.Context) []broker.Fault

// setFaults is called when there is a server that can say so: the tasks are there before it.
func (d *dispatch) setFaults(faults faultsFunc) { d.faults.Store(&faults) }

func (d *dispatch) serverFaults(ctx context.Context) []broker.Fault {
	faults := d.faults.Load()
	if faults == nil {
		return nil
	}
	return (*faults)(ctx)
}

// newDispatch makes everything that has to do with tasks. It does nothing until it is
// started.
func newDispatch(c config.Config, f *connections) (*dispatch, error) {
	now, own := f.clock.Now, ownLogin(c)
	gate, err := gateOf(c, f.mirrors)
	if err != nil {
		return nil, err
	}
	server, err := serverName()
	if err != nil {
		return nil, err
	}
	notifier := new(broker.Notifier)
	status := &broker.StatusText{
		Labels: c.LabelNames, Language: c.Language, Snapshots: f.snapshots,
		GitURL: func(id task.ID) string { return f.url + "/git/" + string(id) + ".git" }, GitKept: config.Days(c.Retention.Git), Now: now,
	}
	logs := comments.New(comments.Options{
		Store: f.store, Snapshots: f.snapshots, Own: own, Steering: f.steering, Disabled: !c.CommentDetection.Enabled, Now: now, Log: f.log,
	})
	var watcher *broker.Watcher
	halting := controllerOptions(c, f, status)
	halting.LookFirst = func(ctx context.Context, t task.Task) error { return watcher.LookNow(ctx, t) }
	controller := broker.NewController(halting)
	expiry := &broker.Expiry{
		Leases: f.store, Tasks: f.store, MaxAttempts: c.MaxAttempts, Labels: c.LabelNames, Now: now, OutboxChanged: f.sender.Wake, Log: f.log,
		Halted: controller.Halted, Grace: max(c.Leases.RenewEvery, graceLooks*expireEvery),
		GaveUp: func(ctx context.Context, t task.Task) string {
			return broker.AttemptsComment(status.LanguageOf(ctx, t), t)
		},
	}
	learns, watchPull := intake.Memory(nil), (func(context.Context, task.Key) error)(nil)
	if c.Memory.Enabled {
		learns, watchPull = f.store, f.store.WatchPull
	}
	taking := intake.New(intake.Options{
		Tasks: f.store, Outbox: f.sender, Changes: f.changes, Forges: f.forges, Snapshots: f.snapshots, Verdicts: verdicts.Reader{Own: f.store}, Facts: f.store, BranchCommit: branchCommit(f.mirrors), Trust: f.trust, Scope: scopeOf(c), Outside: outsideOf(c), Bot: botOf(c, f.forges), Steering: f.steering,
		Labels: c.LabelNames, Rules: rulesOf(c), Language: task.Language(c.Language), TakenUp: logs.TakenUp, Merges: mergesIn(f.mirrors), Memory: learns, Mask: f.mask, KeepUnassigned: !c.TaskStop.Enabled, Stop: controller.Unwanted, Now: now, OutboxChanged: f.sender.Wake, Log: f.log,
	})
	plans := approvals(c, f, logs, controller)
	watcher = broker.NewWatcher(broker.WatchOptions{
		Tasks: f.store, Changes: f.changes, Snapshots: f.snapshots, Comments: logs, Wanted: taking.Look,
		Answered: controller.Answered, AnswerWithin: c.PauseResume.AnswerWithin, Plan: plans.Decide, Now: now, Log: f.log,
	})
	handing := handOutOptions(c, f, logs, plans, expiry)
	handing.Language = status.LanguageOf
	watch := &boardWatch{watch: f.board.Watch(), changes: f.changes, log: f.log}
	d := &dispatch{
		HandOut:  broker.NewHandOut(handing),
		notifier: notifier, controller: controller, watcher: watcher, intake: taking,
		runs: broker.NewRuns(broker.RunOptions{
			Store: f.store, Sender: f.sender, Snapshots: f.snapshots, Changes: f.changes, Notifier: notifier, Status: status, Own: own, Base: baseOf(f.mirrors), Forges: readersOf(f.forges),
			Steering: f.steering, Comments: logs, Reviews: reviewsForImages(c, f.forges), Gate: gate, Addresses: addressesOf(c.Git, f.forges), Receipts: f.receipts, Watch: watchPull,
			Lease: c.Leases.Duration, MaxAttempts: c.MaxAttempts, ReviewLabel: ownReviewLabel(c.Review), Now: now, Log: f.log,
		}),
		background: &leader.Election{Elections: f.store, Server: server, Log: f.log, Jobs: jobs(c, f, expiry, watcher, taking, watch)},
		board:      watch,
		mirrors:    mirrorRetention(c, f.mirrors, f.store, now, f.log),
	}
	d.needs = needsOf(c, f, d)
	telling, err := notifying(c, f, d)
	d.background.Jobs = append(d.background.Jobs, telling...)
	return d, err
}

// approvals decides about the plans that people have to approve.
func approvals(c config.Config, f *connections, logs *comments.Log, controller *broker.Controller) *broker.Approvals {
	reactors := make(map[task.Forge]forge.Reactor, len(f.forges))
	for name, one := range f.forges {
		reactors[name] = one
	}
	return &broker.Approvals{
		Store: f.store, Snapshots: f.snapshots, Comments: logs, Forges: reactors, Steering: f.steering, Own: ownLogin(c), Controller: controller,
		Always: c.Planning.Approval == "always", Label: c.Planning.Label(), Now: f.clock.Now, Log: f.log,
	}
}

func handOutOptions(c config.Config, f *connections, logs *comments.Log, plans *broker.Approvals, expiry *broker.Expiry) broker.HandOutOptions {
	preparer := &assignment.Preparer{
		Snapshots: f.snapshots, Forges: f.forges, Verdicts: verdicts.Reader{Own: f.store}, Tasks: f.store, Events: f.store, Repositories: repositories{f.mirrors}, Now: f.clock.Now,
		Comments: logs.Present, Approval: plans.Brief, Steering: f.steering, Roles: map[task.Role]string{},
	}
	if c.Memory.Enabled {
		preparer.Memory = f.store
	}
	for name, role := range c.Roles {
		preparer.Roles[task.Role(name)] = role.Description
	}
	return broker.HandOutOptions{
		Leases: f.store, Known: f.store, Tasks: f.store, Notices: f.store, Limits: broker.Limits(c.Limits),
		Lease: c.Leases.Duration, Renew: c.Leases.RenewEvery, MaxAttempts: c.MaxAttempts, Events: f.store, Labels: c.LabelNames, Outbox: f.store,
		Token: access.NewLeaseToken, Hash: access.Hash, Prepare: preparer.Prepare, Now: f.clock.Now, OutboxChanged: f.sender.Wake, Log: f.log,
		Able:  func() error { return workdir.TestWrite(c.DataDir) },
		Ended: expiry.Restarted,
	}
}

// start begins to take in work and to hand it out.
func (d *dispatch) start(ctx context.Context, f *connections) (stop func(context.Context)) {
	d.Start(ctx)
	d.intake.Start(ctx)
	d.controller.Start(ctx)
	d.watcher.Start(ctx)
	stopWatch := d.board.listen(f.store)
	d.background.Start(ctx)
	d.mirrors.Start(ctx)
	f.clock.Start(ctx, f.log)
	stopNotifier := d.notifier.Follow(f.store)
	// It ends in the order in which one uses the other.
	return func(ctx context.Context) {
		d.mirrors.Stop()
		d.background.Stop(ctx)
		stopWatch()
		d.intake.Stop()
		d.Stop()
		f.clock.Stop()
		stopNotifier()
		d.watcher.Stop()
		d.controller.Stop()
	}
}

// jobs lists what one server of several does in the background.
func jobs(c config.Config, f *connections, expiry *broker.Expiry, watcher *broker.Watcher, taking *intake.Intake, watch *boardWatch) []leader.Job {
	sync := func(forges ...task.Forge) func(context.Context) error { return syncing(taking, f.clock, forges) }
	return []leader.Job{
		{Name: "end leases that have run out", Every: expireEvery, Do: expiry.Expire},
		{Name: "look at the items of running tasks", Every: watchEvery, Do: watcher.GoThrough},
		{Name: "look for what webhooks missed", Every: c.SyncInterval, Do: sync(c.ConfiguredForges()...)},
		{Name: "remove what was kept for long enough", Every: tidyEvery, Do: tidying(c, f)},
		{Name: "look for changes on the board", Every: min(c.SyncInterval, boardEvery), Do: watch.look},
		{Name: "look at checks on the board", Every: min(c.SyncInterval, boardEvery), Do: func(ctx context.Context) error {
			return taking.LookAtChecks(ctx, task.Board)
		}},
		{Name: "go through the board", Every: c.SyncInterval, Do: watch.unlessQuiet(sync(task.Board))},
	}
}

// syncing looks at forges, each time at what has changed since the last.
func syncing(taking *intake.Intake, clock *leader.Clock, forges []task.Forge) func(context.Context) error {
	var last time.Time
	return func(ctx context.Context) error {
		begun := clock.Now()
		err := taking.Sync(ctx, forges, last)
		if err == nil {
			last = begun
		}
		return err
	}
}

// baseOf is the branch that the work of a task started from.
func baseOf(mirrors *mirror.Mirrors) func(context.Context, task.Task) (string, error) {
	return func(ctx context.Context, t task.Task) (string, error) { return mirrors.Base(ctx, t.Key.Repo(), t.ID) }
}

// branchCommit is the newest commit of a branch.
func branchCommit(mirrors *mirror.Mirrors) func(context.Context, task.Repository, string) (string, error) {
	return func(ctx context.Context, in task.Repository, branch string) (string, error) {
		if err := mirrors.Fetch(ctx, in, baseAge(in)); err != nil {
			return "", err
		}
		return mirrors.Branch(ctx, in, branch)
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

// botOf says who we are on a forge: as the configuration says, and else as the
// forge does.
func botOf(c config.Config, forges map[task.Forge]forge.Forge) func(context.Context, task.Forge) (string, error) {
	return func(ctx context.Context, name task.Forge) (string, error) {
		if name == task.Board {
			return BoardBot, nil
		}
		if bot := c.Account(name).BotName; bot != "" {
			return bot, nil
		}
		return forges[name].Self(ctx)
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

func rulesOf(c config.Config) intake.Rules {
	rules := intake.Rules{
		DefaultRole: task.Role(c.DefaultRole), Priorities: c.Priority.Values(),
		ReviewLabel: c.Review.Label, ReviewDelay: c.Review.Delay, ReviewRounds: c.Review.MaxRounds,
		OnCheckFailure: intake.OnCheckFailure(c.Checks.OnFailure), CheckRounds: c.Checks.MaxRounds, CheckGiveUp: c.Checks.GiveUpAfter,
		Merge: c.Merge.When == "approved_and_green",
	}
	for _, what := range c.Review.FixUpOn {
		rules.FixUpOn = append(rules.FixUpOn, intake.FixUpOn(what))
	}
	for _, name := range c.RoleNames() {
		rules.Roles = append(rules.Roles, task.Role(name))
	}
	return rules
}

// repositories prepares repositories in the mirrors.
type repositories struct{ mirrors *mirror.Mirrors }

// Prepare implements assignment.Repositories.
func (r repositories) Prepare(ctx context.Context, t task.Task, needs assignment.Needs) (map[string]string, error) {
	repository := t.Key.Repo()
	if err := r.mirrors.Fetch(ctx, repository, baseAge(repository)); err != nil {
		return nil, err
	}
	err := r.mirrors.Seed(ctx, mirror.Seed{
		Repository: repository, Task: t.ID, Generation: t.Generation,
		Base: needs.Base, Branches: needs.Branches, Refs: needs.Refs, Commits: needs.Commits, Anew: needs.Anew,
	})
	if err != nil {
		return nil, err
	}
	return r.mirrors.Refs(ctx, repository, t.ID)
}

// mergesIn tells from the mirrors whether pull requests merge.
func mergesIn(mirrors *mirror.Mirrors) intake.MergesFunc {
	return func(ctx context.Context, in task.Repository, base, branch, head string) (intake.Merge, error) {
		merge, err := mirrors.Merges(ctx, in, base, branch, head)
		return intake.Merge(merge), err
	}
}
