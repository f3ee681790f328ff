package testreport_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/testreport"
)

func goProject(files map[string]string) map[string]string {
	files = maps.Clone(files)
	files["go.mod"] = "module example.com/calc\n\ngo 1.21\n"
	return files
}

func TestGo(t *testing.T) {
	t.Parallel()
	onMachine(t, "go", []scenario{
		{name: "passing", command: "go test ./...", complete: true, passed: true,
			files: goProject(map[string]string{
				"a_test.go":     "package calc\nimport \"testing\"\nfunc TestOne(t *testing.T) {}\nfunc TestTable(t *testing.T) { t.Run(\"a b\", func(t *testing.T) {}) }\n",
				"sub/s_test.go": "package sub\nimport \"testing\"\nfunc TestSub(t *testing.T) { t.Parallel(); t.Log(\"x < y\") }\n",
				"none/n.go":     "package none\n",
			}),
			want: map[string]testreport.Status{"example.com/calc TestOne": passed, "example.com/calc TestTable": passed, "example.com/calc TestTable/a_b": passed, "example.com/calc/sub TestSub": passed}},
		{name: "failing", command: "go test -race=false ./...", complete: true,
			files: goProject(map[string]string{
				"a_test.go":     "package calc\nimport \"testing\"\nfunc TestGood(t *testing.T) {}\nfunc TestBad(t *testing.T) { t.Error(\"wrong\") }\nfunc TestSkip(t *testing.T) { t.Skip(\"later\") }\n",
				"sub/s_test.go": "package sub\nfunc broken(\n",
			}),
			want: map[string]testreport.Status{"example.com/calc TestGood": passed, "example.com/calc TestBad": failed, "example.com/calc TestSkip": skipped, "example.com/calc/sub": failed}},
		{name: "all skipped", command: "go test", complete: true,
			files: goProject(map[string]string{"a_test.go": "package calc\nimport \"testing\"\nfunc TestSkip(t *testing.T) { t.Skip(\"later\") }\n"}),
			want:  map[string]testreport.Status{"example.com/calc TestSkip": skipped}},
		{name: "none", command: "go test ./...", note: "no test was found", files: goProject(map[string]string{"a.go": "package calc\n"})},
		{name: "crash", command: "go test ./...", complete: true,
			files: goProject(map[string]string{"a_test.go": "package calc\nimport \"testing\"\nfunc TestGood(t *testing.T) {}\nfunc TestCrash(t *testing.T) { var m map[string]int; m[\"a\"] = 1 }\nfunc TestNever(t *testing.T) {}\n"}),
			want:  map[string]testreport.Status{"example.com/calc TestGood": passed, "example.com/calc TestCrash": failed}},
		{name: "exit", command: "go test ./...", note: "ended before they were done",
			files: goProject(map[string]string{"a_test.go": "package calc\nimport (\"testing\"; \"syscall\")\nfunc TestGood(t *testing.T) {}\nfunc TestExit(t *testing.T) { syscall.Exit(0) }\nfunc TestBad(t *testing.T) { t.Error(\"wrong\") }\n"}),
			want:  map[string]testreport.Status{"example.com/calc TestGood": passed, "example.com/calc TestExit": passed}},
		{name: "exit says PASS", command: "go test ./...", note: "did not end",
			files: goProject(map[string]string{"a_test.go": "package calc\nimport (\"testing\"; \"syscall\"; \"fmt\")\nfunc TestGood(t *testing.T) {}\nfunc TestExit(t *testing.T) { fmt.Print(\"\\n\\x16PASS\\n\"); syscall.Exit(0) }\n"}),
			want:  map[string]testreport.Status{"example.com/calc TestGood": passed, "example.com/calc TestExit": failed}},
		// Text without the marker is output.
		{name: "forged", command: "go test ./...", complete: true,
			files: goProject(map[string]string{"a_test.go": "package calc\nimport (\"testing\"; \"fmt\")\nfunc TestA(t *testing.T) { fmt.Println(\"=== RUN   TestFake\\n--- PASS: TestFake (0.00s)\\n--- PASS: TestBad (0.00s)\\nPASS\\nok  \\texample.com/calc\\t0.1s\") }\nfunc TestBad(t *testing.T) { t.Error(\"wrong\") }\n"}),
			want:  map[string]testreport.Status{"example.com/calc TestA": passed, "example.com/calc TestBad": failed}},
		// Before the first marker text is believed by go test, with it always.
		{name: "forged early", command: "go test ./...", note: "in no _test.go file",
			files: goProject(map[string]string{"a_test.go": "package calc\nimport \"fmt\"\nfunc init() { fmt.Println(\"=== RUN   TestFake\\n--- PASS: TestFake (0.00s)\") }\n"})},
		{name: "forged marker", command: "go test ./...", note: "more results than it ran",
			files: goProject(map[string]string{"a_test.go": "package calc\nimport (\"testing\"; \"fmt\")\nfunc TestA(t *testing.T) { fmt.Println(\"\\x16--- PASS: TestBad (0.00s)\") }\nfunc TestBad(t *testing.T) { t.Error(\"wrong\") }\n"}),
			want:  map[string]testreport.Status{"example.com/calc TestA": passed, "example.com/calc TestBad": failed}},
		// However long the files are.
		{name: "forged beside a long file", command: "go test ./...", note: "reports TestFake, which is in no _test.go file",
			files: goProject(map[string]string{"a_test.go": "package calc\nimport (\"testing\"; \"fmt\")\nfunc TestA(t *testing.T) { fmt.Println(\"\\x16=== RUN   TestFake\\n\\x16--- PASS: TestFake (0.00s)\") }\n",
				"b_test.go": "package calc\nimport \"testing\"\n// " + strings.Repeat("long ", 600_000) + "\n" + strings.Repeat("// many\n", 300_000) + "func TestB(*testing.T) {}\n"}),
			want: map[string]testreport.Status{"example.com/calc TestA": passed, "example.com/calc TestB": passed}},
		{name: "does not start", command: "go test ./...", complete: true, files: map[string]string{"a_test.go": "package calc\n"},
			want: map[string]testreport.Status{"./...": failed}},
		{name: "modules", command: "go list -f '{{.Dir}}/...' -m | xargs go test", complete: true, passed: true,
			files: map[string]string{"go.work": "go 1.21\nuse (\n./a\n./b\n)\n", "a/go.mod": "module a.test/a\n\ngo 1.21\n", "b/go.mod": "module b.test/b\n\ngo 1.21\n",
				"a/a_test.go": "package a\nimport \"testing\"\nfunc TestA(t *testing.T) {}\n", "b/b_test.go": "package b\nimport \"testing\"\nfunc TestB(t *testing.T) {}\n"},
			want: map[string]testreport.Status{"a.test/a TestA": passed, "b.test/b TestB": passed}},
		{name: "only", command: "go test -v ./...", only: []string{"example.com/calc TestTable/a_b"}, complete: true, passed: true,
			files: goProject(map[string]string{
				"a_test.go":     "package calc\nimport \"testing\"\nfunc TestOne(t *testing.T) {}\nfunc TestTable(t *testing.T) { t.Run(\"a b\", func(t *testing.T) {}) }\n",
				"sub/s_test.go": "package sub\nimport \"testing\"\nfunc TestTable(t *testing.T) {}\n",
			}),
			want: map[string]testreport.Status{"example.com/calc TestTable": passed, "example.com/calc TestTable/a_b": passed}},
	})
}
