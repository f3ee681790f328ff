package testreport

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// goTest reads the events of go test -json.
//
// The go command takes them from what the test binary prints (cmd/internal/test2json).
// Since Go 1.20 the testing package begins its own lines with ^V (0x16), and after the
// first such line the converter believes no line without it: a test that prints
// "--- PASS: TestX" is only output. Five things get past that, and this is what is
// done about them:
//   - A test binary is its own reporter: an init or TestMain function can print results,
//     with ^V or before it, and end the process, or change what the tests print. So each
//     package gets controls (golang_control.go): tests that have to fail, with names
//     that are new in each run.
//   - Results can be printed before those of the tests. So no test may be reported before
//     the first control.
//   - Code that a test calls can print the results of all tests and end the process. So
//     the last that a package reports has to be a control, too.
//   - They can be printed beside those of the tests. A name that is in no _test.go file
//     is not accepted, and a test with more results than it ran is a contradiction.
//   - A process that ends in the middle with exit code 0 (syscall.Exit; testing itself
//     catches os.Exit) leaves no result of the package: test2json gives that event to
//     the test that ran. So a result of the package is needed, and the line PASS,
//     which testing prints last.
//
// Code that looks for the controls, in its own binary or in the arguments of a TestMain
// function, and then prints with ^V what that would print, cannot be seen.
type goTest struct{}

func (goTest) name() string { return "go test" }

func (goTest) matches(words []string) bool {
	if len(words) < 2 || path.Base(words[0]) != "go" || words[1] != "test" {
		return false
	}
	for _, w := range words[2:] {
		flag, _, _ := strings.Cut(strings.TrimPrefix(w, "-"), "=")
		if slices.Contains([]string{"c", "list", "json", "n", "exec", "args", "o"}, strings.TrimPrefix(flag, "-")) && w != flag {
			return false
		}
	}
	return true
}

const goReport = "go.json"

// goText prints the output in the events as go test would have, but for the control.
const goText = `sed -n '/"Test":"%first/d; /"Test":"%last/d; s/^{.*"Output":"\(.*\)"}$/\1/p' %file | sed 's/\\n$//; s/\\t/	/g; s/\\"/"/g; s/\\u003c/</g; s/\\u003e/>/g; s/\\u0026/\&/g; s/\\\\/\\/g'`

func (goTest) command(c call, dir string, only []string) (string, bool) {
	if c.script {
		return "", false
	}
	before, program, arguments := c.line[:c.words[0].start], c.line[c.words[0].start:c.words[1].end], c.line[c.words[1].end:]
	if len(only) > 0 {
		selection, ok := goOnly(c.words[2:], only)
		if !ok {
			return "", false
		}
		arguments = " " + selection
		if strings.Contains(before, "xargs") {
			before = ""
		}
	}
	file := quote(dir + "/" + goReport)
	text := strings.NewReplacer("%file", file, "%first", cmp.Or(c.control.first, "-"), "%last", cmp.Or(c.control.last, "-")).Replace(goText) // no test is called -
	line := before + "sh " + quote(dir+"/go.sh") + " " + program + arguments
	return shellScript(dir, goDriverFiles(dir, c.control), line+" >"+file+"\ncode=$?\n"+text+"\nexit $code"), true
}

var goFlagsKept = lazyregexp.New(`^--?(C=.*|race|short|v|mod=.*|tags=.*|timeout=.*|p=.*|cpu=.*|shuffle=.*|ldflags=.*|gcflags=.*|msan|asan|trimpath|failfast)$`)

// goOnly selects tests: whole top-level tests, as a pattern for several subtests of
// different tests would select others too.
func goOnly(words []word, only []string) (string, bool) {
	var packages, tests []string
	for _, name := range only {
		pkg, test, found := strings.Cut(name, " ")
		if !found || pkg == "command-line-arguments" { // it did not build, or is some files
			return "", false
		}
		test, _, _ = strings.Cut(test, "/")
		packages, tests = append(packages, pkg), append(tests, regexp.QuoteMeta(test))
	}
	slices.Sort(packages)
	slices.Sort(tests)
	arguments := []string{}
	for i, w := range words {
		if goFlagsKept.MatchString(w.text) {
			arguments = append(arguments, w.text)
		}
		if slices.Contains([]string{"-C", "-tags", "-timeout"}, w.text) && i+1 < len(words) {
			arguments = append(arguments, w.text, words[i+1].text)
		}
	}
	arguments = append(arguments, "-count=1", "-run", "^("+strings.Join(slices.Compact(tests), "|")+")$")
	return quoteAll(append(arguments, slices.Compact(packages)...)), true
}

// goNotBuilt is what Go says before version 1.24 in place of an event.
var goNotBuilt = lazyregexp.New(`^FAIL\t(\S+) \[(?:build|setup) failed\]\n$`)

type goEvent struct {
	Action, Package, Test, Output, FailedBuild, ImportPath string
}

type goPackage struct {
	name    string
	result  string
	pass    bool // the line PASS was printed
	failed  bool // the line FAIL was
	output  strings.Builder
	tests   map[string]*goCase
	ordered []*goCase
}

type goCase struct {
	name   string
	runs   int
	ends   int
	result string
	output strings.Builder
}

type goReader struct {
	*builder
	packages map[string]*goPackage
	ordered  []*goPackage
	builds   map[string]*strings.Builder
}

func (goTest) read(c call, r run) Report {
	g := goReader{builder: newBuilder(), packages: map[string]*goPackage{}, builds: map[string]*strings.Builder{}}
	data, err := readFile(r.files, goReport, maxBytes)
	if err != nil {
		g.doubt("the report of go test cannot be read: %v", err)
	}
	for text := range bytes.Lines(data) {
		var e goEvent
		if found := goNotBuilt.FindSubmatch(text); found != nil {
			e = goEvent{Action: "fail", Package: string(found[1])}
		} else if len(text) > maxLine || json.Unmarshal(text, &e) != nil {
			g.doubt("the report of go test has a line that is not an event")
			break
		}
		g.event(e)
	}
	if c.unread != nil {
		g.doubt("the names of the tests cannot be checked: %v", c.unread)
	}
	for _, p := range g.ordered {
		g.checkControls(p, c)
		g.finish(p, c.functions)
	}
	return g.report()
}

func (g *goReader) event(e goEvent) {
	if e.ImportPath != "" {
		if g.builds[e.ImportPath] == nil && len(g.builds) < MaxCases {
			g.builds[e.ImportPath] = &strings.Builder{}
		}
		keep(g.builds[e.ImportPath], e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := g.packages[e.Package]
	if p == nil {
		p = &goPackage{name: e.Package, tests: map[string]*goCase{}}
		g.packages[e.Package] = p
		g.ordered = append(g.ordered, p)
	}
	if e.Test == "" {
		switch e.Action {
		case "output":
			p.pass, p.failed = p.pass || e.Output == "PASS\n", p.failed || e.Output == "FAIL\n"
			keep(&p.output, e.Output)
		case "pass", "fail", "skip":
			p.result = e.Action
			keep(&p.output, text(g.builds[e.FailedBuild]))
		}
		return
	}
	p.test(g, e)
}

func (p *goPackage) test(g *goReader, e goEvent) {
	t := p.tests[e.Test]
	if t == nil {
		t = &goCase{name: e.Test}
		p.tests[e.Test] = t
		p.ordered = append(p.ordered, t)
	}
	switch e.Action {
	case "run":
		t.runs++
	case "output":
		keep(&t.output, e.Output)
	case "pass", "fail", "skip", "bench":
		if t.ends++; t.ends > t.runs {
			g.doubt("%s %s has more results than it ran: something printed one", p.name, t.name)
		}
		if t.result != "fail" {
			t.result = e.Action
		}
	}
}

// finish adds the cases of a package. With -count a test runs more than once, and one
// failure is a failure.
func (g *goReader) finish(p *goPackage, known map[string]bool) {
	failed := g.addCases(p, known)
	switch {
	case p.result == "":
		g.doubt("the tests of %s ended before they were done", p.name)
	case p.result == "fail" && !failed: // it did not build, or ended outside a test
		g.add(Case{Name: p.name, Status: Failed, Message: p.output.String()})
	case p.result == "pass" && failed:
		g.doubt("%s passed with tests that failed", p.name)
	case p.result == "pass" && len(p.ordered) > 0 && !p.pass:
		g.doubt("the tests of %s ended without saying PASS", p.name)
	}
}

// addCases says whether one of them failed.
func (g *goReader) addCases(p *goPackage, known map[string]bool) bool {
	failed := false
	for _, t := range p.ordered {
		function, _, _ := strings.Cut(t.name, "/")
		if known != nil && !known[function] {
			g.doubt("%s reports %s, which is in no _test.go file", p.name, function)
			continue
		}
		if t.result == "" && p.result == "pass" && strings.HasPrefix(function, "Benchmark") {
			continue // those that ended well have no result
		}
		status := map[string]Status{"pass": Passed, "fail": Failed, "skip": Skipped, "bench": Passed}[t.result]
		if status == "" {
			g.doubt("%s %s did not end", p.name, t.name)
			status = Failed
		}
		failed = failed || status == Failed
		c := Case{Name: p.name + " " + t.name, Status: status}
		if status != Passed {
			c.Message = t.output.String()
		}
		g.add(c)
	}
	return failed
}

// keep adds to a text that is kept as a message, up to the limit of messages.
func keep(b *strings.Builder, text string) {
	if b != nil && b.Len() < MaxMessage {
		b.WriteString(text)
	}
}

func text(b *strings.Builder) string {
	if b == nil {
		return ""
	}
	return b.String()
}
