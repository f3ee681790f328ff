package phase_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
)

func TestMain(m *testing.M) {
	guest.Main(nil)
	// What is in the agent's environment may be nowhere.
	if err := os.Setenv("TORYO_TEST_SECRET", "s3cr3t-of-the-host"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestScenarios runs the scenarios that need no more than a run, each from an item to
// its end, and the shortest of the others. Those are for whole installations, and are
// run there: see package endtoend.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/inside/*.txtar")
	verdicts, _ := filepath.Glob("testdata/verdict/*.txtar") // the pattern is good
	files = append(append(files, verdicts...), "testdata/scenarios/shell.txtar", "testdata/scenarios/comments.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	engine := phasetest.Engine(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			scenario, err := phasetest.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			world := phasetest.New(t, engine, scenario)
			for range max(scenario.Expect.Runs, 1) {
				if _, err := world.Run(t.Context()); err != nil && !phasetest.Crashed(err) {
					t.Fatal(err)
				}
			}
			world.Check()
		})
	}
}
