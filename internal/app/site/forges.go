package site

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/telemetry"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/forge/transport"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/leader"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/redact/rules"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// BoardFolder and mirrorFolder are where the board's repositories and the
	// mirrors of all repositories are, in the data directory.
	BoardFolder  = "board"
	mirrorFolder = "mirrors"
	// BoardBot is the login of the bot on the board.
	BoardBot = "toryo"
)

// connections is the server's side of the forges: how they are reached, what is known of
// their items, and what is written to them.
type connections struct {
	board       *board.Board
	forges      map[task.Forge]forge.Forge          // with the board as the bot sees it
	transports  map[task.Forge]*transport.Transport // to the forges of others
	snapshots   *items.Snapshots
	changes     *items.Feed
	trust       *items.WebhookTrust
	steering    *items.Steering
	mirrors     *mirror.Mirrors
	sender      *outbox.Sender
	webhooks    *server.Webhooks
	receipts    *broker.Receipts
	store       store.Store
	clock       *leader.Clock // of the database
	log         *slog.Logger
	url         string              // where people find the server
	mask        func(string) string // masks secrets
	unsubscribe []func()
	background  *lifecycle.Group
}

// connect connects to the forges that the configuration names and to the board, and begins
// to send what waits in the outbox. No forge is waited for: one that is down does not keep
// the server from starting.
func connect(ctx context.Context, c config.Config, database store.Store, report *telemetry.Telemetry, url string) (*connections, error) {
	clock, err := leader.NewClock(ctx, database)
	if err != nil {
		return nil, err
	}
	opened, err := OpenBoard(ctx, c, database, url)
	if err != nil {
		return nil, err
	}
	if err := warnOfMissingRepositories(ctx, c, opened, report.Log); err != nil {
		return nil, err
	}
	forges, transports, err := connectForges(c, database, report)
	if err != nil {
		return nil, err
	}
	forges[task.Board] = opened.As(BoardBot)
	redactor, err := rules.New(c.Redactor())
	if err != nil {
		return nil, err
	}
	receipts := &broker.Receipts{Store: database, URL: strings.TrimSuffix(c.Server.PublicURL, "/"), Mask: redactor.String}
	if err := receipts.MakeKey(ctx); err != nil {
		return nil, err
	}
	mirrors, err := openMirrors(ctx, c, database, forges, report.Log)
	if err != nil {
		return nil, err
	}
	trust, snapshots := newSnapshots(c, database, forges, clock.Now, report.Log)
	changes := items.NewFeed(snapshots)
	sender := outbox.NewSender(outbox.SenderOptions{
		Outbox: database, Tasks: database, Forges: forges, Snapshots: snapshots, Changes: changes, Log: report.Log, Now: clock.Now, Mask: redactor.String,
		Publish: publishTo(mirrors), Pages: url,
	})
	trust.Start(ctx)
	sender.Start(ctx)
	background := new(lifecycle.Group)
	background.Start(ctx, introduce(c, forges, report.Log)...)
	return &connections{
		background: background,
		board:      opened, forges: forges, transports: transports, snapshots: snapshots, changes: changes, trust: trust, mirrors: mirrors,
		sender: sender, receipts: receipts, store: database, clock: clock, log: report.Log, url: url, mask: redactor.String,
		steering: &items.Steering{
			Accept: items.Accept(c.CommentDetection.AcceptFrom), Access: items.NewRights(readersOf(forges), clock.Now).Access, Log: report.Log,
		},
		webhooks: &server.Webhooks{
			Forges: webhooksOf(c), Seen: database, Changes: changes, Count: trust.Delivered, Log: report.Log, Now: clock.Now,
		},
		unsubscribe: []func(){changes.Follow(database), changes.Subscribe(func(change items.Change) {
			if change.Pushed {
				mirrors.Changed(change.Repository)
			}
		})},
	}, nil
}

// stop ends everything in the order in which one uses the other.
func (f *connections) stop(ctx context.Context) {
	f.background.Stop()
	for _, stop := range f.unsubscribe {
		stop()
	}
	f.sender.Stop(ctx)
	f.snapshots.Stop()
	f.trust.Stop(ctx)
	f.mirrors.Stop()
}

// warnOfMissingRepositories logs which repositories of the board are not on this machine.
func warnOfMissingRepositories(ctx context.Context, c config.Config, opened *board.Board, log *slog.Logger) error {
	elsewhere, err := opened.MissingRepositories(ctx)
	if err == nil && len(elsewhere) > 0 {
		log.WarnContext(ctx, "repositories of the board are missing in the data directory of this server; it cannot work on them",
			"repositories", elsewhere, "folder", filepath.Join(c.DataDir, BoardFolder),
			"hint", "let all servers on the database have this folder in common, or use one server")
	}
	return err
}

// publishTo publishes a branch from the mirrors, and tells what is there then.
func publishTo(mirrors *mirror.Mirrors) func(context.Context, outbox.Publication) (outbox.Published, error) {
	return func(ctx context.Context, p outbox.Publication) (outbox.Published, error) {
		commit, err := mirrors.Publish(ctx, mirror.Publication(p))
		if err != nil {
			return outbox.Published{}, err
		}
		contents, err := mirrors.Contents(ctx, mirror.Publication(p), commit)
		return outbox.Published{Commit: commit, Own: contents.Own, Tree: contents.Tree, Base: contents.Base}, err
	}
}

// openMirrors opens the copies of repositories. What tasks push is kept in a database that
// other servers may have too.
func openMirrors(ctx context.Context, c config.Config, database store.Store, forges map[task.Forge]forge.Forge, log *slog.Logger) (*mirror.Mirrors, error) {
	identity, err := identityOf(ctx, c)
	if err != nil {
		return nil, err
	}
	options := mirror.Options{Root: filepath.Join(c.DataDir, mirrorFolder), BaseAge: baseAge, Identity: identity, Log: log}
	options.Remote = func(ctx context.Context, r task.Repository) (forge.Remote, error) {
		of, found := forges[r.Forge]
		if !found {
			return forge.Remote{}, task.Errorf(task.NotFound, "%s is not configured", r.Forge)
		}
		return of.Remote(ctx, r.Name)
	}
	if c.Database.Driver == "postgres" {
		options.Keep = database
	}
	return mirror.Open(ctx, options)
}

// readersOf are the forges, to read from.
func readersOf(forges map[task.Forge]forge.Forge) map[task.Forge]forge.Reader {
	readers := make(map[task.Forge]forge.Reader, len(forges))
	for name, one := range forges {
		readers[name] = one
	}
	return readers
}

// reviewsOf are the forges, to read reviews from.
func reviewsOf(forges map[task.Forge]forge.Forge) map[task.Forge]items.ReviewSource {
	sources := make(map[task.Forge]items.ReviewSource, len(forges))
	for name, one := range forges {
		sources[name] = one
	}
	return sources
}

// OpenBoard opens the board and sees to it that the bot has an account there.
func OpenBoard(ctx context.Context, c config.Config, database store.Store, url string) (*board.Board, error) {
	opened, err := board.Open(board.Options{Store: database, Folder: filepath.Join(c.DataDir, BoardFolder), URL: url, Bot: BoardBot})
	if err != nil {
		return nil, err
	}
	err = opened.AddUser(ctx, BoardBot, forge.WriteAccess)
	if err != nil && task.CodeOf(err) != task.Conflict {
		return nil, err
	}
	return opened, nil
}

// connectForges makes the adapter of each configured forge, on a transport of its
// own.
func connectForges(c config.Config, database store.Store, report *telemetry.Telemetry) (map[task.Forge]forge.Forge, map[task.Forge]*transport.Transport, error) {
	forges, transports := make(map[task.Forge]forge.Forge), make(map[task.Forge]*transport.Transport)
	for _, name := range c.ConfiguredForges() {
		options := transport.Options{Name: string(name), Cache: broker.Answers{Store: database}, Log: report.Log}
		if name == task.GitHub {
			options.Writes = transport.GitHubWrites
		}
		made := transport.New(options)
		countRequests(report.Metrics, name, made)
		transports[name] = made
		connected, err := connectForge(c, name, forge.HTTPClient(made))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		forges[name] = connected
	}
	return forges, transports, nil
}

func connectForge(c config.Config, name task.Forge, client *http.Client) (forge.Forge, error) {
	switch name {
	case task.GitHub:
		options := github.Options{URL: gitHubAPI(c.GitHub.URL), Token: c.GitHub.Token.Reveal(), HTTP: client}
		if c.GitHub.AppID != 0 {
			options.App = &github.App{
				ID: fmt.Sprint(c.GitHub.AppID), InstallationID: int64(c.GitHub.AppInstallationID), Owner: c.GitHub.Owner,
				PrivateKey: c.GitHub.AppPrivateKey.Reveal(),
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

// OpenForge makes the adapter of one forge as the configuration says, on no transport of a
// server's: for looking at it, and for setting it up.
func OpenForge(c config.Config, name task.Forge) (forge.Forge, error) {
	return connectForge(c, name, forge.HTTPClient(nil))
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

// baseAge is how old the base of a task may be when its agent fetches. The board is
// at hand.
func baseAge(r task.Repository) time.Duration {
	if r.Forge == task.Board {
		return 0
	}
	return seedAge
}

// countRequests shows what an installation costs in the metrics.
func countRequests(registry *metrics.Registry, name task.Forge, through *transport.Transport) {
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
		read := func() float64 { return float64(metric.value(through.Counts())) }
		registry.Counter(metric.name, metric.help, read, metrics.Label{Name: "forge", Value: string(name)})
	}
}
