// Package telemetry wires logs, metrics and traces once, for every program that
// Toryo can be.
package telemetry

import (
	"context"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/toryo-dev/toryo/internal/metrics"
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
	Metrics *metrics.Registry
	Traces  trace.TracerProvider

	stop func(context.Context) error
}

// Start wires everything. Call Stop at the end, so that no trace is lost.
func Start(options Options) (*Telemetry, error) {
	t := &Telemetry{
		Log:     newLogger(options),
		Metrics: newRegistry(options.Version),
		Traces:  noop.NewTracerProvider(),
		stop:    func(context.Context) error { return nil },
	}
	if options.OTLPEndpoint == "" {
		return t, nil
	}
	exporter, err := newCollector(options.OTLPEndpoint)
	if err != nil {
		return nil, task.Wrap(task.BadConfig, err, "telemetry.otlp_endpoint cannot be used").
			WithHint("give it as a URL like http://127.0.0.1:4318")
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(logged{exporter, t.Log}),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "toryo-"+options.Program),
			attribute.String("service.version", options.Version),
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

func newRegistry(version string) *metrics.Registry {
	registry := new(metrics.Registry)
	registry.Gauge("toryo_build_info", "Always 1; the version is in the label.",
		func() float64 { return 1 }, metrics.Label{Name: "version", Value: version})
	registry.AddRuntime()
	registry.AddProcess()
	return registry
}
