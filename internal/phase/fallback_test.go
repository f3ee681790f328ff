package phase_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/anthropic"
	"github.com/toryo-dev/toryo/internal/phase"
	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/task"
)

// A run whose model is down is done by the fallback, and its journal says so once: which model, in
// place of which, why and since when.
func TestARunIsDoneByTheFallback(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "account 4711 is out of capacity", http.StatusServiceUnavailable)
	}))
	t.Cleanup(down.Close)
	scenario, err := phasetest.Load("testdata/scenarios/shell.txtar")
	if err != nil {
		t.Fatal(err)
	}
	world := phasetest.New(t, phasetest.Engine(t), scenario)
	var outages llm.Outages
	world.Adjust = func(options *phase.Options) {
		first, second := anthropic.New(llm.Endpoint{Model: "large", BaseURL: down.URL, Key: "k"}), options.Model
		options.Model = func(of task.Phase) llm.Model {
			return llm.WithFallback(llm.Fallback{First: first, Probe: first, Second: second(of), Server: "large", Outages: &outages})
		}
	}
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	world.Check()
	journal := world.Journal()
	if count := strings.Count(journal, "answers in place of anthropic large, which is out since 20"); count != 1 || asked.Load() != 1 {
		t.Errorf("it is said %d times after %d calls:\n%s", count, asked.Load(), journal)
	}
	if !strings.Contains(journal, "the model provider anthropic is overloaded (status 503)") || strings.Contains(journal, "4711") {
		t.Errorf("the reason is not there, or has the words of the provider:\n%s", journal)
	}
}
