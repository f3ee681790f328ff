package forgetest

import (
	"io"
	"net/http"
	"strings"
)

// Answers answers requests in place of a forge, with JSON.
type Answers func(r *http.Request) (status int, body string)

// RoundTrip implements [http.RoundTripper].
func (a Answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := a(r)
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}
