package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/toryo-dev/toryo/internal/app/telemetry"
	"github.com/toryo-dev/toryo/internal/redact"
)

// The messages of OTLP's JSON encoding, as its specification and its .proto files have
// them: what they do not name, a collector may refuse.
type (
	resourceSpans struct {
		Resource struct {
			Attributes []keyValue `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []struct {
			Scope struct {
				Name       string     `json:"name"`
				Version    string     `json:"version"`
				Attributes []keyValue `json:"attributes"`
			} `json:"scope"`
			Spans     []span `json:"spans"`
			SchemaURL string `json:"schemaUrl"`
		} `json:"scopeSpans"`
		SchemaURL string `json:"schemaUrl"`
	}
	span struct {
		TraceID                string     `json:"traceId"`
		SpanID                 string     `json:"spanId"`
		TraceState             string     `json:"traceState"`
		ParentSpanID           string     `json:"parentSpanId"`
		Flags                  uint32     `json:"flags"`
		Name                   string     `json:"name"`
		Kind                   int        `json:"kind"`
		StartTimeUnixNano      uint64     `json:"startTimeUnixNano,string"`
		EndTimeUnixNano        uint64     `json:"endTimeUnixNano,string"`
		Attributes             []keyValue `json:"attributes"`
		DroppedAttributesCount uint32     `json:"droppedAttributesCount"`
		Events                 []event    `json:"events"`
		DroppedEventsCount     uint32     `json:"droppedEventsCount"`
		Links                  []link     `json:"links"`
		DroppedLinksCount      uint32     `json:"droppedLinksCount"`
		Status                 struct {
			Message string `json:"message"`
			Code    int    `json:"code"`
		} `json:"status"`
	}
	event struct {
		TimeUnixNano           uint64     `json:"timeUnixNano,string"`
		Name                   string     `json:"name"`
		Attributes             []keyValue `json:"attributes"`
		DroppedAttributesCount uint32     `json:"droppedAttributesCount"`
	}
	link struct {
		TraceID                string     `json:"traceId"`
		SpanID                 string     `json:"spanId"`
		TraceState             string     `json:"traceState"`
		Attributes             []keyValue `json:"attributes"`
		DroppedAttributesCount uint32     `json:"droppedAttributesCount"`
		Flags                  uint32     `json:"flags"`
	}
	keyValue struct {
		Key   string   `json:"key"`
		Value anyValue `json:"value"`
	}
	anyValue struct {
		StringValue *string  `json:"stringValue"`
		BoolValue   *bool    `json:"boolValue"`
		IntValue    *int64   `json:"intValue,string"`
		DoubleValue any      `json:"doubleValue"` // a number, or text for those that JSON lacks
		BytesValue  []byte   `json:"bytesValue"`  // in base64
		ArrayValue  *values  `json:"arrayValue"`
		KvlistValue *keyList `json:"kvlistValue"`
	}
	values struct {
		Values []anyValue `json:"values"`
	}
	keyList struct {
		Values []keyValue `json:"values"`
	}
)

// upload is a request as a collector gets it.
type upload struct {
	path    string
	headers http.Header
	spans   []resourceSpans
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
		var data struct {
			ResourceSpans []resourceSpans `json:"resourceSpans"`
		}
		body := json.NewDecoder(r.Body)
		body.DisallowUnknownFields()
		if err := body.Decode(&data); err != nil {
			t.Errorf("the body is no OTLP message: %v", err)
		}
		if _, err := body.Token(); !errors.Is(err, io.EOF) {
			t.Errorf("after the message comes %v", err)
		}
		uploads <- upload{r.Method + " " + r.URL.Path, r.Header, data.ResourceSpans}
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
	return sendSpans(t, endpoint, func(tracer trace.Tracer) {
		_, span := tracer.Start(t.Context(), "read the task")
		span.SetAttributes(attribute.Int("tries", 3))
		span.End()
	})
}

// sendSpans makes spans and stops the telemetry. It returns the log.
func sendSpans(t *testing.T, endpoint string, work func(trace.Tracer)) string {
	t.Helper()
	var log bytes.Buffer
	started, err := telemetry.Start(telemetry.Options{
		Program: "server", Version: "v1.2.3", LogTo: &log, OTLPEndpoint: endpoint, Redactor: redact.New(),
	})
	if err != nil {
		t.Fatal(err)
	}
	work(started.Traces.Tracer("test", trace.WithInstrumentationVersion("v4"), trace.WithSchemaURL("https://example.com/schema")))
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
		if got.path != want || got.headers.Get("Content-Type") != "application/json" {
			t.Errorf("the request was %s of %s, want %s", got.path, got.headers.Get("Content-Type"), want)
		}
		wantResource := []keyValue{{"service.name", text("toryo-server")}, {"service.version", text("v1.2.3")}}
		if diff := cmp.Diff(wantResource, got.spans[0].Resource.Attributes); diff != "" {
			t.Error(diff)
		}
		span := got.spans[0].ScopeSpans[0].Spans[0]
		if span.Name != "read the task" || *span.Attributes[0].Value.IntValue != 3 || len(span.TraceID) != 32 || len(span.SpanID) != 16 {
			t.Errorf("the span is %+v", span)
		}
	}
}

func text(s string) anyValue  { return anyValue{StringValue: &s} }
func number(n int64) anyValue { return anyValue{IntValue: &n} }

// All that a span can have reaches the collector in the form of the specification.
func TestTracesAreWhole(t *testing.T) {
	t.Parallel()
	state, err := trace.ParseTraceState("vendor=1")
	if err != nil {
		t.Fatal(err)
	}
	caller := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{0x0a, 15: 0xff}, SpanID: trace.SpanID{0x0b, 7: 0xfe}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true,
	})
	begin := time.Unix(1_700_000_000, 123_456_789)
	address, uploads := collector(t)
	var inner trace.SpanContext
	log := sendSpans(t, address, func(tracer trace.Tracer) {
		ctx, outer := tracer.Start(trace.ContextWithRemoteSpanContext(t.Context(), caller), "outer",
			trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(begin))
		_, span := tracer.Start(ctx, "in\xffner <&>", trace.WithLinks(trace.Link{SpanContext: caller, Attributes: []attribute.KeyValue{attribute.Bool("why", true)}}))
		inner = span.SpanContext()
		span.SetAttributes(everyKind()...)
		span.End()
		outer.AddEvent("stopped", trace.WithTimestamp(begin.Add(1)), trace.WithAttributes(attribute.String("by", "hand")))
		outer.SetStatus(codes.Error, "it failed")
		outer.End(trace.WithTimestamp(begin.Add(time.Second)))
	})
	if log != "" {
		t.Error(log)
	}
	got := (<-uploads).spans
	if len(got) != 1 || len(got[0].ScopeSpans) != 1 || len(got[0].ScopeSpans[0].Spans) != 2 {
		t.Fatalf("the collector got %+v", got)
	}
	if of := got[0].ScopeSpans[0]; of.Scope.Name != "test" || of.Scope.Version != "v4" || of.SchemaURL != "https://example.com/schema" {
		t.Errorf("the scope is %+v of %s", of.Scope, of.SchemaURL)
	}
	const traceID, callerID = "0a0000000000000000000000000000ff", "0b000000000000fe"
	innerSpan, outerSpan := got[0].ScopeSpans[0].Spans[0], got[0].ScopeSpans[0].Spans[1]
	yes := true
	wantOuter := span{
		TraceID: traceID, SpanID: innerSpan.ParentSpanID, ParentSpanID: callerID, TraceState: "vendor=1",
		Flags: 0x301, Name: "outer", Kind: 2, StartTimeUnixNano: 1_700_000_000_123_456_789, EndTimeUnixNano: 1_700_000_001_123_456_789,
		Events: []event{{TimeUnixNano: 1_700_000_000_123_456_790, Name: "stopped", Attributes: []keyValue{{"by", text("hand")}}}},
	}
	wantOuter.Status.Code, wantOuter.Status.Message = 2, "it failed"
	wantInner := span{
		TraceID: traceID, SpanID: inner.SpanID().String(), ParentSpanID: outerSpan.SpanID, TraceState: "vendor=1",
		Flags: 0x101, Name: "in\uFFFDner <&>", Kind: 1,
		StartTimeUnixNano: innerSpan.StartTimeUnixNano, EndTimeUnixNano: innerSpan.EndTimeUnixNano, Attributes: everyKindSent(),
		Links: []link{{TraceID: traceID, SpanID: callerID, TraceState: "vendor=1", Flags: 0x301, Attributes: []keyValue{{"why", anyValue{BoolValue: &yes}}}}},
	}
	if diff := cmp.Diff([]span{wantInner, wantOuter}, []span{innerSpan, outerSpan}); diff != "" {
		t.Error(diff)
	}
	if innerSpan.StartTimeUnixNano == 0 || innerSpan.EndTimeUnixNano < innerSpan.StartTimeUnixNano {
		t.Errorf("the inner span is from %d to %d", innerSpan.StartTimeUnixNano, innerSpan.EndTimeUnixNano)
	}
}

// everyKind is an attribute of every kind, and everyKindSent what a collector gets.
func everyKind() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("s", "a\nb"), attribute.Int64("i", math.MinInt64), attribute.Float64("f", 0.25),
		attribute.Float64("nan", math.NaN()), attribute.Float64Slice("inf", []float64{math.Inf(1), math.Inf(-1)}),
		attribute.BoolSlice("bs", []bool{false}), attribute.Int64Slice("is", []int64{math.MaxInt64}), attribute.StringSlice("ss", nil),
		{Key: "bytes", Value: attribute.ByteSliceValue([]byte{0, 255})},
		{Key: "list", Value: attribute.SliceValue(attribute.StringValue("x"), attribute.Int64Value(1))},
		{Key: "map", Value: attribute.MapValue(attribute.String("k", "v"))},
	}
}

func everyKindSent() []keyValue {
	no := false
	return []keyValue{
		{"s", text("a\nb")},
		{"i", number(math.MinInt64)},
		{"f", anyValue{DoubleValue: 0.25}},
		{"nan", anyValue{DoubleValue: "NaN"}},
		{"inf", anyValue{ArrayValue: &values{[]anyValue{{DoubleValue: "Infinity"}, {DoubleValue: "-Infinity"}}}}},
		{"bs", anyValue{ArrayValue: &values{[]anyValue{{BoolValue: &no}}}}},
		{"is", anyValue{ArrayValue: &values{[]anyValue{number(math.MaxInt64)}}}},
		{"ss", anyValue{ArrayValue: &values{[]anyValue{}}}},
		{"bytes", anyValue{BytesValue: []byte{0, 255}}},
		{"list", anyValue{ArrayValue: &values{[]anyValue{text("x"), number(1)}}}},
		{"map", anyValue{KvlistValue: &keyList{[]keyValue{{"k", text("v")}}}}},
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
	for _, rejected := range []string{`"7"`, `7`} { // some collectors do not write 64 bits as text
		address, uploads = collector(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":`+rejected+`,"errorMessage":"too old"}}`)
		})
		if log := send(t, address); !strings.Contains(log, "did not take 7 spans") || !strings.Contains(log, "too old") || len(uploads) != 1 {
			t.Errorf("there were %d requests, and the log is %s", len(uploads), log)
		}
	}
	// What is accepted as a whole is no loss, however the collector says so.
	for contentType, answer := range map[string]string{
		"application/json": `{"partialSuccess":{}}`, "application/json;v=1": ``, "text/plain": `{"partialSuccess":{"rejectedSpans":"7"}}`,
	} {
		address, uploads = collector(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, answer)
		})
		if log := send(t, address); log != "" || len(uploads) != 1 {
			t.Errorf("there were %d requests, and the log is %s", len(uploads), log)
		}
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
		_, err := telemetry.Start(telemetry.Options{LogTo: io.Discard, OTLPEndpoint: endpoint, Redactor: redact.New()})
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
