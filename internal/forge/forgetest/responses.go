package forgetest

import (
	"io"
	"net/http"
	"strings"
)

// Responses answers requests in place of a forge, with JSON.
type Responses func(r *http.Request) (status int, body string)

// RoundTrip implements [http.RoundTripper].
func (a Responses) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := a(r)
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}
