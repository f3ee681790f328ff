package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/memory"
	"github.com/toryo-dev/toryo/internal/metrics"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/server/limit"
	"github.com/toryo-dev/toryo/internal/statistics"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// maxBody is the most that is read of the body of a request to the API.
const maxBody = 8 << 20

// Store is what the server needs of the database. Each part is where it is used; what the
// methods do is said in package store.
type Store interface { //nolint:interfacebloat // it is the parts of the handlers, each of a few methods
	GitStore
	AgentStore
	conditionStore
	access.AuditStore
	access.EnrolmentStore
	access.PeopleStore
	taskStore
	overStore
	receiptStore
	runStore
	pauseStore
	sightingStore
	store.Backlogs
	statistics.Source
	memory.Store
	TestWrite(ctx context.Context) error
}

// Options is what a server needs.
type Options struct {
	Store Store
	// OwnToken is a token for commands on this machine; empty means that there is none.
	OwnToken string
	Log      *slog.Logger
	Metrics  *metrics.Registry
	Traces   trace.TracerProvider
	Now      func() time.Time
	Version  string
	// Webhooks takes in what forges send, and Git serves repositories to agents;
	// nil means that there is none.
	Webhooks *Webhooks
	Git      http.Handler
	// Runs is what agents may do with the tasks that they hold, Ledger what they
	// may spend; nil means that there are no agents.
	Runs   *broker.Runs
	Ledger llm.Ledger
	// Reviews stores reviews, also those that review tasks make, and the threads
	// about them; nil means that there are none.
	Reviews *review.Service
	// Controller stops, pauses and resumes tasks, and Notifier tells when something
	// happens to one; nil means that this server does neither.
	Controller *broker.Controller
	Notifier   *broker.Notifier
	// Board is shown under /api/board; nil means that there is none.
	Board *board.Board
	// HandOut hands tasks to agents; nil means that none are.
	HandOut HandOut
	// Needs says what waits for a person; nil means that nobody knows.
	Needs func(ctx context.Context) ([]task.Need, error)
	// NoMemory says that no notes from reviews are kept or given to tasks. Those that are there can be
	// read and removed all the same.
	NoMemory bool
	// Mask masks the secrets of the installation in notes that people write; nil means that nothing is
	// looked for.
	Mask func(text string) string
	// Limits bound how many requests are answered.
	Limits Limits
	// WriteTimeout is how long a caller may take to read what one write sends it;
	// 0 means a minute.
	WriteTimeout time.Duration
	// BodyTimeout is how long the body of a request may take to arrive from someone
	// who has not shown a token yet; 0 means ten seconds.
	BodyTimeout time.Duration
	// TLS is how connections are encrypted; nil means that they are not.
	TLS *tls.Config
	// Checks are what /readyz tests besides the database.
	Checks []Check
	// Pages answers what no other part does; nil means that there are none.
	Pages Pages
}

// Pages are the pages for people.
type Pages interface {
	http.Handler
	// Stop ends the connections of live pages, so that the server can stop.
	Stop()
}

// Server answers HTTP requests.
type Server struct {
	store  Store
	tokens access.TokenReader
	leases access.Leases
	audit  access.Auditor
	now    func() time.Time

	writeTimeout time.Duration
	bodyTimeout  time.Duration

	log       *slog.Logger
	version   string
	stopping  chan struct{} // closed when the server begins to stop
	handOut   HandOut
	limits    limits
	strangers *limit.InFlight // requests of those who are not known yet
	seen      *sightings
	polls     *longPolls
	tls       *tls.Config
	pages     Pages
	webhooks  *Webhooks // nil if none are taken
	readiness *readiness
	api       huma.API
	handler   http.Handler
}

// New makes a server. It does nothing until it is asked to serve.
func New(options Options) *Server {
	mux := http.NewServeMux()
	s := &Server{
		store:  options.Store,
		tokens: options.Store,
		leases: access.Leases{Store: options.Store},
		audit:  access.Auditor{Store: options.Store, Now: options.Now, Log: options.Log},
		now:    options.Now,

		writeTimeout: cmp.Or(options.WriteTimeout, defaultWriteTimeout),
		bodyTimeout:  cmp.Or(options.BodyTimeout, limit.StrangersBody),

		log:       options.Log,
		version:   options.Version,
		stopping:  make(chan struct{}),
		handOut:   options.HandOut,
		limits:    newLimits(options.Limits, options.Now),
		strangers: &limit.InFlight{PerClient: maxMet, Most: maxMetByMany},
		seen:      &sightings{store: options.Store, log: options.Log, now: options.Now},
		tls:       options.TLS,
		pages:     options.Pages,
		webhooks:  options.Webhooks,
		readiness: newReadiness(options),
		api:       newAPI(mux, options.Version),
	}
	if options.OwnToken != "" {
		s.tokens = access.WithOwnToken(options.Store, options.OwnToken)
	}
	durations := newDurations(options.Metrics)
	s.polls = &longPolls{log: s.log, durations: durations, problem: s.problem, writeTimeout: s.writeTimeout,
		tracer: options.Traces.Tracer("github.com/toryo-dev/toryo/internal/server")}
	s.registerMe()
	s.registerTasks()
	s.registerStatistics()
	s.registerMemory(!options.NoMemory, memory.Editor{Store: options.Store, Mask: options.Mask})
	s.registerReceipts(mux)
	s.registerAgents(options.Now)
	s.addGauges(options.Metrics)
	s.registerOver()
	s.registerParts(options, mux)
	boundFields(s.api.OpenAPI())
	mux.Handle("GET /metrics", options.Metrics)
	s.registerHealth(mux)
	mux.HandleFunc("/", s.otherPath)
	observed := s.observe(durations, s.limit(mux))
	s.handler = otelhttp.NewHandler(observed, "http", otelhttp.WithTracerProvider(options.Traces))
	return s
}

// registerParts offers what not every server has.
func (s *Server) registerParts(options Options, mux *http.ServeMux) {
	if options.HandOut != nil {
		handsOut{s, options.HandOut}.register()
	}
	if options.Needs != nil {
		s.registerNeeds(options.Needs)
	}
	if options.Runs != nil {
		runsAPI{Server: s, runs: options.Runs, reviews: options.Reviews, ledger: options.Ledger}.register()
	}
	if options.Controller != nil {
		s.registerSteering(options.Controller)
	}
	if options.Notifier != nil {
		s.registerStream(options.Notifier)
	}
	if options.Board != nil {
		s.registerBoard(options.Board)
	}
	if options.Reviews != nil {
		s.registerReviews(options.Reviews)
	}
	if options.Webhooks != nil {
		options.Webhooks.Register(mux)
	}
	if options.Git != nil {
		mux.Handle("/git/", http.StripPrefix("/git", options.Git))
	}
}

var errStopping = task.Errorf(task.Interrupted, "the server is stopping")

// untilStop is a context that also ends when the server begins to stop, with
// errStopping as its cause.
func (s *Server) untilStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.stopping:
			cancel(errStopping)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

func newAPI(mux *http.ServeMux, version string) huma.API {
	config := huma.DefaultConfig("Toryo", version)
	config.DocsPath = ""    // the pages that would show them load assets from elsewhere
	config.SchemasPath = "" // the schemas are in the document
	config.CreateHooks = nil
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		bearer:      {Type: "http", Scheme: "bearer", Description: "A token made with toryo token create"},
		leaseBearer: {Type: "http", Scheme: "bearer", Description: "The token of a task's lease"},
	}
	return humago.New(mux, config)
}
