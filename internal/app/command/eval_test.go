package command

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/evaluation"
	"github.com/toryo-dev/toryo/internal/app/site"
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

// A provider that the command line names needs no section in the configuration: its key is in
// the variable of the provider's own programs.
func TestKeyOfANamedModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, set, out := filepath.Join(dir, "toryo.yaml"), filepath.Join(dir, "tasks.jsonl"), filepath.Join(dir, "out")
	row := `{"instance_id": "a", "repo": "a/b", "base_commit": "` + strings.Repeat("1", 40) + `", "problem_statement": "x", "patch": "diff --git a/x b/x\n", "test_patch": "diff --git a/y b/y\n"}`
	for name, text := range map[string]string{file: "llm:\n  provider: anthropic\n  model: large\n", set: row + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	eval := func(environ ...string) error {
		command := Eval(site.Program{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Environ: append(environ, "TORYO_LLM_API_KEY=first-key-of-all"), Now: time.Now})
		command.SetArgs([]string{set, "--config", file, "--data", filepath.Join(dir, "data"), "--out", out, "--model", "openai:some-model", "--sandbox", "landlock"})
		command.SetOut(io.Discard)
		command.SetErr(io.Discard)
		return command.ExecuteContext(t.Context())
	}
	if err := eval("ANTHROPIC_API_KEY=other"); err == nil || !strings.Contains(err.Error(), "no key is set") {
		t.Errorf("without a key: %v", err)
	}
	if err := eval("OPENAI_API_KEY=sesame-open"); err == nil || strings.Contains(err.Error(), "no key is set") {
		t.Errorf("with a key: %v", err) // the sandbox is too weak
	}
	if plan, err := os.ReadFile(filepath.Join(out, "evaluation.json")); err != nil || !strings.Contains(string(plan), "openai:some-model") {
		t.Errorf("the evaluation did not begin: %v, %s", err, plan)
	}
	c := evaluation.WithKeys(config.Config{}, []string{"OPENAI_API_KEY=sesame-open"}, []string{"openai:some-model"})
	if text := c.Redactor().String("the key is sesame-open"); strings.Contains(text, "sesame") {
		t.Error(text)
	}
}
