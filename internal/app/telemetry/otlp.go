package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	// tracesPath is where a collector takes traces if its address has no path.
	tracesPath = "/v1/traces"
	protobuf   = "application/x-protobuf"
	// tryTime is how long one request may take, uploadTime all tries of a batch.
	tryTime    = 10 * time.Second
	uploadTime = time.Minute
	// largestAnswer is how much of a collector's answer is read.
	largestAnswer = 64 << 10
)

// collector sends traces by OTLP over HTTP. OpenTelemetry's own client for that
// also brings gRPC, which this program has no other use for and which makes the
// linker keep every method.
type collector struct {
	address string
	headers http.Header
	client  *http.Client
}

var _ otlptrace.Client = (*collector)(nil)

func newCollector(endpoint string) (*collector, error) {
	address, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("parse the collector's address: %w", err)
	}
	if (address.Scheme != "http" && address.Scheme != "https") || address.Host == "" {
		return nil, fmt.Errorf("%q is no http or https URL", endpoint)
	}
	if strings.Trim(address.Path, "/") == "" {
		address.Path = tracesPath
	}
	headers, err := headersFromEnvironment()
	if err != nil {
		return nil, err
	}
	headers.Set("Content-Type", protobuf)
	return &collector{address: address.String(), headers: headers, client: &http.Client{
		Timeout: tryTime,
		// No redirect is followed: a key in a header would go along to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// headersFromEnvironment reads the variables that OpenTelemetry has for headers,
// in which collectors of others take their keys: name=value, separated by commas
// and percent-encoded.
func headersFromEnvironment() (http.Header, error) {
	headers := http.Header{}
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for pair := range strings.SplitSeq(os.Getenv(variable), ",") {
			if strings.TrimSpace(pair) == "" {
				continue
			}
			name, value, found := strings.Cut(pair, "=")
			value, err := url.PathUnescape(strings.TrimSpace(value))
			if !found || err != nil {
				return nil, fmt.Errorf("%s is not of the form name=value,name=value", variable) // without the value: it may be a key
			}
			headers.Set(strings.TrimSpace(name), value)
		}
	}
	return headers, nil
}

// Start implements [otlptrace.Client]. It makes no connection.
func (*collector) Start(context.Context) error { return nil }

// Stop implements [otlptrace.Client].
func (c *collector) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces implements [otlptrace.Client]. What a collector cannot take now is
// sent again, as long as the protocol says so.
func (c *collector) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// On the wire, a request to export is the same as this message.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode traces: %w", err)
	}
	_, err = backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, c.post(ctx, body) },
		backoff.WithMaxElapsedTime(uploadTime))
	return err
}

func (c *collector) post(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(fmt.Errorf("send traces: %w", err))
	}
	request.Header = c.headers.Clone()
	response, err := c.client.Do(request)
	if err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, largestAnswer))
	if err != nil {
		return fmt.Errorf("read the collector's answer: %w", err)
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
			return backoff.RetryAfter(seconds)
		}
		return fmt.Errorf("send traces: the collector says %s", response.Status)
	}
	if response.StatusCode/100 != 2 {
		return backoff.Permanent(fmt.Errorf("send traces: the collector says %s: %.200q", response.Status, answer))
	}
	if response.Header.Get("Content-Type") != protobuf {
		return nil
	}
	if rejected, reason := partialSuccess(answer); rejected > 0 {
		return backoff.Permanent(fmt.Errorf("the collector did not take %d spans: %.200q", rejected, reason))
	}
	return nil
}

// partialSuccess reads how many spans an answer rejects, and why: they are the
// fields 1 and 2 of its field 1. The package that has the type brings gRPC.
func partialSuccess(answer []byte) (rejected uint64, reason string) {
	eachField(answer, 1, func(partial []byte, _ uint64) {
		eachField(partial, 1, func(_ []byte, number uint64) { rejected = number })
		eachField(partial, 2, func(text []byte, _ uint64) { reason = string(text) })
	})
	return rejected, reason
}

// eachField calls found with each value of one field of a protobuf message. It
// stops where the message is not one.
func eachField(message []byte, field protowire.Number, found func(text []byte, number uint64)) {
	for len(message) > 0 {
		number, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			return
		}
		message = message[length:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return
		}
		if number == field {
			text, _ := protowire.ConsumeBytes(message)
			value, _ := protowire.ConsumeVarint(message)
			found(text, value)
		}
		message = message[size:]
	}
}
