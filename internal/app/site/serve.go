package site

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/processes"
	"github.com/toryo-dev/toryo/internal/app/telemetry"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/ledger"
	"github.com/toryo-dev/toryo/internal/sandbox/disk"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/web"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Instance is a server that is listening.
type Instance struct {
	URL     string // where it listens
	local   string // for an agent in this process, and for commands on this machine
	Config  config.Config
	Store   store.Store
	Report  *telemetry.Telemetry
	Pages   *web.Pages
	Board   *board.Board
	tasks   *dispatch
	outages *llm.Outages
	drain   func() // ends, soon, what would keep the server from stopping

	process string // its id in the data directory
	token   string // for commands on this machine
}

// ListenAll tells of every event of a task, until stop is called.
func (i Instance) ListenAll() (changed <-chan struct{}, stop func()) {
	return i.tasks.notifier.ListenAll()
}

// Waits says why nobody takes tasks.
func (i Instance) Waits(ctx context.Context) ([]broker.Wait, error) {
	return i.tasks.Waits(ctx)
}

// WhenReady is called when the server answers. The server goes on while it runs,
// also when its context has ended. When it fails the server stops.
type WhenReady func(context.Context, Instance) error

// Serve runs a server until the context ends or ready fails. The address is
// taken before the database is touched, so that a start that cannot succeed
// leaves nothing behind.
func Serve(ctx context.Context, p Program, c config.Config, name string, ready WhenReady) (err error) {
	report, err := StartTelemetry(p, c, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, StopTelemetry(ctx, report)) }()
	listener, err := server.Listen(ctx, c.Server.Addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeListener(listener)) }()
	database, err := OpenStore(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	process, unlock, err := lockDataDir(c.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := removeRestored(c.DataDir); err != nil {
		report.Log.WarnContext(ctx, "what a restore has left cannot be removed", "error", err)
	}
	database.ActAs(process.ID())
	return serveOn(ctx, p, c, resources{report, listener, database, process}, ready)
}

// resources are what a server has for itself.
type resources struct {
	report   *telemetry.Telemetry
	listener net.Listener
	database store.Store
	process  *processes.Process
}

// serveOn runs a server on what it has, until the context ends or ready fails.
func serveOn(ctx context.Context, p Program, c config.Config, has resources, ready WhenReady) error {
	report, listener, database := has.report, has.listener, has.database
	countStatements(report.Metrics, database)
	connected, err := connect(ctx, c, database, report, PublicURL(c, listener.Addr().String()))
	if err != nil {
		return err
	}
	defer func() { connected.stop(context.WithoutCancel(ctx)) }()
	tasks, err := newDispatch(c, connected)
	if err != nil {
		return err
	}
	if !c.Memory.Enabled { // so that nothing is learned later from what was said meanwhile
		if err := database.ForgetWatched(ctx, "", nil); err != nil {
			return err
		}
	}
	stopTasks := tasks.start(ctx, connected)
	defer func() { stopTasks(context.WithoutCancel(ctx)) }()
	encryption, err := encryptionOf(c)
	if err != nil {
		return err
	}
	free := freeing{has.process, database, connected.clock.Now, connected.sender, report.Log}
	if _, err := free.free(ctx); err != nil {
		return err
	}
	outages := new(llm.Outages)
	countSwitches(report.Metrics, outages)
	reviews, err := startReviews(ctx, c, connected, outages, free)
	if err != nil {
		return err
	}
	defer stopReviews(reviews)
	now := connected.clock.Now
	pages := newPages(p, c, connected, tasks, reviews)
	report.Metrics.Gauge("toryo_data_free_bytes", "What is free on the disk of the data folder; -1 if that is not known.", func() float64 { return freeBytes(c.DataDir) })
	own := access.NewSecret()
	answering := server.New(server.Options{
		OwnToken: own,
		Checks:   []server.Check{{Name: "data_folder", Test: func(context.Context) error { return workdir.TestWrite(c.DataDir) }}},
		Pages:    pages, Store: database, Log: report.Log, Metrics: report.Metrics, Traces: report.Traces, Now: now, Version: Version(),
		Webhooks: connected.webhooks, Git: server.Git(connected.mirrors, database), HandOut: tasks, Board: connected.board, Reviews: reviews, TLS: encryption,
		Limits: server.Limits{PerToken: float64(c.Server.RequestsPerToken), PerAddress: float64(c.Server.RequestsPerAddress)},
		Runs:   tasks.runs, Controller: tasks.controller, Notifier: tasks.notifier,
		Ledger: ledger.Ledger{Store: database, Limits: LimitsOf(c.Budget), Now: p.Now}, Needs: tasks.needs.List, NoMemory: !c.Memory.Enabled, Mask: connected.mask,
	})
	tasks.setFaults(faultsOf(answering))
	return serveUntil(ctx, p, answering, listener, Instance{Config: c, Store: database, Report: report, Pages: pages, Board: connected.board, tasks: tasks, outages: outages, drain: reviews.Drain, process: has.process.ID(), token: own}, ready)
}

// faultsOf is what people are told about a server that is not ready.
func faultsOf(s *server.Server) faultsFunc {
	return func(ctx context.Context) (faults []broker.Fault) {
		for _, fault := range s.Faults(ctx) {
			faults = append(faults, broker.Fault{Name: fault.Name, Detail: fault.Err.Error()})
		}
		return faults
	}
}

// freeBytes is what is free on the disk of a folder.
func freeBytes(folder string) float64 {
	free, err := disk.FreeSpace(folder)
	if err != nil {
		return -1
	}
	return float64(free)
}

// closeListener closes a listener, unless the server that had it has done so.
func closeListener(listener net.Listener) error {
	if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// ListeningURL is the address, on its machine, of a server that listens there.
func ListeningURL(c config.Config, address string) string {
	address = connectable(address)
	if c.Server.TLSCertFile != "" {
		return "https://" + address
	}
	return "http://" + address
}

// PublicURL is where people find a server that listens there.
func PublicURL(c config.Config, address string) string {
	if c.Server.PublicURL != "" {
		return strings.TrimSuffix(c.Server.PublicURL, "/")
	}
	return ListeningURL(c, address)
}

// serveUntil serves until the context ends or ready fails.
func serveUntil(ctx context.Context, p Program, web *server.Server, listener net.Listener, running Instance, ready WhenReady) error {
	listeners := []net.Listener{listener}
	running.URL = ListeningURL(running.Config, listener.Addr().String())
	running.local = running.URL
	if running.Config.Server.TLSCertFile != "" {
		// The certificate is not for the name by which this process knows itself.
		local, err := server.Listen(ctx, "127.0.0.1:0")
		if err != nil {
			return err
		}
		listeners = append(listeners, local)
		running.local = "http://" + local.Addr().String()
	}
	withdraw, err := publishAddress(running)
	if err != nil {
		running.Report.Log.WarnContext(ctx, "commands on this machine do not learn the address of the server", "error", err)
	}
	defer withdraw()
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
	err = announce(ctx, p, running, ready)
	if err == nil {
		<-ctx.Done()
	}
	stop()
	return errors.Join(err, <-served)
}

func announce(ctx context.Context, p Program, running Instance, ready WhenReady) error {
	if _, err := fmt.Fprintf(p.Stdout, "listening on %s\n", running.URL); err != nil {
		return err
	}
	if ready == nil {
		return nil
	}
	return ready(ctx, running)
}
