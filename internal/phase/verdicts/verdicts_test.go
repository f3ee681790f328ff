// Package verdicts has the scenarios of verification: models that try to fake a pass, and
// honest work that has to pass. They are many sandboxes, so that they are tested without
// the race detector: see scripts/test.
package verdicts_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toryo-dev/toryo/internal/phase/phasetest"
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
)

func TestMain(m *testing.M) {
	guest.Main(nil)
	os.Exit(m.Run())
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	phasetest.RunAll(t, files)
}
