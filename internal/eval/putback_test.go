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
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/testreport"
)

// place is a folder with a repository.
type place struct {
	t   *testing.T
	dir string
}

func (p place) git(args ...string) string {
	p.t.Helper()
	out, err := exec.CommandContext(p.t.Context(), "git", append([]string{"-C", p.dir, "-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (p place) write(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		p.t.Fatal(err)
	}
}

// begin makes the first commit of the files that are there.
func (p place) begin() *source.Repository {
	p.t.Helper()
	p.git("init", "--quiet", "--initial-branch=main")
	p.git("add", ".")
	p.git("commit", "--quiet", "-m", "base")
	from, err := source.Strip(p.t.Context(), p.dir, p.git("rev-parse", "HEAD"), filepath.Join(p.t.TempDir(), "stripped.git"))
	if err != nil {
		p.t.Fatal(err)
	}
	return from
}

// patch writes files, and returns the change as a patch and as a commit. The files are then as
// they were before.
func (p place) patch(from *source.Repository, names ...string) (patch, commit string) {
	p.t.Helper()
	for _, name := range names {
		p.write(name, "changed = 1\n")
	}
	p.git("add", ".")
	patch = p.git("diff", "--cached", "--binary") + "\n"
	p.git("reset", "--quiet", "--hard")
	commit, err := from.Apply(p.t.Context(), from.Base, patch)
	if err != nil {
		p.t.Fatal(err)
	}
	return patch, commit
}

// A program that is about tests has files that look like tests. Those in the folders that the
// change of people is in are the work's to change; tests in them, and folders with hidden tests,
// are not.
func TestProgramsAboutTests(t *testing.T) {
	t.Parallel()
	p := place{t, t.TempDir()}
	for _, name := range []string{"src/_pytest/a.py", "src/_pytest/b.py", "app/test/client.py", "app/test/utils.py", "app/test/tests/helper.py", "app/test/tests/test_client.py", "tests/util.py", "tests/helper.py", "tests/test_x.py"} {
		p.write(name, "was = 1\n")
	}
	from := p.begin()
	gold, _ := p.patch(from, "src/_pytest/a.py", "app/test/client.py", "tests/util.py")
	_, hidden := p.patch(from, "tests/test_x.py", "app/test/tests/test_client.py")
	allowed, err := needed(t.Context(), from, taskset.Task{Patch: gold}, environment.Receipt{}, hidden)
	if want := []string{"app/test/client.py", "src/_pytest/a.py", "tests/util.py", "app/test/", "src/_pytest/"}; err != nil || !slices.Equal(allowed, want) {
		t.Errorf("allowed: %q, %v", allowed, err)
	}
	_, work := p.patch(from, "src/_pytest/b.py", "src/_pytest/logging.py", "app/test/utils.py", "app/test/new.py", "app/test/conftest.py", "app/test/tests/helper.py", "tests/helper.py", "tests/util.py")
	judge, err := newJudge(t.Context(), from, taskset.Task{}, environment.Receipt{}, allowed)
	if err != nil {
		t.Fatal(err)
	}
	found, err := judge.judge(t.Context(), work)
	if want := []string{"app/test/conftest.py", "app/test/tests/helper.py", "tests/helper.py"}; err != nil || !slices.Equal(found.back, want) {
		t.Errorf("put back: %q, %v", found.back, err)
	}
}

// Whatever decides how tests are run is put back, and the program itself is not.
func TestPutBack(t *testing.T) {
	t.Parallel()
	p := place{t, t.TempDir()}
	dir, git, write := p.dir, p.git, p.write
	base := map[string]string{
		"lib/vendor/a/a.go": "package a\n", "app.go": "package app\n", "app_test.go": "package app\n", "go.mod": "module example.com/app\n\ngo 1.21\n\nrequire example.com/assert v1.0.0\n",
		"vendor/modules.txt": "# example.com/assert v1.0.0\n", "vendor/example.com/assert/assert.go": "package assert\n", "Makefile": "test:\n\tgo test ./...\n",
		"package.json": "{\n  \"name\": \"app\",\n  \"version\": \"1.0.0\",\n  \"scripts\": {\"test\": \"jest\"}\n}\n", "run.sh": "go test ./...\n", "allowed_test.go": "package app\n",
		"web/package.json": "{\"scripts\": {\"test\": \"jest\"}, \"devDependencies\": {\"jest\": \"29\"}}\n", "py/pyproject.toml": "[tool.pytest.ini_options]\naddopts = \"-q\"\n",
		"sub/go.mod": "module example.com/sub\n", "sub/setup.cfg": "[metadata]\nname = sub\n",
	}
	for name, text := range base {
		write(name, text)
	}
	from := p.begin()
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
	write("web/package.json", "{\"scripts\": {\"test\": \"true\"}, \"devDependencies\": {\n\"jest\": \"file:./fake\"}}\n")
	write("py/pyproject.toml", "[tool.pytest.ini_options]\naddopts = \"-x\"\n[tool.poetry.dependencies]\npytest = {path = \"./fake\"}\n")
	write("new/pyproject.toml", "[project]\nname = \"new\"\n[tool.pytest.ini_options]\naddopts = \"-p cheat\"\n")
	write("setup.cfg", "[metadata]\nname = app\n[tool:pytest]\naddopts = -p cheat\n")
	write("new/package.json", "{\"name\": \"new\"}\n")
	for _, name := range []string{"sub/go.mod", "sub/setup.cfg"} {
		if err := errors.Join(os.Remove(filepath.Join(dir, name)), os.Symlink("other.txt", filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	write("sub/other.txt", "module example.com/sub\n\nreplace example.com/assert => ./fake\n")
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
	want := []string{"Makefile", "app_test.go", "conftest.py", "go.mod", "lib/vendor/a/a.go", "main_test.go", "new/pyproject.toml", "package.json", "py/pyproject.toml", "run.sh", "setup.cfg",
		"sub/go.mod", "sub/setup.cfg", "vendor/example.com/assert/assert.go", "web/package.json", "lib/vendor"}
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
	if !slices.Equal(names, []string{"allowed_test.go", "app.go", "new.go", "new/package.json", "new/pyproject.toml", "package.json", "setup.cfg", "sub/other.txt"}) {
		t.Errorf("what is scored of the work: %q", names)
	}
	if manifest, err := from.File(t.Context(), found.commit, "package.json"); err != nil || !strings.Contains(string(manifest), "2.0.0") || !strings.Contains(string(manifest), "jest") {
		t.Errorf("package.json: %v, %s", err, manifest)
	}
	for _, name := range []string{"new/pyproject.toml", "setup.cfg"} {
		if content, err := from.File(t.Context(), found.commit, name); err != nil || strings.Contains(string(content), "cheat") || !strings.Contains(string(content), "name") {
			t.Errorf("%s: %v, %s", name, err, content)
		}
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

// What is said of a run that was cut is why, also if the other one was not.
func TestReasonOfACutRun(t *testing.T) {
	t.Parallel()
	cut := tested{runs: []*environment.Baseline{{Exceeded: sandbox.TimeLimit}}}
	whole := tested{runs: []*environment.Baseline{{Tests: &testreport.Report{Complete: true, Cases: []testreport.Case{{Name: "a", Status: testreport.Failed}}}}}}
	for _, without := range [][]tested{{cut, whole}, {whole, cut}} {
		check := Check{Expected: Expected{FailToPass: []string{"a"}}, Gold: Score{Resolved: true}, NoChange: without[1].score(Expected{FailToPass: []string{"a"}})}
		check.decide(without)
		if check.Usable || check.Reason != "without any change: the tests exceeded the limit of time" {
			t.Errorf("it is %q", check.Reason)
		}
	}
}

// Of a package of Go that does not compile its tests are missing. A test that has failed is no
// reason to take others.
func TestTestsThatAreNotLoaded(t *testing.T) {
	t.Parallel()
	want := Expected{FailToPass: []string{"a TestA"}, PassToPass: []string{"a TestB", "b TestC"}}
	one := func(cases ...testreport.Case) tested {
		return tested{runs: []*environment.Baseline{{Tests: &testreport.Report{Cases: cases}}}}
	}
	other := testreport.Case{Name: "b TestC", Status: testreport.Passed}
	for name, ran := range map[string]struct {
		tested

		is bool
	}{
		"does not compile": {one(testreport.Case{Name: "a", Status: testreport.Failed}, other), true},
		"one fails":        {one(testreport.Case{Name: "a TestB", Status: testreport.Failed}, other), false},
		"all pass":         {one(testreport.Case{Name: "a TestA", Status: testreport.Passed}, testreport.Case{Name: "a TestB", Status: testreport.Passed}, other), false},
		"cut":              {tested{runs: []*environment.Baseline{{Exceeded: sandbox.TimeLimit}}}, false},
	} {
		if ran.notLoaded(want) != ran.is {
			t.Errorf("%s: %v", name, !ran.is)
		}
	}
}

// A list of packages that names the project itself may get its future.
func TestTheProjectItself(t *testing.T) {
	t.Parallel()
	for is, want := range map[string]bool{
		"flask==1.0\nmy_app==2.0\n": true, "flask==1.0\nMy.App @ https://example.com/x.whl\n": true, "flask==1.0\nmy-app-plugin\n": false, "flask==1.0\n": false, "flask==2.0\n": false,
	} {
		if names(added([]byte("flask==1.0\n"), []byte(is)), "my-app") != want {
			t.Errorf("%q: %v", is, !want)
		}
	}
}

// A file that is too large to be compared is none of what the work can be blamed for: it is flagged, or
// put back.
func TestLargeFilesOfTests(t *testing.T) {
	t.Parallel()
	at := place{t, t.TempDir()}
	large := strings.Repeat("a line\n", 5<<20)
	for _, name := range []string{"test_data.csv", "test_data.py", "package.json"} {
		at.write(name, large)
	}
	at.write("requirements.txt", "one==1.0\n")
	from := at.begin()
	for _, name := range []string{"test_data.csv", "test_data.py", "package.json"} {
		at.write(name, large+"one more\n")
	}
	at.git("add", ".")
	work, err := from.Apply(t.Context(), from.Base, at.git("diff", "--cached", "--binary")+"\n")
	if err != nil {
		t.Fatal(err)
	}
	judge, err := newJudge(t.Context(), from, taskset.Task{}, environment.Receipt{Projects: []environment.ProjectSetup{{Project: environment.Project{Directory: ".", TestCommand: "python -m pytest"}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := judge.judge(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(made.flags)
	if !slices.Equal(made.flags, []string{FlagRunner, FlagTests}) || !slices.Equal(made.back, []string{"package.json", "test_data.csv", "test_data.py"}) {
		t.Errorf("flags %q, put back %q", made.flags, made.back)
	}
}
