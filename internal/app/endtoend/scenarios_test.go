package endtoend

import (
	"path/filepath"
	"strings"
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
	for _, scenario := range load(t, "../../phase/testdata/scenarios/*.txtar") {
		t.Run(scenario.Name, func(t *testing.T) {
			t.Parallel()
			h.tell(t, board, scenario)
		})
	}
}
