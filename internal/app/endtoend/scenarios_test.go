package endtoend

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase/phasetest"
)

// load reads the scenarios that the patterns name.
func load(t *testing.T, patterns ...string) []*phasetest.Scenario {
	t.Helper()
	var all []*phasetest.Scenario
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		must(t, err)
		if len(files) == 0 {
			t.Fatalf("there is nothing like %s", pattern)
		}
		for _, file := range files {
			scenario, err := phasetest.Load(file)
			must(t, err)
			scenario.Name = strings.TrimSuffix(filepath.Base(file), ".txtar")
			all = append(all, scenario)
		}
	}
	return all
}

// TestScenarios lets the scenarios happen on the board of one house.
func TestScenarios(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 4})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	h.tellAll(t, board, load(t, "../../phase/testdata/scenarios/*.txtar", "testdata/signals/*.txtar"))
}

// tellAll lets scenarios happen, several at a time, and then looks at what is only
// said when there is time.
func (h *house) tellAll(t *testing.T, at site, scenarios []*phasetest.Scenario) {
	t.Helper()
	var mutex sync.Mutex
	var told []*story
	t.Run("all", func(t *testing.T) {
		for _, scenario := range scenarios {
			t.Run(scenario.Name, func(t *testing.T) {
				t.Parallel()
				s := h.tell(t, at, scenario)
				mutex.Lock()
				defer mutex.Unlock()
				told = append(told, s)
			})
		}
	})
	for _, s := range told {
		t.Run("progress of "+s.Name, func(t *testing.T) { s.checkProgress(t) })
	}
	t.Logf("%d scenarios", len(told))
}

// TestRestarts kills servers, and agents, in the middle of things, one after the
// other: all that is in the house notices.
func TestRestarts(t *testing.T) {
	t.Parallel()
	h := build(t, plan{agents: 2})
	board, err := openBoard(t.Context(), h)
	must(t, err)
	for _, scenario := range load(t, "testdata/restarts/*.txtar") {
		t.Run(scenario.Name, func(t *testing.T) { h.tell(t, board, scenario).checkProgress(t) })
	}
}
