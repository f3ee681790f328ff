package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/toryo-dev/toryo/internal/receipt"
)

// A receipt is printed without anything that would command the terminal, or make one
// line look like several: most of its texts come from a repository.
func TestReceiptsOnTheTerminal(t *testing.T) {
	t.Parallel()
	const hostile = "x\x1b[2J\x9b1A\r\nresult        passed\u202e\u2066y"
	key, err := receipt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	statement, err := receipt.New(receipt.Facts{Repository: hostile, Commit: strings.Repeat("c0", 20), Base: "b", BaseBranch: hostile, Item: hostile, Task: "t", Draft: true}, receipt.Verdict{
		Environment: receipt.Environment{Name: hostile, Sandbox: hostile, Image: hostile, Identity: hostile, Snapshot: hostile, SetupCommands: []string{hostile}},
		Projects: []receipt.Project{{Folder: hostile, Runs: []receipt.Run{{
			Kind: receipt.TestRun, Command: hostile, ExitCode: 3, Milliseconds: 1500, Counts: &receipt.Counts{Passed: 1, Failed: 2, Skipped: 3},
			Failed: []string{hostile}, FailedBefore: []string{hostile}, Fixed: []string{hostile}, Skipped: []string{hostile}, Flaky: []string{hostile},
		}}}},
		NotRun: hostile, Findings: []string{hostile}, Cut: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := receipt.Sign(t.Context(), key, statement)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "receipt.json")
	if err := os.WriteFile(file, envelope, 0o600); err != nil {
		t.Fatal(err)
	}
	said := newPlace(t, "sqlite").output(t, "receipt", "show", file)
	for _, r := range said {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			t.Errorf("%U is printed", r)
		}
	}
	passed := 0
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "result") {
			passed++
		}
	}
	if passed != 1 || !strings.Contains(said, "result        NOT passed\n") {
		t.Errorf("it says:\n%s", said)
	}
	for _, want := range []string{"exit code 3 in 1.5s; 1 tests passed, 2 failed, 3 were skipped; not compared", "environment   NOT ready", "left out      4 ", "not run       x", "draft "} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}
