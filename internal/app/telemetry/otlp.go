package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// tracesPath is where a collector takes traces if its address has no path.
	tracesPath = "/v1/traces"
	mediaType  = "application/json"
	// tryTime is how long one request may take, uploadTime all tries of a batch.
	tryTime    = 10 * time.Second
	uploadTime = time.Minute
	// largestAnswer is how much of a collector's answer is read.
	largestAnswer = 64 << 10
)

// collector sends traces by OTLP over HTTP, in its JSON encoding. OpenTelemetry's own
// exporter for that brings gRPC and protobuf, which this program has no other use for.
type collector struct {
	address string
	headers http.Header
	client  *http.Client
}

var _ sdktrace.SpanExporter = (*collector)(nil)

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
	headers.Set("Content-Type", mediaType)
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

// Shutdown implements [sdktrace.SpanExporter].
func (c *collector) Shutdown(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// ExportSpans implements [sdktrace.SpanExporter]. What a collector cannot take now is
// sent again, as long as the protocol says so.
func (c *collector) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	body, err := encode(spans)
	if err != nil {
		return err
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
			return backoff.RetryAfter(min(seconds, int(uploadTime.Seconds())))
		}
		return fmt.Errorf("send traces: the collector says %s", response.Status)
	}
	if response.StatusCode/100 != 2 {
		return backoff.Permanent(fmt.Errorf("send traces: the collector says %s: %.200q", response.Status, answer))
	}
	return rejection(response.Header.Get("Content-Type"), answer)
}

// rejection reads from the answer to a request that was accepted whether some of its
// spans were not. Collectors that answer with something else have nothing to say.
func rejection(contentType string, answer []byte) error {
	var said exportResponse
	if kind, _, err := mime.ParseMediaType(contentType); err != nil || kind != mediaType {
		return nil //nolint:nilerr // see above
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return nil //nolint:nilerr // see above
	}
	partial := said.PartialSuccess
	if rejected, err := partial.RejectedSpans.Int64(); err == nil && rejected > 0 {
		return backoff.Permanent(fmt.Errorf("the collector did not take %d spans: %.200q", rejected, partial.ErrorMessage))
	}
	return nil
}
