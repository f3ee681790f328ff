package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/report"
	"github.com/toryo-dev/toryo/internal/task"
)

// Folders and models may have an @ in their names.
func TestResultsToCompare(t *testing.T) {
	t.Parallel()
	one := filepath.Join(t.TempDir(), "me@home")
	two := filepath.Join(t.TempDir(), "both")
	for folder, models := range map[string][]string{one: {"m"}, two: {"m", "vendor@m"}} {
		if err := os.Mkdir(folder, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := report.Write(eval.Folder(folder), eval.Results{Models: models}); err != nil {
			t.Fatal(err)
		}
	}
	for arg, want := range map[string]string{one: "m", one + "@m": "m", two + "@m": "m", two + "@vendor@m": "vendor@m"} {
		if _, model, err := resultsOf(arg); err != nil || model != want {
			t.Errorf("%s: %q, %v", arg, model, err)
		}
	}
	for arg, want := range map[string]task.Code{two: task.Usage, two + "@x": task.NotFound, one + "-gone@m": task.NotFound} {
		if _, _, err := resultsOf(arg); task.CodeOf(err) != want {
			t.Errorf("%s: %v", arg, err)
		}
	}
}
