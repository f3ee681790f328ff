package sandboxtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// probeName is how the test binary is started inside, to try what a shell cannot.
const probeName = "sandbox-probe"

// Probe does nothing unless the program was started as a probe. Every adapter's
// TestMain calls it first.
func Probe() {
	if len(os.Args) < 3 || os.Args[1] != probeName {
		return
	}
	for _, what := range os.Args[2:] {
		name, argument, _ := strings.Cut(what, "=")
		fmt.Fprintf(os.Stdout, "%s: %s\n", name, probe(name, argument))
	}
	os.Exit(0) //nolint:revive // the program is a probe and nothing else
}

// probeWith puts the probe into the workspace and returns what it says of each
// thing that it tries.
func probeWith(t *testing.T, box sandbox.Sandbox, what ...string) map[string]string {
	t.Helper()
	putProbe(t, box)
	words := []string{"./" + probeFile, probeName}
	for _, word := range what {
		words = append(words, "'"+word+"'")
	}
	result := run(t, box, strings.Join(words, " "))
	said := map[string]string{}
	for line := range strings.Lines(string(result.Stdout)) {
		about, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		said[about] = text
	}
	if len(said) != len(what) {
		t.Fatalf("the probe ended with %d: %.500s", result.ExitCode, result.Log)
	}
	return said
}

// probeFile is the probe's name in the workspace.
const probeFile = "probe.test"

func putProbe(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(box.Workspace(), probeFile)); err == nil {
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(box.Workspace(), probeFile), program, 0o755); err != nil {
		t.Fatal(err)
	}
}
