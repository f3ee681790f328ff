package llmtest

import (
	"context"
	"net"
	"net/http"
)

func transportTo(dial func(ctx context.Context, network, address string) (net.Conn, error)) http.RoundTripper {
	return &http.Transport{DialContext: dial}
}
