package server

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/store"
)

// maxBody is the most that is read of the body of a request to the API.
const maxBody = 8 << 20

// Options is what a server needs.
type Options struct {
	Store   store.Store
	Log     *slog.Logger
	Metrics *prometheus.Registry
	Traces  trace.TracerProvider
	Now     func() time.Time
	Version string
	// Webhooks takes in what forges send, and Git serves repositories to agents;
	// nil means that there is none.
	Webhooks *Webhooks
	Git      http.Handler
	// Board is shown under /api/board; nil means that there is none.
	Board Board
	// Reviews keeps reviews and talks about them; nil means that there are none.
	Reviews *review.Service
}

// Server answers HTTP requests.
type Server struct {
	store    store.Store
	tokens   access.Tokens
	log      *slog.Logger
	version  string
	stopping chan struct{} // closed when the server begins to stop
	api      huma.API
	handler  http.Handler
}

// New makes a server. It does nothing until it is asked to serve.
func New(options Options) *Server {
	mux := http.NewServeMux()
	s := &Server{
		store:    options.Store,
		tokens:   access.Tokens{Store: options.Store, Now: options.Now},
		log:      options.Log,
		version:  options.Version,
		stopping: make(chan struct{}),
		api:      newAPI(mux, options.Version),
	}
	s.registerMe()
	s.registerTasks()
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
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(options.Metrics, promhttp.HandlerOpts{Registry: options.Metrics}))
	mux.HandleFunc("/", s.unknownPath)

	observed := s.observe(newRequestMetrics(options.Metrics), mux)
	s.handler = otelhttp.NewHandler(observed, "http", otelhttp.WithTracerProvider(options.Traces))
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

func newAPI(mux *http.ServeMux, version string) huma.API {
	config := huma.DefaultConfig("Toryo", version)
	config.DocsPath = ""    // the pages that would show them load assets from elsewhere
	config.SchemasPath = "" // the schemas are in the document
	config.CreateHooks = nil
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		bearer: {Type: "http", Scheme: "bearer", Description: "A token made with toryo token create"},
	}
	return humago.New(mux, config)
}
