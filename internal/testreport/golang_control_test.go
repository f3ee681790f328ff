package testreport_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testreport"
)

// goForge is a file whose init function prints lines and ends the process.
func goForge(lines string, exit string) string {
	return "package calc\nimport (\"fmt\"; \"os\")\nfunc init() { fmt.Print(" + lines + "); os.Exit(" + exit + ") }\n"
}

// goEnding is a file with a function that prints lines and ends the process. It writes
// to the descriptor, as an example replaces os.Stdout.
func goEnding(lines string, exit string) string {
	return "package calc\nimport \"syscall\"\nfunc F() int { syscall.Write(1, []byte(" + lines + ")); syscall.Exit(" + exit + "); return 7 }\n"
}

const (
	goCalling  = "package calc\nimport \"testing\"\nfunc TestBad(t *testing.T) { if F() != 1 { t.Error(\"wrong\") } }\n"
	goMore     = "func TestMore(t *testing.T) { t.Error(\"wrong\") }\n"
	goBad      = "package calc\nimport \"testing\"\nfunc TestBad(t *testing.T) { t.Error(\"wrong\") }\n"
	goGood     = "package calc\nimport \"testing\"\nfunc TestGood(t *testing.T) {}\n"
	goTestMain = "package calc\nimport (\"testing\"; \"os\"; \"fmt\")\nvar _ = fmt.Print\nfunc TestMain(m *testing.M) { "
)

// A test binary is its own reporter. One that reports without running its tests, or
// other results than they had, does not know the control and does not report it.
func TestGoForgedReports(t *testing.T) {
	t.Parallel()
	bad := func(status testreport.Status) map[string]testreport.Status {
		return map[string]testreport.Status{"example.com/calc TestBad": status}
	}
	onMachine(t, "go", []scenario{
		{name: "init", command: "go test ./...", note: "no control",
			files: goProject(map[string]string{"a_test.go": goBad, "calc.go": goForge(`"=== RUN   TestBad\n--- PASS: TestBad (0.00s)\nPASS\n"`, "0")}), want: bad(passed)},
		{name: "init with marker", command: "go test ./...", note: "no control",
			files: goProject(map[string]string{"a_test.go": goBad, "calc.go": goForge(`"\x16=== RUN   TestBad\n\x16--- PASS: TestBad (0.00s)\n\x16PASS\n"`, "0")}), want: bad(passed)},
		{name: "init in a dependency", command: "go test ./...", note: "no control",
			files: goProject(map[string]string{"a_test.go": goBad, "calc.go": "package calc\nimport _ \"example.com/calc/dep\"\n", "dep/dep.go": strings.Replace(goForge(`"=== RUN   TestBad\n--- PASS: TestBad (0.00s)\nPASS\n"`, "0"), "package calc", "package dep", 1)}), want: bad(passed)},
		// What failed before may fail: a forged failure is no better.
		{name: "init fails", command: "go test ./...", note: "no control",
			files: goProject(map[string]string{"a_test.go": goBad + "func TestKnown(t *testing.T) { t.Error(\"known\") }\n", "calc.go": goForge(`"=== RUN   TestBad\n--- PASS: TestBad (0.00s)\n=== RUN   TestKnown\n--- FAIL: TestKnown (0.00s)\nFAIL\n"`, "1")}),
			want:  map[string]testreport.Status{"example.com/calc TestBad": passed, "example.com/calc TestKnown": failed}},
		{name: "TestMain runs nothing", command: "go test ./...", note: "no control",
			files: goProject(map[string]string{"a_test.go": goBad, "main_test.go": goTestMain + "fmt.Print(\"\\x16=== RUN   TestBad\\n\\x16--- PASS: TestBad (0.00s)\\n\\x16PASS\\n\"); os.Exit(0) }\n"}), want: bad(passed)},
		{name: "TestMain changes results", command: "go test ./...", note: "is reported as \"pass\"",
			files: goProject(map[string]string{"a_test.go": goBad, "main_test.go": "package calc\nimport (\"testing\"; \"os\"; \"io\"; \"bytes\")\nfunc TestMain(m *testing.M) {\n out := os.Stdout\n r, w, _ := os.Pipe()\n os.Stdout = w\n m.Run()\n w.Close()\n data, _ := io.ReadAll(r)\n out.Write(bytes.ReplaceAll(data, []byte(\"FAIL\"), []byte(\"PASS\")))\n os.Exit(0)\n}\n"}), want: bad(passed)},
		// A test that is not compiled, reported before the others.
		{name: "init adds a test", command: "go test ./...", note: "before its tests began",
			files: goProject(map[string]string{"a_test.go": goGood, "b_test.go": "//go:build never\n\n" + goBad, "calc.go": "package calc\nimport \"fmt\"\nfunc init() { fmt.Print(\"=== RUN   TestBad\\n--- PASS: TestBad (0.00s)\\n\") }\n"}),
			want:  map[string]testreport.Status{"example.com/calc TestBad": passed, "example.com/calc TestGood": passed}},
		// What a test calls prints the results of all tests and ends the process.
		{name: "code under test", command: "go test ./...", note: "no control",
			files: goProject(map[string]string{"a_test.go": goCalling + goMore, "calc.go": goEnding(`"\x16--- PASS: TestBad (0.00s)\n\x16=== RUN   TestMore\n\x16--- PASS: TestMore (0.00s)\n\x16PASS\n"`, "0")}),
			want:  map[string]testreport.Status{"example.com/calc TestBad": passed, "example.com/calc TestMore": passed}},
		{name: "code under test in any order", command: "go test -shuffle=on ./...", note: "no control",
			files: goProject(map[string]string{"a_test.go": goCalling, "calc.go": goEnding(`"\x16--- PASS: TestBad (0.00s)\n\x16PASS\n"`, "0")}), want: bad(passed)},
		{name: "code under test fails", command: "go test ./...", note: "no control",
			files: goProject(map[string]string{"a_test.go": goCalling + goMore, "calc.go": goEnding(`"\x16--- PASS: TestBad (0.00s)\n\x16=== RUN   TestMore\n\x16--- FAIL: TestMore (0.00s)\n\x16FAIL\n"`, "1")}),
			want:  map[string]testreport.Status{"example.com/calc TestBad": passed, "example.com/calc TestMore": failed}},
		{name: "code under an example", command: "go test ./...", note: "no control",
			files: goProject(map[string]string{"a_test.go": "package calc\nimport \"fmt\"\nfunc ExampleF() {\n\tfmt.Println(F())\n\t// Output: 1\n}\n", "calc.go": goEnding(`"\x16--- PASS: ExampleF (0.00s)\n\x16PASS\n"`, "0")}),
			want:  map[string]testreport.Status{"example.com/calc ExampleF": passed}},
		{name: "code under a fuzz test", command: "go test ./...", note: "no control",
			files: goProject(map[string]string{"a_test.go": "package calc\nimport \"testing\"\nfunc FuzzF(f *testing.F) { F() }\n", "calc.go": goEnding(`"\x16--- PASS: FuzzF (0.00s)\n\x16PASS\n"`, "0")}),
			want:  map[string]testreport.Status{"example.com/calc FuzzF": passed}},
		{name: "TestMain adds a test", command: "go test ./...", note: "after its tests had ended",
			files: goProject(map[string]string{"a_test.go": goGood, "b_test.go": "//go:build never\n\n" + goBad, "main_test.go": goTestMain + "code := m.Run(); fmt.Print(\"\\x16=== RUN   TestBad\\n\\x16--- PASS: TestBad (0.00s)\\n\\x16PASS\\n\"); os.Exit(code) }\n"}),
			want:  map[string]testreport.Status{"example.com/calc TestBad": passed, "example.com/calc TestGood": passed}},
	})
}

// The control changes nothing for honest tests, however they are run.
func TestGoControl(t *testing.T) {
	t.Parallel()
	good := map[string]testreport.Status{"example.com/calc TestGood": passed}
	one := goProject(map[string]string{"a_test.go": goGood})
	onMachine(t, "go", []scenario{
		{name: "external tests", command: "go test -count=2 -cpu 1,2 ./...", complete: true, passed: true, want: good,
			files: goProject(map[string]string{"a_test.go": strings.Replace(goGood, "package calc", "package calc_test", 1)})},
		{name: "both kinds", command: "go test -vet=all -cover ./...", complete: true, passed: true,
			files: goProject(map[string]string{"calc.go": "package calc\nfunc F() int { return 1 }\n", "a_test.go": goGood, "b_test.go": strings.ReplaceAll(strings.Replace(goGood, "package calc", "package calc_test", 1), "Good", "Out")}),
			want:  map[string]testreport.Status{"example.com/calc TestGood": passed, "example.com/calc TestOut": passed}},
		{name: "examples", command: "go test", complete: true, passed: true, want: map[string]testreport.Status{"example.com/calc Example": passed},
			files: goProject(map[string]string{"a_test.go": "package calc\nfunc Example() {\n println()\n // Output:\n}\n"})},
		{name: "fuzz tests", command: "go test -race=false ./...", complete: true, passed: true, want: map[string]testreport.Status{"example.com/calc ExampleF": passed, "example.com/calc FuzzF": passed, "example.com/calc FuzzF/seed#0": passed},
			files: goProject(map[string]string{"a.go": "package calc\nfunc F() {}\n", "a_test.go": "package calc\nimport \"testing\"\nfunc FuzzF(f *testing.F) { f.Add(1); f.Fuzz(func(*testing.T, int) { F() }) }\n",
				"b_test.go": "package calc_test\nimport \"example.com/calc\"\nfunc ExampleF() {\n\tcalc.F()\n\t// Output:\n}\n"})},
		{name: "fuzzing", command: "go test -fuzz=FuzzF -fuzztime=20x", complete: true, passed: true, want: map[string]testreport.Status{"example.com/calc TestGood": passed, "example.com/calc FuzzF": passed},
			files: goProject(map[string]string{"a_test.go": goGood + "func FuzzF(f *testing.F) { f.Fuzz(func(*testing.T, int) {}) }\n"})},
		{name: "benchmarks", command: "go test -bench . -benchtime 2x", complete: true, passed: true, want: good,
			files: goProject(map[string]string{"a_test.go": goGood + "func BenchmarkA(b *testing.B) { for i := 0; i < b.N; i++ {} }\n"})},
		{name: "names that are taken", command: "go test ./...", complete: true, passed: true, want: map[string]testreport.Status{"example.com/calc TestGood": passed},
			files: goProject(map[string]string{"a.go": "package main\ntype (string int; bool int; error int)\nfunc flag() {}\nfunc main() { flag() }\n", "a_test.go": "package main\nimport t \"testing\"\nvar testing, sync, regexp, runtime, once = 1, 2, 3, 4, 5\nfunc TestGood(*t.T) {}\n"})},
		{name: "pattern", command: "go test -run 'TestTable/a$' ./...", complete: true, passed: true,
			files: goProject(map[string]string{"a_test.go": "package calc\nimport \"testing\"\nfunc TestOther(t *testing.T) { t.Fail() }\nfunc TestTable(t *testing.T) { t.Run(\"a\", func(t *testing.T) {}); t.Run(\"ab\", func(t *testing.T) { t.Fail() }) }\n"}),
			want:  map[string]testreport.Status{"example.com/calc TestTable": passed, "example.com/calc TestTable/a": passed}},
		{name: "pattern with equals sign", command: "go test --run=TestG -short=true -timeout 1m -tags a,b ./... -v", complete: true, passed: true, want: good,
			files: goProject(map[string]string{"a_test.go": "//go:build a && b\n\n" + goGood + "func TestOther(t *testing.T) { t.Fail() }\n"})},
		{name: "stops at the first failure", command: "go test -failfast ./...", complete: true, passed: true,
			files: goProject(map[string]string{"a_test.go": goGood + "func TestPar(t *testing.T) { t.Parallel(); t.Run(\"in\", func(t *testing.T) {}) }\n"}),
			want:  map[string]testreport.Status{"example.com/calc TestGood": passed, "example.com/calc TestPar": passed, "example.com/calc TestPar/in": passed}},
		// Some packages check more when their tests passed.
		{name: "TestMain", command: "go test ./...", complete: true, want: map[string]testreport.Status{"example.com/calc TestGood": passed, "example.com/calc": failed},
			files: goProject(map[string]string{"a_test.go": goGood, "main_test.go": goTestMain + "if m.Run() == 0 { fmt.Println(\"a leak\"); os.Exit(1) } }\n"})},
		{name: "in any order", command: "go test -shuffle=2 ./...", complete: true, passed: true, want: map[string]testreport.Status{"example.com/calc TestGood": passed, "example.com/calc TestMore": passed},
			files: goProject(map[string]string{"a_test.go": goGood + "func TestMore(t *testing.T) {}\n"})},
		{name: "other folder", command: "go test -C sub ./...", complete: true, passed: true, want: good,
			files: map[string]string{"sub/go.mod": one["go.mod"], "sub/a_test.go": goGood}},
		{name: "only in other folder", command: "go test -C=sub ./...", only: []string{"example.com/calc TestGood"}, complete: true, passed: true, want: good,
			files: map[string]string{"sub/go.mod": one["go.mod"], "sub/a_test.go": goGood, "sub/b_test.go": goBad}},
		{name: "folder with spaces", command: "cd 'a \"b' && go test", complete: true, passed: true, want: good,
			files: map[string]string{"a \"b/go.mod": one["go.mod"], "a \"b/a_test.go": goGood}},
		{name: "vendored", command: "go test -mod=vendor ./...", complete: true, passed: true, want: good,
			files: map[string]string{"go.mod": "module example.com/calc\n\ngo 1.21\n\nrequire example.com/dep v1.0.0\n", "a_test.go": goGood, "a.go": "package calc\nimport _ \"example.com/dep\"\n",
				"vendor/modules.txt": "# example.com/dep v1.0.0\n## explicit; go 1.21\nexample.com/dep\n", "vendor/example.com/dep/d.go": "package dep\n"}},
		// A variable of the shell can have the packages.
		{name: "variables", command: "P=./sub\ngo test $P .", complete: true, passed: true, want: map[string]testreport.Status{"example.com/calc TestGood": passed, "example.com/calc/sub TestGood": passed},
			files: goProject(map[string]string{"a_test.go": goGood, "sub/a_test.go": strings.Replace(goGood, "package calc", "package sub", 1)})},
		// There is no control beside another overlay, nor in a list of files.
		{name: "overlay", command: "go test -C . -overlay o.json ./...", complete: true, passed: true, want: good,
			files: goProject(map[string]string{"a_test.go": goGood, "b_test.go": goBad, "o.json": `{"Replace": {"b_test.go": ""}}`})},
		{name: "files", command: "go test a_test.go", complete: true, passed: true, want: map[string]testreport.Status{"command-line-arguments TestGood": passed}, files: one},
		{name: "only failing", command: "go test -failfast ./...", only: []string{"example.com/calc TestBad"}, complete: true, want: map[string]testreport.Status{"example.com/calc TestBad": failed},
			files: goProject(map[string]string{"a_test.go": goBad, "b_test.go": goGood})},
	})
}

// People see the output without the control, and the exit code of their tests.
func TestGoTextHasNoControl(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		testkit.LeaveOut(t, "go")
	}
	s := scenario{command: "go test ./...", files: goProject(map[string]string{"a_test.go": goGood})}
	dir := t.TempDir()
	project := writeProject(t, s, dir)
	command := exec.Command("sh", "-c", found(t, s, project).Command(dir+"/report"))
	command.Dir, command.Env = project, append(os.Environ(), "GOFLAGS=")
	output, err := command.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if err != nil || len(lines) != 4 || lines[0] != "=== RUN   TestGood" || lines[2] != "PASS" || !strings.HasPrefix(lines[3], "ok  \texample.com/calc\t") {
		t.Errorf("%v\n%s", err, output)
	}
}
