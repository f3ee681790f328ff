package doctor_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// toryoAt is a server that knows the tokens of an agent and of a viewer.
func toryoAt(w http.ResponseWriter, r *http.Request) {
	roles := map[string]string{"Bearer agent-token": "agent", "Bearer viewer-token": "viewer"}
	role, known := roles[r.Header.Get("Authorization")]
	answer := any(wire.Me{Name: "laptop", Role: role, Version: "v9"})
	if !known {
		w.Header().Set("Content-Type", wire.ProblemType)
		w.WriteHeader(http.StatusUnauthorized)
		answer = wire.ProblemOf(task.Errorf(task.Unauthorized, "no valid token was given"))
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func TestServerOfAnAgent(t *testing.T) {
	t.Parallel()
	there := httptest.NewServer(http.HandlerFunc(toryoAt))
	t.Cleanup(there.Close)
	private := httptest.NewTLSServer(http.HandlerFunc(toryoAt))
	t.Cleanup(private.Close)
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, c := range map[string]struct {
		url, token string
		finding    string
		status     doctor.Status
		says       []string
	}{
		"all is well":         {there.URL, "agent-token", "token", doctor.OK, []string{"knows the agent as laptop"}},
		"the version":         {there.URL, "agent-token", "server", doctor.OK, []string{"answers at " + there.URL, "v9"}},
		"no token":            {there.URL, "", "token", doctor.Missing, []string{"has not enrolled", "toryo agent token create"}},
		"a revoked token":     {there.URL, "old-token", "token", doctor.Missing, []string{"does not accept it", "revoked", "remove data/agent/token"}},
		"another role":        {there.URL, "viewer-token", "token", doctor.Missing, []string{"role viewer", "role agent"}},
		"nobody listens":      {closed.URL, "agent-token", "server", doctor.Missing, []string{"does not answer at " + closed.URL, "connection refused", "agent.server"}},
		"a private CA":        {private.URL, "agent-token", "server", doctor.Missing, []string{"authority that this machine does not know", "agent.ca_file"}},
		"something else":      {other.URL, "agent-token", "server", doctor.Missing, []string{"is this a Toryo server?"}},
		"not even an address": {"http://a b", "agent-token", "server", doctor.Missing, []string{"address is not valid"}},
	} {
		client := &wire.Client{Server: c.url, Token: c.token, HTTP: new(http.Client)}
		got := doctor.AgentServer(doctor.AgentAccess{Server: c.url, HasToken: c.token != "", TokenFile: "data/agent/token", Me: client.Me})(t.Context())
		found := false
		for _, finding := range got {
			said := finding.Found + " → " + finding.Hint
			if finding.Name != c.finding || finding.Status != c.status || strings.Contains(said+finding.Command, "-token") {
				continue
			}
			found = true
			for _, part := range c.says {
				if !strings.Contains(said, part) {
					t.Errorf("%s: %q is missing in %+v", name, part, finding)
				}
			}
		}
		if !found {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// A token of the configuration is not gone when the agent's file is.
	for _, token := range []string{"old-token", "viewer-token"} {
		client := &wire.Client{Server: there.URL, Token: token, HTTP: new(http.Client)}
		given := doctor.AgentAccess{Server: there.URL, HasToken: true, TokenFile: "data/agent/token", Configured: "agent.token_file (/run/secrets/agent)", Me: client.Me}
		got := doctor.AgentServer(given)(t.Context())
		want(t, got, "token", doctor.Missing, "remove agent.token_file (/run/secrets/agent), which is used in place of", "data/agent/token", "toryo agent token create")
		if strings.Contains(got[len(got)-1].Hint, "remove data/agent/token") {
			t.Errorf("%s: %+v", token, got)
		}
	}
	unreadable := doctor.AgentAccess{Problem: task.Wrap(task.DataDir, errors.New("permission denied"), "the agent's token cannot be read")}
	if got := doctor.AgentServer(unreadable)(t.Context()); len(got) != 1 || got[0].Status != doctor.Missing || !strings.Contains(got[0].Found, "permission denied") {
		t.Errorf("without a token that can be read: %+v", got)
	}
}

// A check that hangs is cut off by its context, and that is a finding.
func TestServerThatHangs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	client := &wire.Client{Server: "http://127.0.0.1:1", HTTP: new(http.Client)}
	if got := doctor.AgentServer(doctor.AgentAccess{Me: client.Me})(ctx); len(got) != 1 || got[0].Status != doctor.Missing {
		t.Errorf("found %+v", got)
	}
}

// An agent does nothing without a model; a server alone does without.
func TestModelIsNeededByAgents(t *testing.T) {
	t.Parallel()
	none := doctor.Finding{Name: "model", Status: doctor.Warning, Found: "none is configured"}
	if got := doctor.NeededBy(true, none); got.Status != doctor.Missing || !strings.Contains(got.Found, "does not accept tasks") {
		t.Errorf("on the machine of an agent: %+v", got)
	}
	if got := doctor.NeededBy(false, none); !cmp.Equal(got, none) {
		t.Errorf("elsewhere: %+v", got)
	}
	if there := (doctor.Finding{Name: "model", Status: doctor.OK}); !cmp.Equal(doctor.NeededBy(true, there), there) {
		t.Error("a model that is there is not missing")
	}
}
