package environment_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// A project may have pipes and large files where manifests and lock files are
// looked for.
//
//nolint:paralleltest // it measures memory
func TestManifestsThatAreNone(t *testing.T) {
	b := newBench(t)
	b.Snapshots = 1 << 30
	b.engine.results["check"] = []any{printed("OK")}
	for _, name := range []string{"pyproject.toml", "go.mod", ".tool-versions", "Makefile"} {
		if err := syscall.Mkfifo(filepath.Join(b.dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"package-lock.json", "package.json", "poetry.lock", "requirements.txt"} {
		at := filepath.Join(b.dir, name)
		if err := errors.Join(os.WriteFile(at, nil, 0o600), os.Truncate(at, 700<<20)); err != nil {
			t.Fatal(err)
		}
	}
	taken := testkit.MemoryTaken(t, func() {
		if outcome := b.run(t, plan); outcome.Result.OverallStatus != environment.Succeeded {
			t.Errorf("the set-up came to %+v", outcome.Result)
		}
	})
	if taken > 64<<20 {
		t.Errorf("it took %d MB", taken>>20)
	}
	if len(b.engine.kept) != 0 {
		t.Errorf("a snapshot was kept by lock files that were not read: %v", b.engine.kept)
	}
}
