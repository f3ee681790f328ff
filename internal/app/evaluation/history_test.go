package evaluation

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/history"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/task"
)

// What was asked for is in the issue that a pull request closes, or else in its own text. An issue
// that is confidential does not count.
func TestAsked(t *testing.T) {
	t.Parallel()
	from := dummy.New(task.GitHub, "toryo")
	from.AddRepository("team/app", forge.Remote{})
	issue := from.AddItem("team/app", task.Issue, "ann", "The sum is wrong")
	from.Change(issue, func(i *forge.Item) { i.Body = "It is 4." })
	secret := from.AddItem("team/app", task.Issue, "ann", "The key is out")
	from.Change(secret, func(i *forge.Item) { i.Confidential = true })
	pull := from.AddItem("team/app", task.Pull, "bob", "Add")
	for body, want := range map[string]history.Asked{
		"Fixes #1":                        {Text: "The sum is wrong\n\nIt is 4."},
		"closes: #99999999999999999999\n": {Text: "Add\n\ncloses: #99999999999999999999\n", AfterWork: true},
		"Resolves #2":                     {Text: "Add\n\nResolves #2", AfterWork: true},
		"Fixes #7, fixes #1":              {Text: "The sum is wrong\n\nIt is 4."},
		"See #1":                          {Text: "Add\n\nSee #1", AfterWork: true},
	} {
		from.Change(pull, func(i *forge.Item) { i.Body = body })
		if got, err := asked(t.Context(), from, "team/app", pull.Number); err != nil || got != want {
			t.Errorf("%q: %+v, %v", body, got, err)
		}
	}
	if _, err := asked(t.Context(), from, "team/app", 50); task.CodeOf(err) != task.NotFound {
		t.Errorf("no such pull request: %v", err)
	}
}

// A fresh check keeps the tasks that there are attempts at: without them the attempts could not
// be gone on with.
func TestFreshCheckOfAHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	merge := func(number, text string) {
		t.Helper()
		for _, name := range []string{"app.go", "app_test.go"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("package app // "+text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", text + " (#" + number + ")"}} {
			if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
		}
	}
	merge("1", "first")
	merge("2", "second")
	folder, err := Open(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	read := func(fresh, onlyCheck bool) string {
		t.Helper()
		set, _, err := folder.History(t.Context(), history.Options{Repository: dir, Most: 1}, fresh, onlyCheck)
		if err != nil {
			t.Fatal(err)
		}
		return set.Tasks[0].Statement
	}
	first := read(false, false)
	merge("3", "third")
	if again := read(false, true); again != first {
		t.Errorf("the tasks have changed: %q", again)
	}
	if again := read(true, true); again != "third" {
		t.Errorf("without attempts: %q", again)
	}
	if err := eval.Folder(folder.path).Keep(eval.Attempt{Task: "a", Model: "m", Number: 1}); err != nil {
		t.Fatal(err)
	}
	merge("4", "fourth")
	if again := read(true, true); again != "third" {
		t.Errorf("with attempts: %q", again)
	}
	if again := read(true, false); again != "fourth" {
		t.Errorf("with everything forgotten: %q", again)
	}
}
