package phase_test

import (
	"os"
	"path/filepath"
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
// run there: see package endtoend. Package verdicts has those of verification.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/inside/*.txtar")
	files = append(files, "testdata/scenarios/shell.txtar", "testdata/scenarios/comments.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	phasetest.RunAll(t, files)
}
