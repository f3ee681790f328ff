package site

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// imagesOnly is an engine that works, but has only some images.
type imagesOnly struct {
	sandbox.Engine

	box     sandbox.Sandbox // what Start returns; nil means one that can be stopped
	missing map[string]bool
	started []sandbox.Spec
}

func (*imagesOnly) Check(context.Context) error { return nil }

func (e *imagesOnly) Start(_ context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	e.started = append(e.started, spec)
	if e.missing[spec.Image] {
		return nil, task.Errorf(task.NotReady, "toomanyrequests")
	}
	if e.box != nil {
		return e.box, nil
	}
	return stopped{}, nil
}

type stopped struct{ sandbox.Sandbox }

func (stopped) Stop(context.Context) error { return nil }

// When a sandbox did not start, one with the image of the configuration is tried, with the network
// and the limits of runs. Only if that does not start either can the agent do no task.
func TestImageOfOneTaskTakesNoAgentOut(t *testing.T) {
	t.Parallel()
	var c config.Config
	c.Executors.Image, c.Sandbox.Network.Setup, c.Sandbox.PIDs = "ours", "registries", 7
	doubt := agent.UnableOf(sandbox.StartError(task.Errorf(task.NotReady, "toomanyrequests")))
	engine := &imagesOnly{missing: map[string]bool{"theirs": true}}
	check := newCheckup(c, engine, "owner", []string{t.TempDir()}, slog.New(slog.DiscardHandler))
	check.models = nil
	if err := check.check(t.Context(), doubt); err != nil {
		t.Errorf("with an image that works: %v", err)
	}
	if len(engine.started) != 1 || engine.started[0].Image != "ours" || engine.started[0].Network != "registries" || engine.started[0].Limits.Processes != 7 {
		t.Errorf("started were %+v", engine.started)
	}
	engine.missing["ours"] = true
	if unable := agent.UnableOf(check.check(t.Context(), doubt)); unable == nil || unable.Partial || unable.Reason != task.ReasonNoSandbox {
		t.Errorf("with no image that works: %+v", unable)
	}
}

// unstoppable is a sandbox that does not end.
type unstoppable struct{ sandbox.Sandbox }

func (unstoppable) Stop(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return task.Errorf(task.NotReady, "it waits for ever")
	}
	return context.DeadlineExceeded
}

// A sandbox that has started shows that sandboxes can be started. That it does not end keeps no
// check from ending, and takes no agent out.
func TestSandboxOfACheckThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	check := newCheckup(config.Config{}, &imagesOnly{box: unstoppable{}}, "owner", []string{t.TempDir()}, slog.New(slog.NewTextHandler(&log, nil)))
	if err := check.start(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(checkFolder(check.folders[0])); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if !strings.Contains(log.String(), context.DeadlineExceeded.Error()) {
		t.Errorf("logged was %q", log.String())
	}
}

// What a process that was killed has left of a check is removed by the next one.
func TestWorkspacesOfChecksAreSwept(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := sweepChecks(folder); err != nil {
		t.Errorf("where there are none: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(checkFolder(folder), "check-1", "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := sweepChecks(folder); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// A model that only one role has does not take the agent out. Only the model in doubt is asked.
func TestModelOfOneRoleTakesNoAgentOut(t *testing.T) {
	t.Parallel()
	asked, rejected := "", ""
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, name := range []string{"general", "special"} {
			if !strings.Contains(string(body), name) {
				continue
			}
			asked += name + " "
			if name == rejected {
				http.Error(w, `{"error": {"message": "bad key"}}`, http.StatusUnauthorized)
				return
			}
		}
		http.Error(w, `{"error": {"message": "no text"}}`, http.StatusBadRequest) // which is no matter of the agent
	}))
	defer provider.Close()
	var c config.Config
	c.LLM = config.LLM{Provider: "openai", Model: "general", BaseURL: provider.URL, APIKey: "key", API: "chat"}
	c.Roles = map[string]config.Role{"frontend": {ModelOverride: config.ModelOverride{Model: "special", APIKey: "key"}}}
	check := newCheckup(c, new(imagesOnly), "owner", []string{t.TempDir()}, slog.New(slog.DiscardHandler))
	special := &agent.UnableError{Reason: task.ReasonKeyRejected, Provider: "openai", Model: "special"}
	general := &agent.UnableError{Reason: task.ReasonKeyRejected, Provider: "openai", Model: "general"}
	for _, is := range []struct {
		rejected     string
		doubt        *agent.UnableError
		asked        string
		out, partial bool
	}{
		{"special", nil, "general special ", false, false},
		{"special", special, "special ", false, true},
		{"special", general, "general ", false, false},
		{"general", nil, "general ", true, false},
		{"general", general, "general ", true, false},
	} {
		asked, rejected = "", is.rejected
		unable := agent.UnableOf(check.check(t.Context(), is.doubt))
		if asked != is.asked || (unable != nil) != (is.out || is.partial) || unable != nil && unable.Partial != is.partial {
			t.Errorf("with %s rejected and %+v in doubt, asked were %q, and it found %+v", is.rejected, is.doubt, asked, unable)
		}
	}
}
