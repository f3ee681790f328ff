package agent_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// That a real server takes the agent in is shown in package app; this is about
// who may not be one.
func TestCheckInWantsAnAgentsToken(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]task.Code{"agent": "", "viewer": task.Forbidden, "admin": task.Forbidden} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"name":"n","role":%q,"version":"v"}`, role)
		}))
		a := agent.Agent{Client: &wire.Client{Server: web.URL, HTTP: web.Client()}, Log: slog.New(slog.DiscardHandler)}
		if _, err := a.CheckIn(t.Context()); task.CodeOf(err) != want {
			t.Errorf("with the token of a %s: %v", role, err)
		}
		web.Close()
	}
}
