package history_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/eval/history"
	"github.com/toryo-dev/toryo/internal/task"
)

type repository struct {
	t   *testing.T
	dir string
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	out, err := exec.CommandContext(r.t.Context(), "git", append([]string{"-C", r.dir, "-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"}, args...)...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repository) commit(message string, files ...string) {
	r.t.Helper()
	for i := 0; i < len(files); i += 2 {
		if err := os.WriteFile(filepath.Join(r.dir, files[i]), []byte(files[i+1]), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git("add", ".")
	r.git("commit", "--quiet", "--allow-empty", "-m", message)
}

// merge does some work on a branch and merges it as forges do.
func (r repository) merge(message string, files ...string) {
	r.t.Helper()
	r.git("checkout", "--quiet", "-b", "work")
	r.commit("work in progress", files...)
	r.git("checkout", "--quiet", "main")
	r.git("merge", "--quiet", "--no-ff", "-m", message, "work")
	r.git("branch", "--quiet", "-D", "work")
}

// Tasks are made of merged pull requests with tests: the commit before, the tests as the
// hidden ones, and the rest as the change.
func TestTasks(t *testing.T) {
	t.Parallel()
	r := repository{t, filepath.Join(t.TempDir(), "app")}
	if err := os.Mkdir(r.dir, 0o750); err != nil {
		t.Fatal(err)
	}
	r.git("init", "--quiet")
	r.commit("first", "go.mod", "module example.com/app\n", "app.go", "package app\n")
	base := r.git("rev-parse", "HEAD")
	r.merge("Merge pull request #7 from team/fix\n\nGive the answer\n\nIt is 42.", "app.go", "package app\n\nconst Answer = 42\n", "app_test.go", "package app\n\n// seven\n")
	r.commit("pushed by hand", "app.go", "package app\n\nconst Answer = 43\n", "app_test.go", "package app\n\n// hand\n")
	r.merge("Merge pull request #8 from team/docs", "README.md", "docs\n")
	r.merge("Merge pull request #9 from team/tests", "app_test.go", "package app\n\n// nine\n")
	before := r.git("rev-parse", "HEAD")
	r.commit("Be quicker (#10)\n\nMuch quicker.", "app.go", "package app\n\nconst Answer = 44\n", "app_test.go", "package app\n\n// ten\n")

	var skipped []string
	options := history.Options{Repository: r.dir, Most: 5, Dir: t.TempDir(), Skipped: func(_, why string) { skipped = append(skipped, why) }}
	set, err := history.Tasks(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Tasks) != 2 || strings.Join(skipped, "; ") != "it changes nothing but tests; it changes no tests" {
		t.Fatalf("%d tasks; skipped: %q", len(set.Tasks), skipped)
	}
	ten, seven := set.Tasks[0], set.Tasks[1]
	if ten.Base != before || ten.Statement != "Be quicker\n\nMuch quicker." || !strings.HasPrefix(ten.ID, "app-10-") || ten.Missing != "" || ten.Repository == "" || !ten.AfterWork {
		t.Errorf("ten: %+v", ten)
	}
	if seven.Base != base || seven.Statement != "Give the answer\n\nIt is 42." || !strings.HasPrefix(seven.ID, "app-7-") {
		t.Errorf("seven: %+v", seven)
	}
	if !strings.Contains(seven.Patch, "+const Answer = 42") || strings.Contains(seven.Patch, "_test.go") || !strings.Contains(seven.TestPatch, "+// seven") || strings.Contains(seven.TestPatch, "Answer") {
		t.Errorf("the patches of seven: %s\n%s", seven.Patch, seven.TestPatch)
	}

	options.Dir, options.Most = t.TempDir(), 1
	options.Text = func(_ context.Context, number int64) (history.Asked, error) {
		if number != 10 {
			t.Errorf("asked for %d", number)
		}
		return history.Asked{Text: "The issue itself"}, nil
	}
	if set, err = history.Tasks(t.Context(), options); err != nil || len(set.Tasks) != 1 || set.Tasks[0].Statement != "The issue itself" || set.Tasks[0].AfterWork {
		t.Errorf("with the forge: %+v, %v", set.Tasks, err)
	}
	// What was saved is the same when more was merged.
	file := filepath.Join(t.TempDir(), "tasks.jsonl")
	if err := history.Save(file, set); err != nil {
		t.Fatal(err)
	}
	first, err := history.Load(t.Context(), file, r.dir)
	if err != nil {
		t.Fatal(err)
	}
	r.commit("Be slower (#11)", "app.go", "package app\n\nconst Answer = 45\n", "app_test.go", "package app\n\n// eleven\n")
	again, err := history.Load(t.Context(), file, r.dir)
	if err != nil || again.Hash != first.Hash || len(again.Tasks) != 1 || again.Tasks[0].Hash() != set.Tasks[0].Hash() || again.Tasks[0].Repository != set.Tasks[0].Repository || again.Tasks[0].Missing != "" {
		t.Errorf("read again it is %+v, %v", again, err)
	}
	options.Repository = t.TempDir()
	if _, err = history.Tasks(t.Context(), options); task.CodeOf(err) != task.NotFound {
		t.Errorf("no repository: %v", err)
	}
}
