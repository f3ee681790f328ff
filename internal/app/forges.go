package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/telemetry"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/forge/transport"
	"github.com/toryo-dev/toryo/internal/leader"
	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/redact/rules"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// boardFolder and mirrorFolder are where the board's repositories and the
	// mirrors of all repositories are, in the data directory.
	boardFolder  = "board"
	mirrorFolder = "mirrors"
	// boardBot is the login of the bot on the board.
	boardBot = "toryo"
	// keepAnswers is how long the answer of a forge is kept that nobody asked
	// for again.
	keepAnswers = 14 * 24 * time.Hour
	// keepCalls is how long a single call to a model is kept. What was spent in
	// all stays.
	keepCalls = 31 * 24 * time.Hour
	// keepRefs is how long what an ended task has in git is kept for other servers.
	keepRefs = 24 * time.Hour
	// tidyEvery is how often what is no longer of use is removed.
	tidyEvery = time.Hour
)

// forgeSide is everything of the server that has to do with forges.
type forgeSide struct {
	board     *board.Board
	forges    map[task.Forge]forge.Forge
	ways      map[task.Forge]*transport.Transport // to the forges of others
	snapshots *broker.Snapshots
	trust     *broker.WebhookTrust
	steering  *broker.Steering
	mirrors   *mirror.Mirrors
	sender    *broker.Sender
	webhooks  *server.Webhooks
	bell      *broker.Bell // rings when something happens to a task
	store     store.Store
	clock     *leader.Clock // of the database
	log       *slog.Logger
	heard     func(task.Key) // told of pull requests that changed; may be nil

	url string // where people find the server

	receipts *broker.Receipts

	running *runSide
	handing *handingOut
}

// startForges connects to the forges that the configuration names and to the
// board, and begins to send what waits in the outbox. No forge is asked anything
// yet: one that is down does not keep the server from starting.
func startForges(ctx context.Context, c config.Config, database store.Store, report *telemetry.Telemetry, url string) (*forgeSide, error) {
	f := &forgeSide{bell: new(broker.Bell), store: database, log: report.Log, url: url}
	var err error
	if f.clock, err = leader.NewClock(ctx, database); err != nil {
		return nil, err
	}
	if f.board, err = openBoard(ctx, c, database, url); err != nil {
		return nil, err
	}
	if elsewhere, err := f.board.Elsewhere(ctx); err != nil {
		return nil, err
	} else if len(elsewhere) > 0 {
		f.log.WarnContext(ctx, "repositories of the board are not in the folder of this server, which cannot work on them",
			"repositories", elsewhere, "folder", filepath.Join(c.DataDir, boardFolder),
			"mend", "let all servers on the database have this folder in common, or use one server")
	}
	if f.forges, f.ways, err = connectForges(c, database, report); err != nil {
		return nil, err
	}
	f.forges[task.Board] = f.board.As(boardBot)
	redactor, err := rules.New(c.Redactor())
	if err != nil {
		return nil, err
	}
	f.receipts = &broker.Receipts{Store: database, URL: strings.TrimSuffix(c.Server.PublicURL, "/"), Mask: redactor.String}
	if err := f.receipts.MakeKey(ctx); err != nil {
		return nil, err
	}
	mirrored := mirrorOptions(c, f)
	if mirrored.Identity, err = identityOf(ctx, c); err != nil {
		return nil, err
	}
	if f.mirrors, err = mirror.Open(ctx, mirrored); err != nil {
		return nil, err
	}
	f.trust, f.snapshots = newSnapshots(c, f)
	f.steering = &broker.Steering{
		Accept: broker.Accept(c.CommentDetection.AcceptFrom), Access: broker.NewRights(f.readers(), f.clock.Now).Access, Log: f.log,
	}
	if c.CommentDetection.ReviewComments {
		f.snapshots.ReadReviews(f.reviewSources())
	}
	f.sender = broker.NewSender(broker.SenderOptions{
		Outbox: database, Tasks: database, Forges: f.forges, Snapshots: f.snapshots, Log: report.Log, Now: f.clock.Now, Mask: redactor.String,
		Publish: f.publish,
	})
	f.webhooks = &server.Webhooks{
		Forges: webhooksOf(c), Seen: database, Changes: f.snapshots, Deliver: f.delivered, Count: f.trust.Delivered, Log: report.Log, Now: f.clock.Now,
	}
	f.trust.Start(ctx)
	f.sender.Start(ctx)
	if f.handing, err = f.startHandOut(ctx, c); err != nil {
		f.stop(ctx)
		return nil, err
	}
	return f, nil
}

// publish publishes a branch, and tells what is there then.
func (f *forgeSide) publish(ctx context.Context, p broker.Publication) (broker.Published, error) {
	commit, err := f.mirrors.Publish(ctx, mirror.Publication(p))
	if err != nil {
		return broker.Published{}, err
	}
	contents, err := f.mirrors.Contents(ctx, mirror.Publication(p), commit)
	return broker.Published{Commit: commit, Own: contents.Own, Tree: contents.Tree, Base: contents.Base}, err
}

// mirrorOptions says where mirrors are. What tasks push is kept in a database that
// other servers may have too.
func mirrorOptions(c config.Config, f *forgeSide) mirror.Options {
	options := mirror.Options{Root: filepath.Join(c.DataDir, mirrorFolder), Remote: f.remote, BaseAge: baseAge, Log: f.log}
	if c.Database.Driver == "postgres" {
		options.Keep = f.store
	}
	return options
}

// stop ends everything in the order in which one uses the other.
func (f *forgeSide) stop(ctx context.Context) {
	if f.handing != nil {
		f.handing.stop(ctx)
		f.running.stop()
	}
	f.sender.Stop(ctx)
	f.snapshots.Stop()
	f.trust.Stop(ctx)
	f.mirrors.Stop()
}

// openBoard opens the board and sees to it that the bot has an account there.
func openBoard(ctx context.Context, c config.Config, database store.Store, url string) (*board.Board, error) {
	opened, err := board.Open(board.Options{Store: database, Folder: filepath.Join(c.DataDir, boardFolder), URL: url})
	if err != nil {
		return nil, err
	}
	err = opened.AddUser(ctx, boardBot, forge.WriteAccess)
	if err != nil && task.CodeOf(err) != task.Conflict {
		return nil, err
	}
	return opened, nil
}

// connectForges makes the adapter of each configured forge, on a transport of its
// own.
func connectForges(c config.Config, database store.Store, report *telemetry.Telemetry) (map[task.Forge]forge.Forge, map[task.Forge]*transport.Transport, error) {
	forges, ways := make(map[task.Forge]forge.Forge), make(map[task.Forge]*transport.Transport)
	for _, name := range c.ConfiguredForges() {
		options := transport.Options{Name: string(name), Cache: broker.Answers{Store: database}, Log: report.Log}
		if name == task.GitHub {
			options.Writes = transport.GitHubWrites
		}
		way := transport.New(options)
		countRequests(report.Metrics, name, way)
		ways[name] = way
		connected, err := connectForge(c, name, forge.HTTPClient(way))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		forges[name] = connected
	}
	return forges, ways, nil
}

func connectForge(c config.Config, name task.Forge, client *http.Client) (forge.Forge, error) {
	switch name {
	case task.GitHub:
		options := github.Options{URL: gitHubAPI(c.GitHub.URL), Token: c.GitHub.Token.Reveal(), HTTP: client}
		if c.GitHub.AppID != 0 {
			options.App = &github.App{
				ID: fmt.Sprint(c.GitHub.AppID), InstallationID: int64(c.GitHub.AppInstallationID), PrivateKey: c.GitHub.AppPrivateKey.Reveal(),
			}
		}
		return github.New(options)
	case task.GitLab:
		return gitlab.New(gitlab.Options{URL: c.GitLab.URL, Token: c.GitLab.Token.Reveal(), HTTP: client})
	case task.Gitea:
		return gitea.New(gitea.Options{URL: c.Gitea.URL, Token: c.Gitea.Token.Reveal(), HTTP: client})
	default:
		return nil, task.Errorf(task.Unsupported, "there is no adapter for %s", name)
	}
}

// selfOn asks a forge whom it takes us for.
func selfOn(c config.Config) func(context.Context, task.Forge) (string, error) {
	return func(ctx context.Context, name task.Forge) (string, error) {
		connected, err := connectForge(c, name, forge.HTTPClient(nil))
		if err != nil {
			return "", err
		}
		return connected.Self(ctx)
	}
}

// gitHubAPI is the root of the API of the GitHub at the address that people see.
func gitHubAPI(address string) string {
	address = strings.TrimSuffix(address, "/")
	if address == config.Default().GitHub.URL {
		return github.PublicAPI
	}
	if strings.HasSuffix(address, "/api/v3") {
		return address
	}
	return address + "/api/v3"
}

func (f *forgeSide) remote(ctx context.Context, r mirror.Repository) (forge.Remote, error) {
	of, found := f.forges[r.Forge]
	if !found {
		return forge.Remote{}, task.Errorf(task.NotFound, "%s is not configured", r.Forge)
	}
	return of.Remote(ctx, r.Name)
}

// delivered passes on what a webhook says to those who keep copies of git, to
// those who look for work, and to who answers replies under reviews.
func (f *forgeSide) delivered(_ context.Context, delivery forge.Delivery) error {
	f.handing.intake.Deliver(delivery)
	if delivery.Kind == forge.Pushed {
		f.mirrors.Changed(mirror.Repository{Forge: delivery.Forge, Name: delivery.Repository})
	}
	f.told(delivery)
	return nil
}

// baseAge is how old the base of a task may be when its agent fetches. The board is
// at hand.
func baseAge(r mirror.Repository) time.Duration {
	if r.Forge == task.Board {
		return 0
	}
	return seedAge
}

// git serves the mirrors to whoever holds the lease of a task. People may fetch
// what it has made, with a token that lets them see it.
func (f *forgeSide) git(now func() time.Time) http.Handler {
	leases := access.Leases{Store: f.store, Now: now}
	tokens := access.Tokens{Store: f.store, Now: now}
	return f.mirrors.Handler(func(ctx context.Context, id task.ID, token string) (mirror.Holder, error) {
		_, _, isLease := access.ParseLeaseToken(token)
		held, err := leases.Check(ctx, token)
		if !isLease {
			held, err = f.seenBy(ctx, tokens, id, token)
		}
		if err != nil {
			return mirror.Holder{}, err
		}
		return mirror.Holder{
			Task: held.ID, Generation: held.Generation, ReadOnly: !isLease,
			Repository: mirror.Repository{Forge: held.Key.Forge, Name: held.Key.Repository},
		}, nil
	})
}

// seenBy is the task, for someone who may see it.
func (f *forgeSide) seenBy(ctx context.Context, tokens access.Tokens, id task.ID, token string) (task.Task, error) {
	person, err := tokens.Check(ctx, token)
	if err != nil {
		return task.Task{}, err
	}
	if !access.Role(person.Role).Includes(access.Viewer) {
		return task.Task{}, task.Errorf(task.Forbidden, "a token with the role %s does not allow this", person.Role)
	}
	return f.store.Task(ctx, id)
}

// countRequests shows what an installation costs in the metrics.
func countRequests(registry *metrics.Registry, name task.Forge, way *transport.Transport) {
	for _, metric := range []struct {
		name, help string
		value      func(transport.Counts) int64
	}{
		{"toryo_forge_requests_total", "Requests to the forge, of every kind.", func(c transport.Counts) int64 { return c.Requests }},
		{"toryo_forge_writes_total", "Writes of content to the forge.", func(c transport.Counts) int64 { return c.Writes }},
		{"toryo_forge_not_modified_total", "Requests that the forge answered with 304.", func(c transport.Counts) int64 { return c.NotModified }},
		{"toryo_forge_limited_total", "Answers of the forge that asked us to slow down.", func(c transport.Counts) int64 { return c.Limited }},
		{"toryo_forge_failed_total", "Requests that the forge did not answer.", func(c transport.Counts) int64 { return c.Failed }},
	} {
		read := func() float64 { return float64(metric.value(way.Counts())) }
		registry.Counter(metric.name, metric.help, read, metrics.Label{Name: "forge", Value: string(name)})
	}
}
