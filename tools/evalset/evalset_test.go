package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestMain(m *testing.M) {
	guest.Main(nil)
	os.Exit(m.Run())
}

// proxy is a folder that serves as a module proxy.
type proxy struct {
	folder string
	cache  string
}

func newProxy(t *testing.T) proxy {
	t.Helper()
	return proxy{folder: t.TempDir(), cache: t.TempDir()}
}

// add publishes a version of a module.
func (p proxy) add(t *testing.T, path, version string, content map[string]string) {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, name := range slices.Sorted(maps.Keys(content)) {
		file, err := w.Create(path + "@" + version + "/" + name)
		if err == nil {
			_, err = file.Write([]byte(content[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(p.folder, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	list, _ := os.ReadFile(filepath.Join(at, "list")) // the first version has none
	made := time.Date(2020, 1, 1+strings.Count(string(list), "\n"), 0, 0, 0, 0, time.UTC)
	for name, text := range map[string]string{
		"list": string(list) + version + "\n", version + ".zip": archive.String(), version + ".mod": content["go.mod"],
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, made.Format(time.RFC3339)),
	} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// compiledForTests is what the main program of each test is made of. All of the standard
// library would take longer than the tests.
const compiledForTests = "testing/internal/testdeps flag os regexp"

// options are for a set of modules of the proxy, of all pairs that are good.
func (p proxy) options(t *testing.T, modules string) (options, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	return options{out: filepath.Join(t.TempDir(), "set"), modules: modules, pairs: 1, tries: 10, timeout: 5 * time.Minute, warm: compiledForTests, log: log,
		environ: []string{"GOPROXY=file://" + filepath.ToSlash(p.folder), "GOSUMDB=off", "GOMODCACHE=" + p.cache, "GOFLAGS=-modcacherw"}}, log
}

func needBubblewrap(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
}

// readLines reads a file with lines of JSON.
func readLines[T any](t *testing.T, file string) []T {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var values []T
	for line := range strings.Lines(string(text)) {
		var value T
		if err := json.Unmarshal([]byte(line), &value); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	return values
}

const (
	goMod    = "module example.com/gate\n\ngo 1.20\n"
	gate     = "package gate\n\n// Paint is the color of gates.\nconst Paint = \"red\"\n\nfunc Height() int { return 2 }\n"
	gateTest = "package gate\n\nimport \"testing\"\n\nfunc TestHeight(t *testing.T) {\n\tif Height() != 2 {\n\t\tt.Fail()\n\t}\n}\n"
	// insideTest fails where a test can see the machine: %s is a file on it.
	insideTest = `package inside

import (
	"os"
	"strings"
	"testing"
)

func TestNothingElseIsHere(t *testing.T) {
	if _, err := os.Stat(%q); err == nil {
		t.Error("files of the machine can be read")
	}
	devices, err := os.ReadFile("/proc/net/dev")
	if err != nil || strings.Count(string(devices), ":") != 1 || !strings.Contains(string(devices), "lo:") {
		t.Errorf("there is a network: %%s, %%v", devices, err)
	}
}
`
)

// with is a version of a module that differs from another one in some files. A file without
// content is gone.
func with(content map[string]string, changes map[string]string) map[string]string {
	changed := maps.Clone(content)
	maps.Copy(changed, changes)
	maps.DeleteFunc(changed, func(_, text string) bool { return text == "" })
	return changed
}

// gates publishes a module with every kind of pair. The good one is v1.1.0.
func gates(t *testing.T, p proxy) {
	t.Helper()
	first := map[string]string{"go.mod": goMod, "gate.go": gate, "gate_test.go": gateTest, "old_test.go": "package gate\n", "README.md": "# Gates\r\n",
		".gitattributes": "* text eol=lf\n", ".gitignore": "*_test.go\n", "inside/inside.go": "package inside\n", "inside/inside_test.go": fmt.Sprintf(insideTest, p.folder)}
	p.add(t, "example.com/gate", "v1.0.0", first)
	second := with(first, map[string]string{"gate.go": gate + "\n// Open opens a gate\n// by hand.\nfunc Open(wide bool) string { return \"open\" }\n\n// Close is not tested.\nfunc Close() {}\n",
		"gate_test.go": gateTest + "\nfunc TestOpen(t *testing.T) {\n\tt.Run(\"wide\", func(t *testing.T) {\n\t\tif Open(true) != \"open\" {\n\t\t\tt.Fail()\n\t\t}\n\t})\n}\n",
		"old_test.go":  "", "testdata/names": "east\n", "CHANGELOG.md": "# Changes\n\n## [1.1.0] - 2020-01-02\n\n- Gates can be opened.\n\n## 1.0.0\n\n- Gates.\n"})
	p.add(t, "example.com/gate", "v1.1.0", second)
	p.add(t, "example.com/gate", "v1.2.0-rc.1", first)
	height := func(is, wanted string) map[string]string {
		return with(second, map[string]string{"gate.go": strings.Replace(gate, "return 2", "return "+is, 1), "gate_test.go": strings.Replace(gateTest, "() != 2", "() != "+wanted, 1)})
	}
	p.add(t, "example.com/gate", "v1.2.0", height("2", "2")) // passes on the older source too
	p.add(t, "example.com/gate", "v1.3.0", height("3", "2")) // has the tests of before
	p.add(t, "example.com/gate", "v1.3.1", height("3", "3")) // has the code of before
	p.add(t, "example.com/gate", "v1.4.0", height("4", "5")) // fails
	changing := height("6", "6")
	changing["gate_test.go"] = strings.Replace(changing["gate_test.go"], `import "testing"`, "import (\n\t\"testing\"\n\t\"time\"\n)", 1) +
		"\nfunc TestTime(t *testing.T) { t.Run(time.Now().String(), func(*testing.T) {}) }\n"
	p.add(t, "example.com/gate", "v1.5.0", changing) // is not the same each time
	p.add(t, "example.com/gate", "v1.6.0", with(height("7", "7"), map[string]string{"go.mod": goMod + "\nrequire example.com/wood v1.0.0\n"}))
}

// fences publishes a module that needs another one.
func fences(t *testing.T, p proxy) {
	t.Helper()
	p.add(t, "example.com/wood", "v1.0.0", map[string]string{"go.mod": "module example.com/wood\n\ngo 1.20\n", "wood.go": "package wood\n\nconst Oak = \"oak\"\n"})
	sums := p.sums(t, "example.com/wood", "v1.0.0")
	first := map[string]string{"go.mod": "module example.com/fence/v2\n\ngo 1.20\n\nrequire example.com/wood v1.0.0\n", "go.sum": sums,
		"fence.go":      "package fence\n\nimport \"example.com/wood\"\n\nfunc Of() string { return wood.Oak }\n",
		"fence_test.go": "package fence\n\nimport \"testing\"\n\nfunc TestOf(t *testing.T) {\n\tif Of() != \"oak\" {\n\t\tt.Fail()\n\t}\n}\n"}
	p.add(t, "example.com/fence/v2", "v2.0.0", first)
	p.add(t, "example.com/fence/v2", "v2.0.1", with(first, map[string]string{"fence.go": strings.Replace(first["fence.go"], "wood.Oak", "\"old \" + wood.Oak", 1),
		"fence_test.go": strings.Replace(first["fence_test.go"], "\"oak\"", "\"old oak\"", 1)}))
}

// sums are the lines of go.sum for a version.
func (p proxy) sums(t *testing.T, path, version string) string {
	t.Helper()
	o, _ := p.options(t, "")
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", path+"@"+version)
	command.Dir, command.Env = t.TempDir(), append(os.Environ(), o.environ...)
	output, err := command.Output()
	var found struct{ Sum, GoModSum string }
	if err != nil || json.Unmarshal(output, &found) != nil {
		t.Fatalf("%s, %v", output, err)
	}
	return path + " " + version + " " + found.Sum + "\n" + path + " " + version + "/go.mod " + found.GoModSum + "\n"
}

func TestSet(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	p := newProxy(t)
	gates(t, p)
	fences(t, p)
	o, log := p.options(t, "example.com/gate\nexample.com/fence/v2 # with a dependency\nexample.com/none\n")
	o.pairs = 3
	if err := makeSet(t.Context(), o); err == nil || !strings.Contains(err.Error(), "2 of 3 pairs are good") {
		t.Fatalf("%v\n%s", err, log)
	}
	tasks := readLines[row](t, filepath.Join(o.out, tasksFile))
	ids := []string{}
	for _, one := range tasks {
		ids = append(ids, one.InstanceID)
	}
	if want := []string{"example.com__gate-v1.1.0", "example.com__fence-v2.0.1"}; !slices.Equal(ids, want) {
		t.Fatalf("the tasks are %q\n%s", ids, log)
	}
	tried := readLines[attempt](t, filepath.Join(o.out, triedFile))
	wantReasons(t, tried)
	if !strings.Contains(log.String(), "example.com/none") {
		t.Errorf("the log does not say that a module is not there:\n%s", log)
	}
	wantToGoOn(t, o, tasks, tried)
	t.Run("row", func(t *testing.T) { t.Parallel(); wantRow(t, tasks[0]) })
	t.Run("repository", func(t *testing.T) { t.Parallel(); wantRepository(t, o.out, tasks[0]) })
	t.Run("dependency", func(t *testing.T) {
		t.Parallel()
		if got := tasks[1]; got.TestCommand != "go test -vet=off -mod=vendor ./..." || !slices.Equal(got.FailToPass, []string{"example.com/fence/v2 TestOf"}) || strings.Contains(got.Patch, "vendor/") ||
			!strings.Contains(got.ProblemStatement, "\nThese of them fail now: TestOf.\n") {
			t.Errorf("%+v", got)
		}
		if has := gitOutput(t, filepath.Join(o.out, tasks[1].RepoPath), "show", tasks[1].BaseCommit+":vendor/example.com/wood/wood.go"); !strings.Contains(has, "Oak") {
			t.Errorf("wood.go is %q", has)
		}
	})
	t.Run("once more", func(t *testing.T) {
		t.Parallel()
		list, err := os.ReadFile(filepath.Join(o.out, modulesFile))
		if err != nil {
			t.Fatal(err)
		}
		again, log := p.options(t, string(list))
		if err := makeSet(t.Context(), again); err != nil {
			t.Fatalf("%v\n%s", err, log)
		}
		if tried := readLines[attempt](t, filepath.Join(again.out, triedFile)); len(tried) != 1 {
			t.Errorf("%d pairs were tried: the list names those that are good", len(tried))
		}
		made := readLines[row](t, filepath.Join(again.out, tasksFile))
		if one, other := fmt.Sprintf("%+v", tasks[1]), fmt.Sprintf("%+v", made[0]); one != other {
			t.Errorf("the task differs:\n%s\n%s", one, other)
		}
	})
}

// wantToGoOn calls the program again with the same folder, as after it was killed while it
// made a task: what was done is not done again, and what was in the middle is removed.
func wantToGoOn(t *testing.T, o options, tasks []row, tried []attempt) {
	t.Helper()
	half := filepath.Join(o.out, repositories, "example.com__half-v1.0.0.git")
	for _, folder := range []string{half, filepath.Join(o.out, workFolder, "left")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	again := &bytes.Buffer{}
	o.log = again
	if err := makeSet(t.Context(), o); err == nil || !strings.Contains(err.Error(), "2 of 3 pairs are good") {
		t.Errorf("%v\n%s", err, again)
	}
	if strings.Contains(again.String(), "example.com/gate") {
		t.Errorf("pairs were tried again:\n%s", again)
	}
	if got := readLines[row](t, filepath.Join(o.out, tasksFile)); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tasks) {
		t.Errorf("the tasks have changed: %+v", got)
	}
	if got := readLines[attempt](t, filepath.Join(o.out, triedFile)); !slices.Equal(got, tried) {
		t.Errorf("the pairs that were tried have changed: %+v", got)
	}
	for _, gone := range []string{half, filepath.Join(o.out, workFolder)} {
		if _, err := os.Stat(gone); err == nil {
			t.Errorf("%s is still there", gone)
		}
	}
}

// wantReasons looks at why the other pairs are no tasks.
func wantReasons(t *testing.T, tried []attempt) {
	t.Helper()
	want := map[string]string{
		"example.com/gate v1.6.0":     "go.mod requires other modules",
		"example.com/gate v1.5.0":     "other tests pass when they are run a second time",
		"example.com/gate v1.4.0":     "its tests do not pass with the gold patch: 1 fail, such as example.com/gate TestHeight",
		"example.com/gate v1.3.1":     "no Go code differs",
		"example.com/gate v1.3.0":     "no test differs",
		"example.com/gate v1.2.0":     "its tests pass on the older source too",
		"example.com/gate v1.1.0":     "",
		"example.com/fence/v2 v2.0.1": "",
	}
	for _, one := range tried {
		name := one.Module + " " + one.Newer
		reason, known := want[name]
		if !known || !strings.HasPrefix(one.Reason, reason) || reason == "" && one.Reason != "" {
			t.Errorf("%s: %q, not %q", name, one.Reason, reason)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not tried: %v", want)
	}
}

func wantRow(t *testing.T, got row) {
	t.Helper()
	if got.Repo != "example.com/gate" || got.Version != "v1.1.0" || got.CreatedAt != "2020-01-02T00:00:00Z" || got.TestCommand != "go test -vet=off ./..." {
		t.Errorf("%+v", got)
	}
	if want := []string{"example.com/gate TestHeight", "example.com/gate TestOpen", "example.com/gate TestOpen/wide"}; !slices.Equal(got.FailToPass, want) {
		t.Errorf("FAIL_TO_PASS is %q: the newer tests do not compile without the patch", got.FailToPass)
	}
	if want := []string{"example.com/gate/inside TestNothingElseIsHere"}; !slices.Equal(got.PassToPass, want) {
		t.Errorf("PASS_TO_PASS is %q", got.PassToPass)
	}
	if want := []string{"CHANGELOG.md", "gate.go"}; !slices.Equal(changed(got.Patch), want) {
		t.Errorf("the gold patch changes %q", changed(got.Patch))
	}
	if want := []string{"gate_test.go", "old_test.go", "testdata/names"}; !slices.Equal(changed(got.TestPatch), want) {
		t.Errorf("the patch of tests changes %q", changed(got.TestPatch))
	}
	const want = "This repository has version v1.0.0 of the Go module example.com/gate. Change it as the change log says of version v1.1.0:\n\n" +
		"- Gates can be opened.\n\nHidden tests of these packages have to pass:\n\n- example.com/gate\n\n" +
		"They use these declarations, which are new or differ from those in the repository:\n\n" +
		"```go\n// package example.com/gate\n\n// Open opens a gate\n// by hand.\nfunc Open(wide bool) string\n```\n"
	if got.ProblemStatement != want {
		t.Errorf("the statement is %q", got.ProblemStatement)
	}
}

// changed are the files that a patch changes.
func changed(patch string) []string {
	var names []string
	for line := range strings.Lines(patch) {
		if _, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), " b/"); found && strings.HasPrefix(line, "diff --git ") {
			names = append(names, name)
		}
	}
	return names
}

// wantRepository looks for one commit with the older source, byte for byte, and for nothing
// of the newer one.
func wantRepository(t *testing.T, set string, got row) {
	t.Helper()
	at := filepath.Join(set, got.RepoPath)
	if commits := gitOutput(t, at, "rev-list", "--all"); commits != got.BaseCommit+"\n" {
		t.Errorf("the commits are %q", commits)
	}
	if listed := strings.Fields(gitOutput(t, at, "ls-tree", "-r", "--name-only", "main")); !slices.Equal(listed, []string{".gitattributes", ".gitignore", "README.md", "gate.go", "gate_test.go", "go.mod", "inside/inside.go", "inside/inside_test.go", "old_test.go"}) {
		t.Errorf("the files are %q", listed)
	}
	if text := gitOutput(t, at, "show", "main:README.md"); text != "# Gates\r\n" {
		t.Errorf("README.md is %q", text)
	}
	if all := gitOutput(t, at, "cat-file", "--batch-all-objects", "--batch"); strings.Contains(all, "Open") {
		t.Error("the repository has objects of the newer version")
	}
}

func gitOutput(t *testing.T, repository string, arguments ...string) string {
	t.Helper()
	output, err := git(t.Context(), []string{"GIT_DIR=" + repository}, "", arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func TestTestsThatHang(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	p := newProxy(t)
	first := map[string]string{"go.mod": goMod, "gate.go": gate, "gate_test.go": gateTest}
	p.add(t, "example.com/gate", "v1.0.0", first)
	p.add(t, "example.com/gate", "v1.1.0", with(first, map[string]string{"gate.go": gate + "// Done.\n",
		"gate_test.go": "package gate\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestHeight(t *testing.T) { time.Sleep(time.Hour) }\n"}))
	o, log := p.options(t, "example.com/gate")
	o.timeout, o.warm = 5*time.Second, "unsafe" // compiling counts, too
	if err := makeSet(t.Context(), o); err == nil || !strings.Contains(log.String(), "example.com/gate v1.0.0 v1.1.0: its tests exceed the limit: ") {
		t.Errorf("%v\n%s", err, log)
	}
	if left, err := os.ReadDir(filepath.Join(o.out, repositories)); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestOtherContentThanListed(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	p := newProxy(t)
	p.add(t, "example.com/gate", "v1.0.0", map[string]string{"go.mod": goMod, "gate.go": gate})
	p.add(t, "example.com/gate", "v1.1.0", map[string]string{"go.mod": goMod, "gate.go": gate})
	o, _ := p.options(t, "example.com/gate v1.0.0 v1.1.0 h1:AAAA= h1:BBBB=\n")
	if err := makeSet(t.Context(), o); err == nil || !strings.Contains(err.Error(), "example.com/gate v1.0.0 has the sum h1:") || !strings.Contains(err.Error(), "and the list says h1:AAAA=") {
		t.Error(err)
	}
}

// A pair that the list names must be there: without it the set would be another one.
func TestListedPairThatCannotBeDownloaded(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	p := newProxy(t)
	o, _ := p.options(t, "example.com/gone v1.0.0 v1.1.0 h1:AAAA= h1:BBBB=\n")
	if err := makeSet(t.Context(), o); err == nil || !strings.Contains(err.Error(), "example.com/gone v1.0.0 v1.1.0: it cannot be downloaded") {
		t.Error(err)
	}
}

// A listed pair whose dependencies cannot be downloaded ends the program too. Another one is
// tried again by the next call, when they can.
func TestDependenciesThatCannotBeDownloaded(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	p := newProxy(t)
	fences(t, p)
	wood, away := filepath.Join(p.folder, "example.com", "wood"), filepath.Join(t.TempDir(), "wood")
	sums := [2]string{}
	for i, version := range []string{"v2.0.0", "v2.0.1"} {
		sums[i] = strings.Fields(p.sums(t, "example.com/fence/v2", version))[2]
	}
	if err := os.Rename(wood, away); err != nil {
		t.Fatal(err)
	}
	p.cache = t.TempDir()
	listed, _ := p.options(t, "example.com/fence/v2 v2.0.0 v2.0.1 "+sums[0]+" "+sums[1]+"\n")
	if err := makeSet(t.Context(), listed); err == nil || !strings.Contains(err.Error(), "example.com/fence/v2 v2.0.0 v2.0.1: the go command fails") {
		t.Errorf("a listed pair: %v", err)
	}
	o, log := p.options(t, "example.com/fence/v2")
	if err := makeSet(t.Context(), o); err == nil || !strings.Contains(log.String(), "the go command fails") {
		t.Fatalf("%v\n%s", err, log)
	}
	if err := os.Rename(away, wood); err != nil {
		t.Fatal(err)
	}
	if err := makeSet(t.Context(), o); err != nil {
		t.Errorf("with the dependency: %v\n%s", err, log)
	}
}

// A set that is gone on with has one task of each module before a second one of any.
func TestModulesInTurn(t *testing.T) {
	t.Parallel()
	l := listed{path: "example.com/a", pairs: []pair{{module: "example.com/a", older: "v1.0.0", newer: "v1.1.0"}, {module: "example.com/a", older: "v0.9.0", newer: "v1.0.0"}}}
	m := &maker{options: options{pairs: 2}, tried: []attempt{{Module: "example.com/a", Older: "v1.0.0", Newer: "v1.1.0", Task: "a"}}, tasks: []row{{InstanceID: "a"}}}
	if err := m.next(t.Context(), &l); err != nil || len(l.pairs) != 1 || len(m.tried) != 1 {
		t.Errorf("%+v is left, %v", l.pairs, err)
	}
}

// What is handed on has no address of this machine in it.
func TestReasonsWithoutAddresses(t *testing.T) {
	t.Parallel()
	why, is := unfitness(unfitError{reason: "it cannot be downloaded", details: "dial tcp 10.0.0.1:443: timeout"})
	m := &maker{options: options{log: &bytes.Buffer{}}}
	if err := m.note(pair{module: "example.com/a", older: "v1.0.0", newer: "v1.1.0"}, time.Now(), why); err != nil || !is {
		t.Fatal(err)
	}
	if text, err := lines(m.tried); err != nil || strings.Contains(string(text), "10.0.0.1") || !strings.Contains(string(text), "cannot be downloaded") {
		t.Errorf("%s, %v", text, err)
	}
}

// go mod vendor would copy the code of this machine into the task.
func TestReplacedByAFolder(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"/etc", "../up", "./here"} {
		_, err := requirements(files{"go.mod": []byte(goMod + "\nrequire example.com/wood v1.0.0\n\nreplace example.com/wood => " + to + "\n")})
		if why, is := unfitness(err); !is || !strings.Contains(why.reason, "by a folder") {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// The tasks are written as JSON, which has no other text than UTF-8.
func TestOtherEncodings(t *testing.T) {
	t.Parallel()
	s := source{older: files{"a.go": []byte("package a\n"), "names.txt": []byte("\x82\xa0\n"), "gone.txt": []byte("\xe9\n")}, newer: files{"a.go": []byte("package b\n"), "names.txt": []byte("\x82\xa2\n")}}
	gold, _, err := s.patches(t.Context(), t.TempDir())
	if err != nil || !utf8.ValidString(gold) || !strings.Contains(gold, "+package b\n") || strings.Count(gold, "GIT binary patch") != 2 {
		t.Errorf("%v: %q", err, gold)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	id, _ := names(pair{module: "example.com/~user/a+b", newer: "v1.0.0+incompatible"})
	if id != "user__a-b-v1.0.0-incompatible" {
		t.Errorf("the name is %q", id)
	}
	for _, has := range []string{"a__b-c-v1.0.0", "A__b-C-v1.0.0"} {
		m := &maker{tasks: []row{{InstanceID: has}}}
		_, err := m.task(t.Context(), &pair{module: "example.com/a/b/c", older: "v0.9.0", newer: "v1.0.0"})
		if why, is := unfitness(err); !is || why.reason != "another task has the name a__b-c-v1.0.0" {
			t.Errorf("a second task of the same name: %v", err)
		}
	}
	long := "example.com/" + strings.Repeat("long/", 40)
	one, _ := names(pair{module: long + "a", newer: "v1.0.0"})
	other, _ := names(pair{module: long + "b", newer: "v1.0.0"})
	if len(one) > 150 || one == other {
		t.Errorf("long names: %q, %q", one, other)
	}
}

func TestNoSandbox(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	p := newProxy(t)
	o, _ := p.options(t, "example.com/gate")
	for range 2 { // what the first call leaves is no reason to refuse the second one
		if err := makeSet(t.Context(), o); err == nil || !strings.Contains(err.Error(), "tests of modules run in sandboxes only") {
			t.Error(err)
		}
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	list := filepath.Join(full, "modules.txt")
	if err := os.WriteFile(list, []byte("example.com/gate v1.0.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"": "--out is missing", "--out x y": `"y" is no flag`, "--out x --pairs 0": "larger than nothing", "--out " + full: "is not empty",
		"--out x --modules " + full + "/none": "no such file", "--out x --modules " + list: "line 1 of the list of modules: 2 words",
	} {
		if err := run(t.Context(), strings.Fields(line), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "empty", "# nothing\n": "empty", "\n../up": "line 2", "example.com/a v2 v1": "3 words", "example.com/a v1.1.0 v1.0.0 h1:a h1:b": "not older",
		"example.com/a v1.0.0 v1.1.0 a h1:b": "does not begin with h1:", "example.com/a v1.0.0 v2.0.0 h1:a h1:b": "should be v0 or v1",
	} {
		if _, err := parseList(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	got, err := parseList("example.com/a\nexample.com/b v1.0.0 v1.1.0 h1:a h1:b # two\nexample.com/b v1.1.0 v1.2.0 h1:b h1:c\n")
	if err != nil || len(got) != 2 || got[0].path != "example.com/a" || got[0].pairs != nil || len(got[1].pairs) != 2 || got[1].pairs[1] != (pair{module: "example.com/b", older: "v1.1.0", newer: "v1.2.0", olderSum: "h1:b", newerSum: "h1:c"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseList(builtIn); err != nil {
		t.Errorf("the list of the program: %v", err)
	}
}

func TestNotesOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"## [1.2.0] - 2020-01-01\n\n- new\n\n## [1.1.0]\n- old\n":       "- new",
		"# v1.2.0 (May 1, 2020)\r\nnew\r\n# v1.1.0\r\nold\r\n":          "new",
		"1.2.0\n=====\n\nnew\n\n1.1.0\n=====\n":                         "new",
		"### Version 1.2:\nnew, since 1.1.0 was\n### Version 1.1:\nold": "new, since 1.1.0 was",
		"## 1.2.0-rc.1\nearly\n## 1.1.0\nold\n":                         "",
		"## 11.2.0\nother\n## 1.2.01\n":                                 "",
		"## Unreleased\n1.2.0 is next.\n":                               "",
		"":                                                              "",
	} {
		if got := notesOf(text, "v1.2.0"); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
