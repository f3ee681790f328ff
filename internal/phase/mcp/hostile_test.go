package mcp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toryo-dev/toryo/internal/phase/mcp"
)

// serving is a server over HTTP.
func serving(t *testing.T, server *sdk.Server) mcp.Server {
	t.Helper()
	listening := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(listening.Close)
	return mcp.Server{Name: "many", URL: listening.URL}
}

// A server with very many tools, or with huge ones, does not fill the prompt.
func TestManyAndHugeTools(t *testing.T) {
	t.Parallel()
	server := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	properties := map[string]any{}
	for i := range 300 {
		properties[fmt.Sprintf("property_%d", i)] = map[string]any{"type": "string", "description": "a long one"}
	}
	for i := range 200 {
		server.AddTool(&sdk.Tool{Name: fmt.Sprintf("tool%03d", i), InputSchema: map[string]any{"type": "object", "properties": properties}},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return nil, nil })
	}
	connections, err := connect(t, serving(t, server))
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, one := range connections.Tools() {
		size += len(one.Definition().Schema) + len(one.Definition().Description)
	}
	if count := len(connections.Tools()); count != 100 || size > 200_000 {
		t.Errorf("the model is given %d tools of %d bytes", count, size)
	}
}

// A server that sends without end is given up, and one that leads elsewhere does not
// take its secret headers there.
func TestServersWithoutEndOrElsewhere(t *testing.T) {
	t.Parallel()
	var leaked atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked.Store(leaked.Load() || r.Header.Get("Authorization") != "")
	}))
	t.Cleanup(elsewhere.Close)
	leading := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(leading.Close)
	var sent atomic.Int64
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		piece := strings.Repeat(" ", 1<<20)
		for range 200 {
			n, err := io.WriteString(w, piece)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(endless.Close)
	headers := map[string]string{"Authorization": "Bearer hunter2"}
	_, err := connect(t, mcp.Server{Name: "leading", URL: leading.URL, Headers: headers}, mcp.Server{Name: "endless", URL: endless.URL, Headers: headers})
	if err == nil || !strings.Contains(err.Error(), "leading") || !strings.Contains(err.Error(), "endless") {
		t.Errorf("both are taken: %v", err)
	}
	if leaked.Load() {
		t.Error("the headers of one server reach another")
	}
	if sent.Load() > 100<<20 {
		t.Errorf("%d MB were read", sent.Load()>>20)
	}
}
