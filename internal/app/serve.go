package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/telemetry"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/llm/ledger"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/web"
	"github.com/toryo-dev/toryo/internal/wire"
)

// flushTimeout is how long the last traces may take to be sent.
const flushTimeout = 5 * time.Second

type serve struct {
	program
	settings settings
	engine   sandbox.Engine // for the agent; nil: the one that the configuration names
}

func (p commands) serveCommand() *cobra.Command {
	o := serve{program: p.program}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long:  "Run the server until it is interrupted. With database.driver: postgres, any number of\nservers can share the work.",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context(), "server", nil) },
	}
	o.settings.bind(c, dataFlag, addrFlag)
	return c
}

func (p commands) upCommand() *cobra.Command {
	o := serve{program: p.program}
	c := &cobra.Command{
		Use:   "up",
		Short: "Run server and agent in one process",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context(), "up", o.runUp) },
	}
	o.settings.bind(c, dataFlag, addrFlag, parallelFlag)
	return c
}

// run reads the configuration and serves until the context ends.
func (o serve) run(ctx context.Context, name string, ready whenReady) error {
	loaded, err := o.settings.load(o.program)
	if err != nil {
		return err
	}
	return o.serve(ctx, loaded, name, func(ctx context.Context, running instance) error {
		o.settings.warn(ctx, running.report.Log)
		if ready == nil {
			return nil
		}
		return ready(ctx, running)
	})
}

// instance is a server that is listening.
type instance struct {
	url    string // where it listens
	local  string // for an agent in this process
	config config.Config
	store  store.Store
	report *telemetry.Telemetry
	pages  *web.Pages
	board  *board.Board
	forges *forgeSide
	drain  func() // ends, soon, what would keep the server from stopping
}

// whenReady is called when the server answers. The server goes on while it runs,
// also when its context has ended. When it fails the server stops.
type whenReady func(context.Context, instance) error

// serve runs a server until the context ends or ready fails. The address is
// taken before the database is touched, so that a start that cannot succeed
// leaves nothing behind.
func (p program) serve(ctx context.Context, c config.Config, name string, ready whenReady) (err error) {
	if p.variable("GOGC") == "" {
		// Most of a server's memory belongs to connections that wait, and stays:
		// there is little to collect, so that twice as often costs little.
		debug.SetGCPercent(50)
	}
	report, err := p.startTelemetry(c, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopTelemetry(ctx, report)) }()
	listener, err := server.Listen(ctx, c.Server.Addr)
	if err != nil {
		return err
	}
	database, err := openStore(ctx, c)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	process, unlock, err := lockDataDir(c.DataDir)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, unlock()) }()
	database.ActAs(process.ID())
	forges, err := startForges(ctx, c, database, report, publicURL(c, listener.Addr().String()))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { forges.stop(context.WithoutCancel(ctx)) }()
	encryption, err := encryptionOf(c)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	free := freeing{process, database, forges.clock.Now, forges.sender, report.Log}
	if _, err := free.free(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	reviews, err := startReviews(ctx, c, forges, free)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer stopReviews(reviews)
	now := forges.handing.clock.Now
	served := servedBoard{forges.board, reviews.Heard}
	pages := p.newPages(c, forges, served, reviews)
	answering := server.New(server.Options{
		Pages: pages, Store: database, Log: report.Log, Metrics: report.Metrics, Traces: report.Traces, Now: now, Version: Version(),
		Webhooks: forges.webhooks, Git: forges.git(now), HandOut: forges.handing, Board: served, Reviews: reviews, TLS: encryption,
		Limits: server.Limits{PerToken: float64(c.Server.RequestsPerToken), PerAddress: float64(c.Server.RequestsPerAddress)},
		Runs:   forges.running.runs, Halts: forges.running.halts, Bell: forges.bell, Judged: judgements{reviews, forges.sender.Wake},
		Ledger: ledger.Ledger{Store: database, Limits: limitsOf(c.Budget), Now: p.now},
	})
	return p.serveUntil(ctx, answering, listener, instance{config: c, store: database, report: report, pages: pages, board: forges.board, forges: forges, drain: reviews.Drain}, ready)
}

// listeningURL is the address of a server that listens there.
func listeningURL(c config.Config, address string) string {
	if c.Server.TLSCertFile != "" {
		return "https://" + address
	}
	return "http://" + address
}

// publicURL is where people find a server that listens there.
func publicURL(c config.Config, address string) string {
	if c.Server.PublicURL != "" {
		return strings.TrimSuffix(c.Server.PublicURL, "/")
	}
	return listeningURL(c, address)
}

// serveUntil serves until the context ends or ready fails.
func (p program) serveUntil(ctx context.Context, web *server.Server, listener net.Listener, running instance, ready whenReady) error {
	listeners := []net.Listener{listener}
	running.url = listeningURL(running.config, listener.Addr().String())
	running.local = running.url
	if running.config.Server.TLSCertFile != "" {
		// The certificate is not for the name by which this process knows itself.
		local, err := server.Listen(ctx, "127.0.0.1:0")
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		listeners = append(listeners, local)
		running.local = "http://" + local.Addr().String()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopDraining := context.AfterFunc(ctx, running.drain)
	defer stopDraining()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	served := make(chan error, 1)
	go func() {
		err := web.Serve(serving, listeners...)
		cancel(err)
		served <- err
	}()
	err := p.announce(ctx, running, ready)
	if err == nil {
		<-ctx.Done()
	}
	stop()
	return errors.Join(err, <-served)
}

func (p program) announce(ctx context.Context, running instance, ready whenReady) error {
	if _, err := fmt.Fprintf(p.stdout, "listening on %s\n", running.url); err != nil {
		return err
	}
	if ready == nil {
		return nil
	}
	return ready(ctx, running)
}

func stopTelemetry(ctx context.Context, report *telemetry.Telemetry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := report.Stop(ctx); err != nil {
		report.Log.WarnContext(ctx, "some traces could not be sent", "error", err)
	}
	return nil
}

// embeddedAgent is how the agent in this process reaches its server: over HTTP and
// with a token of its own, as an agent on another machine does.
func (p program) embeddedAgent(ctx context.Context, running instance) (agentSettings, error) {
	host, err := os.Hostname()
	if err != nil {
		return agentSettings{}, fmt.Errorf("name the agent: %w", err)
	}
	name := fmt.Sprintf("embedded agent of %s on %s", running.url, host)
	token, err := access.Tokens{Store: running.store, Now: p.now}.Replace(ctx, access.Agent, name)
	if err != nil {
		return agentSettings{}, err
	}
	client, err := agentClient("")
	return agentSettings{server: running.local, token: token, name: name, http: client, log: running.report.Log}, err
}

// sayUnable lets the agent in this process check in, and say that it cannot take
// tasks.
func (p program) sayUnable(ctx context.Context, s agentSettings, unable *unableError) error {
	worker := agent.Agent{Client: &wire.Client{Server: s.server, Token: s.token, HTTP: s.http}, Log: s.log}
	if _, err := worker.CheckIn(ctx); err != nil {
		return err
	}
	return worker.Report(ctx, unable.reason, unable.detail())
}

// runUp invites to the pages, works, and says what tasks wait for.
func (o serve) runUp(ctx context.Context, running instance) error {
	if err := o.invite(ctx, running); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return o.runAgent(ctx, running) })
	group.Go(func() error { return o.tellWaits(ctx, running) })
	return group.Wait()
}

// unlessStopped makes nothing of the error of something that was stopped before it had
// begun: a stop is no failure.
func unlessStopped(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// lookForSandbox is how often an agent without a sandbox looks for one again.
const lookForSandbox = 10 * time.Second

// runAgent works until the context ends. An agent that lacks what it needs says so,
// and looks again now and then whether a sandbox works by now.
func (o serve) runAgent(ctx context.Context, running instance) (err error) {
	process, unlock, err := lockAgent(running.config.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	settings, err := o.embeddedAgent(ctx, running)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	settings.engine, settings.process = o.engine, process
	worker, err := o.newAgent(ctx, running.config, settings)
	told := ""
	for task.CodeOf(err) == task.NotReady {
		unable, is := errors.AsType[*unableError](err)
		if !is {
			return err
		}
		// Each time, because an agent that is not heard of counts as silent.
		if err := o.sayUnable(ctx, settings, unable); err != nil {
			return unlessStopped(ctx, err)
		}
		if text := unable.Error(); text != told {
			if _, err := fmt.Fprintf(o.stdout, "the agent has checked in, but takes no tasks: %s\n", text); err != nil {
				return err
			}
			told = text
		}
		if lifecycle.Sleep(ctx, lookForSandbox) != nil {
			return nil
		}
		worker, err = o.newAgent(ctx, running.config, settings)
	}
	if err != nil {
		return unlessStopped(ctx, err)
	}
	return work(ctx, worker, func(name string) error {
		_, err := fmt.Fprintf(o.stdout, "the agent has checked in and asks for tasks as %s\n", name)
		return err
	})
}
