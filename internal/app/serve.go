package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/telemetry"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/wire"
)

// flushTimeout is how long the last traces may take to be sent.
const flushTimeout = 5 * time.Second

type serve struct {
	program
	settings settings
}

func (p program) serveCommand() *cobra.Command {
	o := serve{program: p}
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

func (p program) upCommand() *cobra.Command {
	o := serve{program: p}
	c := &cobra.Command{
		Use:   "up",
		Short: "Run server and agent in one process",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context(), "up", o.announceAgent) },
	}
	o.settings.bind(c, dataFlag, addrFlag)
	return c
}

// run reads the configuration and serves until the context ends.
func (o serve) run(ctx context.Context, name string, ready whenReady) error {
	loaded, err := o.settings.load(o.program)
	if err != nil {
		return err
	}
	return o.serve(ctx, loaded, name, ready)
}

// instance is a server that is listening.
type instance struct {
	url    string
	store  store.Store
	report *telemetry.Telemetry
}

// whenReady is called when the server answers. When it fails the server stops.
type whenReady func(context.Context, instance) error

// serve runs a server until the context ends or ready fails. The address is
// taken before the database is touched, so that a start that cannot succeed
// leaves nothing behind.
func (p program) serve(ctx context.Context, c config.Config, name string, ready whenReady) (err error) {
	report, err := p.startTelemetry(ctx, c, name)
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
	unlock, err := lockDataDir(c.DataDir)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, unlock()) }()
	forges, err := startForges(ctx, c, database, report, "http://"+listener.Addr().String())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { forges.stop(context.WithoutCancel(ctx)) }()
	reviews, err := startReviews(ctx, c, forges, p.now)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer stopReviews(reviews)
	web := server.New(server.Options{
		Store: database, Log: report.Log, Metrics: report.Metrics, Traces: report.Traces, Now: p.now, Version: Version(),
		Webhooks: forges.webhooks, Git: forges.git(p.now), Board: servedBoard{forges.board, reviews.Heard}, Reviews: reviews,
	})
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	served := make(chan error, 1)
	go func() { served <- web.Serve(ctx, listener) }()
	if err := p.announce(ctx, listener, instance{store: database, report: report}, ready); err != nil {
		stop(err)
		return errors.Join(err, <-served)
	}
	return <-served
}

func (p program) announce(ctx context.Context, listener net.Listener, running instance, ready whenReady) error {
	running.url = "http://" + listener.Addr().String()
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

// checkInAgent gives the agent in this process a token of its own and lets it
// check in over HTTP, as an agent on another machine does.
func (p program) checkInAgent(ctx context.Context, running instance) (wire.Me, error) {
	host, err := os.Hostname()
	if err != nil {
		return wire.Me{}, fmt.Errorf("name the agent: %w", err)
	}
	name := fmt.Sprintf("embedded agent of %s on %s", running.url, host)
	token, err := access.Tokens{Store: running.store, Now: p.now}.Replace(ctx, access.Agent, name)
	if err != nil {
		return wire.Me{}, err
	}
	worker := agent.Agent{
		Client: &wire.Client{Server: running.url, Token: token, HTTP: &http.Client{Timeout: 30 * time.Second}},
		Log:    running.report.Log,
	}
	return worker.CheckIn(ctx)
}

func (o serve) announceAgent(ctx context.Context, running instance) error {
	if _, err := o.checkInAgent(ctx, running); err != nil {
		return err
	}
	_, err := fmt.Fprintln(o.stdout, "the agent has checked in; handing out tasks is not supported yet")
	return err
}
