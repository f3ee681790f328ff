package eval

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/eval/source"
	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/testreport"
)

// Whatever decides how tests are run is put back, and the program itself is not.
func TestPutBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base := map[string]string{
		"lib/vendor/a/a.go": "package a\n", "app.go": "package app\n", "app_test.go": "package app\n", "go.mod": "module example.com/app\n\ngo 1.21\n\nrequire example.com/assert v1.0.0\n",
		"vendor/modules.txt": "# example.com/assert v1.0.0\n", "vendor/example.com/assert/assert.go": "package assert\n", "Makefile": "test:\n\tgo test ./...\n",
		"package.json": "{\n  \"name\": \"app\",\n  \"version\": \"1.0.0\",\n  \"scripts\": {\"test\": \"jest\"}\n}\n", "run.sh": "go test ./...\n", "allowed_test.go": "package app\n",
	}
	for name, text := range base {
		write(name, text)
	}
	git("init", "--quiet", "--initial-branch=main")
	git("add", ".")
	git("commit", "--quiet", "-m", "base")
	first := git("rev-parse", "HEAD")
	from, err := source.Strip(t.Context(), dir, first, filepath.Join(t.TempDir(), "stripped.git"))
	if err != nil {
		t.Fatal(err)
	}
	write("app.go", "package app\n\n// changed\n")
	write("new.go", "package app\n")
	write("app_test.go", "package app\n\n// changed\n")
	write("main_test.go", "package app\n\nfunc TestMain() {}\n")
	write("conftest.py", "hook\n")
	write("go.mod", base["go.mod"]+"\nreplace example.com/assert => ./fake\n")
	write("vendor/example.com/assert/assert.go", "package assert\n\n// always\n")
	write("Makefile", "test:\n\ttrue\n")
	write("package.json", "{\n  \"name\": \"app\",\n  \"version\": \"2.0.0\",\n  \"scripts\": {\"test\": \"true\"}\n}\n")
	write("run.sh", "true\n")
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "lib", "vendor")), os.Symlink("../fake", filepath.Join(dir, "lib", "vendor"))); err != nil {
		t.Fatal(err)
	}
	write("allowed_test.go", "package app\n\n// changed\n")
	git("add", ".")
	patch := git("diff", "--cached", "--binary") + "\n"
	work, err := from.Apply(t.Context(), from.Base, patch)
	if err != nil {
		t.Fatal(err)
	}
	judge, err := newJudge(t.Context(), from, taskset.Task{TestCommand: "sh run.sh"}, environment.Receipt{}, []string{"allowed_test.go"})
	if err != nil {
		t.Fatal(err)
	}
	found, err := judge.judge(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Makefile", "app_test.go", "conftest.py", "go.mod", "lib/vendor/a/a.go", "main_test.go", "package.json", "run.sh", "vendor/example.com/assert/assert.go", "lib/vendor"}
	if !slices.Equal(found.back, want) {
		t.Errorf("put back: %q", found.back)
	}
	if flags := merged(found.flags, nil); !slices.Equal(flags, []string{FlagRunner, FlagTests}) {
		t.Errorf("flags: %q", flags)
	}
	left, err := from.Changes(t.Context(), from.Base, found.commit)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, change := range left {
		names = append(names, change.Name)
	}
	if !slices.Equal(names, []string{"allowed_test.go", "app.go", "new.go", "package.json"}) {
		t.Errorf("what is scored of the work: %q", names)
	}
	if manifest, err := from.File(t.Context(), found.commit, "package.json"); err != nil || !strings.Contains(string(manifest), "2.0.0") || !strings.Contains(string(manifest), "jest") {
		t.Errorf("package.json: %v, %s", err, manifest)
	}
}

// What is wrong with tests that nobody asks for says nothing about those that count.
func TestNotesThatMatter(t *testing.T) {
	t.Parallel()
	good := &environment.Baseline{Tests: &testreport.Report{Complete: true, Cases: []testreport.Case{{Name: "a", Status: testreport.Passed}}}}
	doubted := &environment.Baseline{Tests: &testreport.Report{Note: "it ended early", Cases: []testreport.Case{{Name: "b", Status: testreport.Passed}}}}
	both := tested{runs: []*environment.Baseline{good, doubted}}
	if score := both.score(Expected{FailToPass: []string{"a"}}); !score.Resolved || score.Note != "" {
		t.Errorf("another project: %+v", score)
	}
	for _, want := range [][]string{{"a", "b"}, {"a", "c"}} {
		if score := both.score(Expected{FailToPass: want}); score.Resolved || !strings.Contains(score.Note, "it ended early") {
			t.Errorf("%q: %+v", want, score)
		}
	}
}
