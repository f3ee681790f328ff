package telemetry_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/toryo-dev/toryo/internal/app/telemetry"
	"github.com/toryo-dev/toryo/internal/redact"
)

// upload is a request as a collector gets it.
type upload struct {
	path    string
	headers http.Header
	spans   []*tracepb.ResourceSpans
}

// collector is a collector that answers with the next of the handlers, and at the
// end with 200. What it gets is in uploads.
func collector(t *testing.T, answers ...http.HandlerFunc) (address string, uploads chan upload) {
	t.Helper()
	uploads = make(chan upload, 10)
	next := make(chan http.HandlerFunc, len(answers))
	for _, answer := range answers {
		next <- answer
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var data tracepb.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			t.Errorf("the body is no OTLP message: %v", err)
		}
		uploads <- upload{r.Method + " " + r.URL.Path, r.Header, data.GetResourceSpans()}
		select {
		case answer := <-next:
			answer(w, r)
		default:
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, uploads
}

// send makes a span, ends it and stops the telemetry. It returns the log.
func send(t *testing.T, endpoint string) string {
	t.Helper()
	var log bytes.Buffer
	started, err := telemetry.Start(t.Context(), telemetry.Options{
		Program: "server", Version: "v1.2.3", LogTo: &log, OTLPEndpoint: endpoint, Redactor: redact.New(),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, span := started.Traces.Tracer("test").Start(t.Context(), "read the task")
	span.SetAttributes(attribute.Int("tries", 3))
	span.End()
	if err := started.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	return log.String()
}

// A span that has ended reaches the collector by the time that Stop returns, at the
// path that every collector has unless another one is given.
func TestTracesReachTheCollector(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"": "POST /v1/traces", "/": "POST /v1/traces", "/other/traces": "POST /other/traces"} {
		address, uploads := collector(t)
		if log := send(t, address+path); log != "" {
			t.Error(log)
		}
		got := <-uploads
		if got.path != want || got.headers.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("the request was %s of %s, want %s", got.path, got.headers.Get("Content-Type"), want)
		}
		resource := got.spans[0].GetResource().String()
		for _, part := range []string{"service.name", "toryo-server", "service.version", "v1.2.3"} {
			if !strings.Contains(resource, part) {
				t.Errorf("%s is not in the resource %s", part, resource)
			}
		}
		span := got.spans[0].GetScopeSpans()[0].GetSpans()[0]
		if span.GetName() != "read the task" || span.GetAttributes()[0].GetValue().GetIntValue() != 3 || len(span.GetTraceId()) != 16 {
			t.Errorf("the span is %v", span)
		}
	}
}

func TestTracesAreSentAgain(t *testing.T) {
	t.Parallel()
	address, uploads := collector(t,
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if log := send(t, address); log != "" {
		t.Error(log)
	}
	for range 3 {
		if got := <-uploads; len(got.spans) != 1 {
			t.Errorf("a try had %d resources", len(got.spans))
		}
	}
}

func TestTracesThatAreRefusedAreNotSentAgain(t *testing.T) {
	t.Parallel()
	address, uploads := collector(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such tenant", http.StatusBadRequest)
	})
	if log := send(t, address); !strings.Contains(log, "traces are lost") || !strings.Contains(log, "no such tenant") || len(uploads) != 1 {
		t.Errorf("there were %d requests, and the log is %s", len(uploads), log)
	}
	partial := protowire.AppendTag(nil, 1, protowire.VarintType)
	partial = protowire.AppendVarint(partial, 7)
	partial = protowire.AppendTag(partial, 2, protowire.BytesType)
	partial = protowire.AppendString(partial, "too old")
	answer := protowire.AppendTag(nil, 1, protowire.BytesType)
	answer = protowire.AppendBytes(answer, partial)
	address, uploads = collector(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(answer)
	})
	if log := send(t, address); !strings.Contains(log, "did not take 7 spans") || !strings.Contains(log, "too old") || len(uploads) != 1 {
		t.Errorf("there were %d requests, and the log is %s", len(uploads), log)
	}
}

func TestCollectorHeadersFromEnvironment(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, x-team=one")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-team=two")
	address, uploads := collector(t)
	if log := send(t, address); log != "" {
		t.Error(log)
	}
	if got := (<-uploads).headers; got.Get("X-Key") != "a b" || got.Get("X-Team") != "two" {
		t.Errorf("the headers were %v", got)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "secret")
	for _, endpoint := range []string{address, "not a url", "ftp://127.0.0.1", "http://"} {
		_, err := telemetry.Start(t.Context(), telemetry.Options{LogTo: io.Discard, OTLPEndpoint: endpoint, Redactor: redact.New()})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error is %v", endpoint, err)
		}
	}
}

// A collector that sends us elsewhere does not get our headers there.
func TestTracesFollowNoRedirect(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=secret")
	elsewhere, got := collector(t)
	address, _ := collector(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
	})
	send(t, address)
	select {
	case uploaded := <-got:
		t.Errorf("the other server got %v", uploaded.headers)
	default:
	}
}
