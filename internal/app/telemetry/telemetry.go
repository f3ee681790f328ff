// Package telemetry wires logs, metrics and traces once, for every program that
// Toryo can be.
package telemetry

import (
	"context"
	"io"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// Options says what to wire.
type Options struct {
	Program      string // "server", "agent", …: what this process is in traces
	Version      string
	LogTo        io.Writer
	LogLevel     slog.Level
	LogJSON      bool
	OTLPEndpoint string // empty: no traces are made
	Redactor     *redact.Redactor
}

// Telemetry is what the rest of the program reports through.
type Telemetry struct {
	Log     *slog.Logger
	Metrics *prometheus.Registry
	Traces  trace.TracerProvider

	stop func(context.Context) error
}

// Start wires everything. Call Stop at the end, so that no trace is lost.
func Start(ctx context.Context, options Options) (*Telemetry, error) {
	t := &Telemetry{
		Log:     newLogger(options),
		Metrics: newRegistry(options.Version),
		Traces:  noop.NewTracerProvider(),
		stop:    func(context.Context) error { return nil },
	}
	if options.OTLPEndpoint == "" {
		return t, nil
	}
	client, err := newCollector(options.OTLPEndpoint)
	if err != nil {
		return nil, task.Wrap(task.BadConfig, err, "telemetry.otlp_endpoint cannot be used").
			WithMend("give it as a URL like http://127.0.0.1:4318")
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, task.Wrap(task.Internal, err, "traces cannot be sent")
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(logged{exporter, t.Log}),
		sdktrace.WithResource(resource.NewSchemaless(
			semconv.ServiceName("toryo-"+options.Program),
			semconv.ServiceVersion(options.Version),
		)),
	)
	t.Traces = provider
	t.stop = provider.Shutdown
	return t, nil
}

// logged logs what an exporter fails at, in place of the SDK, which would write it
// to standard error in a form of its own.
type logged struct {
	sdktrace.SpanExporter
	log *slog.Logger
}

// ExportSpans implements [sdktrace.SpanExporter].
func (l logged) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := l.SpanExporter.ExportSpans(ctx, spans); err != nil {
		l.log.WarnContext(ctx, "traces are lost", "spans", len(spans), "error", err)
	}
	return nil
}

// Stop sends what has not been sent yet.
func (t *Telemetry) Stop(ctx context.Context) error { return t.stop(ctx) }

func newLogger(options Options) *slog.Logger {
	var handler slog.Handler
	handlerOptions := &slog.HandlerOptions{Level: options.LogLevel}
	if options.LogJSON {
		handler = slog.NewJSONHandler(options.LogTo, handlerOptions)
	} else {
		handler = slog.NewTextHandler(options.LogTo, handlerOptions)
	}
	return slog.New(redact.Handler(handler, options.Redactor))
}

func newRegistry(version string) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "toryo_build_info",
		Help:        "Always 1; the version is in the label.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	registry.MustRegister(
		build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return registry
}
