package testreport_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"

	"github.com/toryo-dev/toryo/internal/testreport"
)

// commands are one command line for each runner, and the name of the file it is read
// from.
var commands = map[string]string{
	"go test ./...": "go.json", "python -m unittest": "unittest.jsonl", "pytest": "pytest-main.jsonl", "node --test": "node.jsonl",
	"npx jest": "results.json", "npx vitest": "results.json", "npx mocha": "mocha.jsonl", "bun test": "bun.xml", "deno test": "deno.xml", "cargo test": "", "mvn test": "1.xml", "gradle test": "1.xml",
	"bundle exec rspec": "rspec.json", "vendor/bin/phpunit": "phpunit.xml", "dotnet test": "a.trx",
}

var goControls = regexp.MustCompile(`(TestControl|Example_control)[0-9A-Z]{26}`)

// withControls puts the names of the controls of a run in a report of go test.
func withControls(runner testreport.Runner, data []byte) []byte {
	for _, control := range slices.Compact(slices.Sorted(slices.Values(goControls.FindAllString(runner.Command("/r"), -1)))) {
		data = bytes.ReplaceAll(data, []byte(goControls.FindStringSubmatch(control)[1]), []byte(control))
	}
	return data
}

func readOne(t testing.TB, command string, data []byte, exit int) testreport.Report {
	t.Helper()
	runner, ok := testreport.Find(command, nil)
	if !ok {
		t.Fatalf("%q is not found", command)
	}
	data = withControls(runner, data)
	files := fstest.MapFS{}
	if name := commands[command]; name != "" {
		files[name] = &fstest.MapFile{Data: data}
		return runner.Read(nil, exit, files)
	}
	return runner.Read(data, exit, files)
}

// Nothing to read, or something that is not a report, is never a pass.
func TestNoReportIsNoPass(t *testing.T) {
	t.Parallel()
	for command := range commands {
		for _, data := range []string{"", "OK", "{}", "[]", "null", "{\"end\":0}\n", "<testsuites/>", "<TestRun/>", "<testsuite tests=\"0\"/>", "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"} {
			if got := readOne(t, command, []byte(data), 0); got.Passed() || got.Complete || got.Note == "" {
				t.Errorf("%s with %q is %+v", command, data, got)
			}
		}
		runner, _ := testreport.Find(command, nil)
		if got := runner.Read(nil, 0, nil); got.Passed() || got.Complete || got.Note == "" || got.Runner == "" {
			t.Errorf("%s without files is %+v", command, got)
		}
	}
}

// Reports that are cut anywhere but at their very end are not complete.
func TestTruncatedReports(t *testing.T) {
	t.Parallel()
	for command, whole := range wholeReports() {
		if got := readOne(t, command, []byte(whole), 0); !got.Passed() {
			t.Errorf("%s: the whole report is %+v", command, got)
			continue
		}
		end := len(strings.TrimRight(whole, "\n"))
		for at := range end {
			if got := readOne(t, command, []byte(whole[:at]), 0); got.Passed() {
				t.Errorf("%s: a report cut at %d of %d passes", command, at, end)
				break
			}
		}
	}
}

// wholeReports are reports of one test that passed, for the runners that are read
// from one file.
func wholeReports() map[string]string {
	const events = "{\"case\":\"a\",\"status\":\"passed\"}\n{\"control\":\"failed\"}\n{\"end\":1}\n"
	return map[string]string{
		"go test ./...": `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestControlError"}
{"Action":"fail","Package":"p","Test":"TestControlError"}
{"Action":"run","Package":"p","Test":"TestControlFailNow"}
{"Action":"fail","Package":"p","Test":"TestControlFailNow"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"Example_controlError"}
{"Action":"fail","Package":"p","Test":"Example_controlError"}
{"Action":"run","Package":"p","Test":"Example_controlFailNow"}
{"Action":"fail","Package":"p","Test":"Example_controlFailNow"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"pass","Package":"p"}
`,
		"python -m unittest": events, "pytest": events, "node --test": events, "npx mocha": events,
		"cargo test":         "     Running unittests src/lib.rs (target/debug/deps/calc-c6626fb655a8d231)\n\nrunning 1 test" + "\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
		"mvn test":           `<testsuite tests="1"><testcase classname="C" name="a"/></testsuite>`,
		"deno test":          `<testsuites tests="1"><testsuite tests="1"><testcase classname="./a.ts" name="a"/></testsuite></testsuites>`,
		"gradle test":        `<testsuite tests="1"><testcase classname="C" name="a"/></testsuite>`,
		"vendor/bin/phpunit": `<testsuites><testsuite tests="1"><testcase class="C" name="a" assertions="1"/></testsuite></testsuites>`,
		"bundle exec rspec":  `{"examples":[{"full_description":"a","status":"passed","file_path":"./a_spec.rb"}],"summary":{"example_count":1}}`,
		"dotnet test":        `<TestRun><Results><UnitTestResult testName="C.a" outcome="Passed"/></Results><ResultSummary outcome="Completed"><Counters total="1"/></ResultSummary></TestRun>`,
	}
}

// The exit code and the report have to agree.
func TestExitCodeHasToAgree(t *testing.T) {
	t.Parallel()
	for command, whole := range wholeReports() {
		if got := readOne(t, command, []byte(whole), 1); got.Passed() || got.Note == "" {
			t.Errorf("%s passed with exit code 1: %+v", command, got)
		}
	}
	failing := `{"examples":[{"full_description":"a","status":"failed","file_path":"./a_spec.rb"},{"full_description":"b","status":"passed","file_path":"./a_spec.rb"}],"summary":{"example_count":2,"failure_count":1}}`
	if got := readOne(t, "bundle exec rspec", []byte(failing), 0); got.Passed() || got.Note == "" || len(got.Failing()) != 1 {
		t.Errorf("a failed test with exit code 0 is %+v", got)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	r := testreport.Report{Complete: true, Cases: []testreport.Case{{Name: "a", Status: passed}, {Name: "b", Status: failed}, {Name: "c", Status: skipped}, {Name: "d", Status: passed}}}
	ran, good, bad, left := r.Counts()
	if ran != 3 || good != 2 || bad != 1 || left != 1 || r.Passed() || len(r.Failing()) != 1 || r.Failing()[0] != "b" {
		t.Errorf("got %d %d %d %d %v", ran, good, bad, left, r.Failing())
	}
	r.Cases = r.Cases[2:3]
	if r.Passed() {
		t.Error("skipped tests passed")
	}
}

// Names and messages are made printable and are cut, and two long names stay apart.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	var lines strings.Builder
	for _, name := range []string{"a\x1b[31m\u202e\n\x00b", long + "1", long + "2", "same", "same"} {
		fmt.Fprintf(&lines, "{\"case\":%q,\"status\":\"failed\",\"message\":%q}\n", strings.ReplaceAll(strings.ReplaceAll(name, "\x1b", "E"), "\x00", ""), strings.Repeat("m\n", 9000))
	}
	lines.WriteString("{\"case\":\"c\\u001b[31m\\u202ed\\ne\",\"status\":\"passed\"}\n{\"control\":\"failed\"}\n{\"end\":6}\n")
	got := readOne(t, "pytest", []byte(lines.String()), 1)
	seen := map[string]bool{}
	for _, c := range got.Cases {
		if len(c.Name) > testreport.MaxName || len(c.Message) > testreport.MaxMessage || seen[c.Name] || strings.ContainsFunc(c.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("got the case %q", c.Name)
		}
		seen[c.Name] = true
	}
	if len(got.Cases) != 6 || !got.Complete {
		t.Errorf("%d cases, %q", len(got.Cases), got.Note)
	}
}

func TestTooManyCases(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for i := range testreport.MaxCases + 10 {
		fmt.Fprintf(&lines, "{\"case\":\"t%d\",\"status\":\"passed\"}\n", i)
	}
	fmt.Fprintf(&lines, "{\"control\":\"failed\"}\n{\"end\":%d}\n", testreport.MaxCases+10)
	if got := readOne(t, "pytest", []byte(lines.String()), 0); len(got.Cases) != testreport.MaxCases || got.Complete || got.Passed() {
		t.Errorf("%d cases, complete %v", len(got.Cases), got.Complete)
	}
}

// Errors outside of tests are in what bun and deno print, with colours or without.
func TestErrorsOutsideOfTests(t *testing.T) {
	t.Parallel()
	for command, output := range map[string]string{
		"bun test":  "\n 1 pass\x1b[0m\n\x1b[0m\x1b[31m 1 fail\x1b[0m\n \x1b[0m\x1b[31m1 error\x1b[0m\nRan 2 tests across 2 files.\n",
		"deno test": "\x1b[1mFAILURES\x1b[0m\n\n./sub/b_test.js (uncaught error)\n\n",
	} {
		runner, _ := testreport.Find(command, nil)
		report := `<testsuites tests="1"><testsuite name="a.js" tests="1"><testcase classname="./a.js" name="a" file="a.js"/></testsuite></testsuites>`
		got := runner.Read([]byte(output), 1, fstest.MapFS{commands[command]: {Data: []byte(report)}})
		if len(got.Failing()) != 1 || len(got.Cases) != 2 {
			t.Errorf("%s: got %+v", command, got)
		}
	}
}

func TestHostileXML(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"entities": `<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite tests="1"><testcase classname="C" name="&x;"/></testsuite>`,
		"deep":     strings.Repeat("<testsuite tests=\"1\">", 100_000) + `<testcase classname="C" name="a"/>`,
		"two":      `<testsuite tests="2"><testcase classname="C" name="a"/></testsuite>`,
		"encoding": `<?xml version="1.0" encoding="x-unknown"?><testsuite tests="1"><testcase classname="C" name="a"/></testsuite>`,
	} {
		if got := readOne(t, "mvn test", []byte(data), 0); got.Complete || got.Passed() {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// No bytes make a reader panic, and what is read keeps to the limits.
func FuzzRead(f *testing.F) {
	for command, whole := range wholeReports() {
		f.Add(command, []byte(whole), 0)
	}
	f.Add("npx jest", []byte(`{"numTotalTests":1,"numPassedTests":1,"success":true,"testResults":[{"name":"/a","assertionResults":[{"title":"a","status":"passed"}]}]}`), 0)
	f.Fuzz(func(t *testing.T, command string, data []byte, exit int) {
		if _, known := commands[command]; !known {
			return
		}
		got := readOne(t, command, data, exit)
		for _, c := range got.Cases {
			if c.Name == "" || len(c.Name) > testreport.MaxName+20 || len(c.Message) > testreport.MaxMessage*3 || strings.ContainsFunc(c.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Fatalf("got the case %q", c.Name)
			}
		}
		if got.Passed() && (exit != 0 || len(got.Failing()) > 0 || got.Note != "") {
			t.Fatalf("got %+v", got)
		}
	})
}

// Find is given command lines that a model wrote.
func FuzzFind(f *testing.F) {
	f.Add("cd a && npm test", `{"scripts": {"test": "jest"}}`)
	f.Add("make test", "X = $(Y)\nY := go\nexport Z = $(X)\ntest: a\n\t@$(X) test\na:\n\ttrue\n")
	f.Fuzz(func(_ *testing.T, command, manifest string) {
		runner, ok := testreport.Find(command, fstest.MapFS{"package.json": &fstest.MapFile{Data: []byte(manifest)}, "Makefile": &fstest.MapFile{Data: []byte(manifest)}, "a_test.go": &fstest.MapFile{Data: []byte("func TestA(")}})
		if ok {
			_ = runner.Command("/r")
			_, _ = runner.Only("/r", []string{"a b", command, manifest})
		}
	})
}

// unreadable is a project with a test file that cannot be opened.
type unreadable struct{ fstest.MapFS }

func (u unreadable) Open(name string) (fs.File, error) {
	if name == "b_test.go" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.MapFS.Open(name)
}

// Where the names of the tests cannot be known, any name could be printed.
func TestGoFunctionsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	project := fstest.MapFS{"a_test.go": {Data: []byte("package a\nfunc TestA(")}, "b_test.go": {Data: []byte("package a\n")}, "link_test.go": {Mode: fs.ModeSocket}}
	for name, files := range map[string]fs.FS{"": project, "b_test.go": unreadable{project}} {
		runner, _ := testreport.Find("go test ./...", files)
		data := withControls(runner, []byte(wholeReports()["go test ./..."]))
		got := runner.Read(nil, 0, fstest.MapFS{"go.json": {Data: data}})
		if got.Passed() != (name == "") || !strings.Contains(got.Note, name) {
			t.Errorf("%q: got %+v", name, got)
		}
	}
}
