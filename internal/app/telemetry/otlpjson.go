package telemetry

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The types below are the messages of OTLP in its JSON encoding: names in camel case,
// ids in hexadecimal, numbers of 64 bits as text, enumerations as numbers.
type (
	exportRequest struct {
		ResourceSpans []*resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   attributes    `json:"resource"`
		ScopeSpans []*scopeSpans `json:"scopeSpans"`
		SchemaURL  string        `json:"schemaUrl,omitempty"`
	}
	attributes struct {
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	scopeSpans struct {
		Scope     scope  `json:"scope"`
		Spans     []span `json:"spans"`
		SchemaURL string `json:"schemaUrl,omitempty"`
	}
	scope struct {
		Name       string     `json:"name,omitempty"`
		Version    string     `json:"version,omitempty"`
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	span struct {
		TraceID           trace.TraceID `json:"traceId"` // as text, both kinds of ids are hexadecimal
		SpanID            trace.SpanID  `json:"spanId"`
		TraceState        string        `json:"traceState,omitempty"`
		ParentSpanID      string        `json:"parentSpanId,omitempty"`
		Flags             uint32        `json:"flags"`
		Name              string        `json:"name"`
		Kind              int           `json:"kind"`
		Start             nanoseconds   `json:"startTimeUnixNano"`
		End               nanoseconds   `json:"endTimeUnixNano"`
		Attributes        []keyValue    `json:"attributes,omitempty"`
		DroppedAttributes int           `json:"droppedAttributesCount,omitempty"`
		Events            []event       `json:"events,omitempty"`
		DroppedEvents     int           `json:"droppedEventsCount,omitempty"`
		Links             []link        `json:"links,omitempty"`
		DroppedLinks      int           `json:"droppedLinksCount,omitempty"`
		Status            status        `json:"status"`
	}
	event struct {
		Time              nanoseconds `json:"timeUnixNano"`
		Name              string      `json:"name"`
		Attributes        []keyValue  `json:"attributes,omitempty"`
		DroppedAttributes int         `json:"droppedAttributesCount,omitempty"`
	}
	link struct {
		TraceID           trace.TraceID `json:"traceId"`
		SpanID            trace.SpanID  `json:"spanId"`
		TraceState        string        `json:"traceState,omitempty"`
		Attributes        []keyValue    `json:"attributes,omitempty"`
		DroppedAttributes int           `json:"droppedAttributesCount,omitempty"`
		Flags             uint32        `json:"flags"`
	}
	status struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	keyValue struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"` // one key, which names the kind of value, or none
	}
	// exportResponse is the answer of a collector. The number is text by the
	// specification; a collector that writes it as a number is understood too.
	exportResponse struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"`
			ErrorMessage  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
)

// nanoseconds is a time as OTLP has it.
type nanoseconds time.Time

// MarshalJSON implements [json.Marshaler].
func (n nanoseconds) MarshalJSON() ([]byte, error) {
	return []byte(`"` + strconv.FormatInt(max(0, time.Time(n).UnixNano()), 10) + `"`), nil
}

// Bits of a span's flags: whether it is known where the parent is, and whether that is
// another process.
const (
	parentIsKnown  = 0x100
	parentIsRemote = 0x200
)

// kinds and statuses are the numbers that OTLP has for the SDK's.
var (
	kinds = map[trace.SpanKind]int{
		trace.SpanKindInternal: 1, trace.SpanKindServer: 2, trace.SpanKindClient: 3, trace.SpanKindProducer: 4, trace.SpanKindConsumer: 5,
	}
	statuses = map[codes.Code]int{codes.Ok: 1, codes.Error: 2}
)

// encode makes the body of a request to export spans.
func encode(spans []sdktrace.ReadOnlySpan) ([]byte, error) {
	type place struct {
		resource attribute.Distinct
		scope    instrumentation.Scope
	}
	var request exportRequest
	resources, scopes := make(map[attribute.Distinct]*resourceSpans), make(map[place]*scopeSpans)
	for _, one := range spans {
		in := place{one.Resource().Equivalent(), one.InstrumentationScope()}
		ofResource := resources[in.resource]
		if ofResource == nil {
			ofResource = &resourceSpans{Resource: attributes{keyValues(one.Resource().Attributes())}, SchemaURL: one.Resource().SchemaURL()}
			resources[in.resource] = ofResource
			request.ResourceSpans = append(request.ResourceSpans, ofResource)
		}
		ofScope := scopes[in]
		if ofScope == nil {
			ofScope = &scopeSpans{
				Scope:     scope{in.scope.Name, in.scope.Version, keyValues(in.scope.Attributes.ToSlice())},
				SchemaURL: in.scope.SchemaURL,
			}
			scopes[in] = ofScope
			ofResource.ScopeSpans = append(ofResource.ScopeSpans, ofScope)
		}
		ofScope.Spans = append(ofScope.Spans, encodeSpan(one))
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encode traces: %w", err)
	}
	return body, nil
}

func encodeSpan(from sdktrace.ReadOnlySpan) span {
	self := from.SpanContext()
	to := span{
		TraceID: self.TraceID(), SpanID: self.SpanID(), TraceState: self.TraceState().String(),
		Flags: flags(self, from.Parent()),
		Name:  from.Name(), Kind: kinds[from.SpanKind()],
		Start: nanoseconds(from.StartTime()), End: nanoseconds(from.EndTime()),
		Attributes: keyValues(from.Attributes()), DroppedAttributes: from.DroppedAttributes(),
		DroppedEvents: from.DroppedEvents(), DroppedLinks: from.DroppedLinks(),
		Status: status{from.Status().Description, statuses[from.Status().Code]},
	}
	if parent := from.Parent().SpanID(); parent.IsValid() {
		to.ParentSpanID = parent.String()
	}
	for _, one := range from.Events() {
		to.Events = append(to.Events, event{nanoseconds(one.Time), one.Name, keyValues(one.Attributes), one.DroppedAttributeCount})
	}
	for _, one := range from.Links() {
		other := one.SpanContext
		to.Links = append(to.Links, link{
			other.TraceID(), other.SpanID(), other.TraceState().String(),
			keyValues(one.Attributes), one.DroppedAttributeCount, flags(other, other),
		})
	}
	return to
}

// flags are those of a span, and where its parent is; of a link, where the other span is.
func flags(of, parent trace.SpanContext) uint32 {
	all := uint32(of.TraceFlags()) | parentIsKnown
	if parent.IsRemote() {
		all |= parentIsRemote
	}
	return all
}

func keyValues(from []attribute.KeyValue) []keyValue {
	to := make([]keyValue, len(from))
	for i, one := range from {
		to[i] = keyValue{string(one.Key), value(one.Value)}
	}
	return to
}

// value is an attribute's value under the name of its kind.
func value(from attribute.Value) map[string]any {
	switch from.Type() {
	case attribute.EMPTY:
		return map[string]any{}
	case attribute.BOOL:
		return map[string]any{"boolValue": from.AsBool()}
	case attribute.INT64:
		return map[string]any{"intValue": strconv.FormatInt(from.AsInt64(), 10)}
	case attribute.FLOAT64:
		return map[string]any{"doubleValue": double(from.AsFloat64())}
	case attribute.STRING:
		return map[string]any{"stringValue": from.AsString()}
	case attribute.BYTESLICE:
		return map[string]any{"bytesValue": base64.StdEncoding.EncodeToString(from.AsByteSlice())}
	case attribute.BOOLSLICE:
		return array(from.AsBoolSlice(), attribute.BoolValue)
	case attribute.INT64SLICE:
		return array(from.AsInt64Slice(), attribute.Int64Value)
	case attribute.FLOAT64SLICE:
		return array(from.AsFloat64Slice(), attribute.Float64Value)
	case attribute.STRINGSLICE:
		return array(from.AsStringSlice(), attribute.StringValue)
	case attribute.SLICE:
		return array(from.AsSlice(), func(one attribute.Value) attribute.Value { return one })
	case attribute.MAP:
		return map[string]any{"kvlistValue": map[string]any{"values": keyValues(from.AsMap())}}
	default: // a kind that a later version of the SDK has
		return map[string]any{"stringValue": from.String()}
	}
}

func array[T any](from []T, of func(T) attribute.Value) map[string]any {
	values := make([]map[string]any, len(from))
	for i, one := range from {
		values[i] = value(of(one))
	}
	return map[string]any{"arrayValue": map[string]any{"values": values}}
}

// double is a number, or the text that stands for one that JSON does not have.
func double(number float64) any {
	switch {
	case math.IsNaN(number):
		return "NaN"
	case math.IsInf(number, 1):
		return "Infinity"
	case math.IsInf(number, -1):
		return "-Infinity"
	}
	return number
}
