package testreport

import (
	"crypto/rand"
	_ "embed" // the driver
	"fmt"
	"slices"
	"strings"
)

//go:embed drivers/go.sh
var goDriver string

// goControl has the names of the controls of a run: a test that is the first of its
// package, and an example that is the last, as examples run after all tests. Both are
// empty if there are none.
type goControl struct{ first, last string }

// goFirstCode is what follows the package clause of the first control. It runs two tests
// that have to fail, before all others, as its file is the first by name. The testing
// package runs them as it runs all tests but apart from them, so that neither the
// result of the package nor what a TestMain function sees changes. Only -failfast sees
// them: it is switched off. All names are unusual, and none is predeclared, as the
// package may declare those anew.
const goFirstCode = `
import (
	flag%[1]s "flag"
	regexp%[1]s "regexp"
	runtime%[1]s "runtime"
	sync%[1]s "sync"
	testing%[1]s "testing"
)

var once%[1]s sync%[1]s.Once

func %[1]s(*testing%[1]s.T) {
	once%[1]s.Do(func() {
		defer runtime%[1]s.GOMAXPROCS(runtime%[1]s.GOMAXPROCS(0))
		_ = flag%[1]s.Set("test.failfast", "false")
		testing%[1]s.RunTests(regexp%[1]s.MatchString, []testing%[1]s.InternalTest{
			{Name: "%[1]sError", F: func(t *testing%[1]s.T) { t.Error("control") }},
			{Name: "%[1]sFailNow", F: func(t *testing%[1]s.T) { t.FailNow() }},
		})
	})
}
`

// goLastCode does the same after all others. What an example prints is kept from
// standard output, so it puts back what that was when the program started.
const goLastCode = `
import (
	os%[1]s "os"
	regexp%[1]s "regexp"
	runtime%[1]s "runtime"
	testing%[1]s "testing"
)

var stdout%[1]s = os%[1]s.Stdout

func %[1]s() {
	defer runtime%[1]s.GOMAXPROCS(runtime%[1]s.GOMAXPROCS(0))
	defer func(kept *os%[1]s.File) { os%[1]s.Stdout = kept }(os%[1]s.Stdout)
	os%[1]s.Stdout = stdout%[1]s
	testing%[1]s.RunTests(regexp%[1]s.MatchString, []testing%[1]s.InternalTest{
		{Name: "%[1]sError", F: func(t *testing%[1]s.T) { t.Error("control") }},
		{Name: "%[1]sFailNow", F: func(t *testing%[1]s.T) { t.FailNow() }},
	})
	// Output:
}
`

// failing are the names of the tests that have to fail.
func (control goControl) failing() []string {
	return []string{control.first + "Error", control.first + "FailNow", control.last + "Error", control.last + "FailNow"}
}

// owns says whether a test is part of a control.
func (control goControl) owns(t *goCase) bool {
	return strings.HasPrefix(t.name, control.first) || strings.HasPrefix(t.name, control.last)
}

// newGoControl makes the names of the controls, which code that is tested does not know.
// There are none for a command line that leaves no room for them: an overlay of its own,
// or files in place of packages.
func newGoControl(c call) goControl {
	if strings.Contains(c.line, "-overlay") || slices.ContainsFunc(c.words, func(w word) bool {
		return strings.Contains(w.text, "-overlay") || strings.HasSuffix(w.text, ".go")
	}) {
		return goControl{}
	}
	return goControl{first: "TestControl" + rand.Text(), last: "Example_control" + rand.Text()}
}

// goDriverFiles are the driver that adds the controls to each package, and what it
// needs.
func goDriverFiles(dir string, control goControl) []driverFile {
	// For a package with tests: the names of the packages that the two files belong to,
	// and the entries of an overlay. The tests of a package come before those of the
	// package around it, and files are in the order of their names (the letter is U+FF5A).
	template := fmt.Sprintf(`{{if and (or .TestGoFiles .XTestGoFiles) (not .Standard)}}{{$around := printf "%%s_test" .Name}}`+
		`{{$first := .Name}}{{if not .TestGoFiles}}{{$first = $around}}{{end}}{{$last := .Name}}{{if .XTestGoFiles}}{{$last = $around}}{{end}}`+
		`{{$first}} {{$last}} {{printf "%%q" (printf "%%s/0%s_test.go" .Dir)}}:{{printf "%%q" (printf "%%s/first-%%s.txt" %q $first)}},`+
		`{{printf "%%q" (printf "%%s/ｚ%s_test.go" .Dir)}}:{{printf "%%q" (printf "%%s/last-%%s.txt" %q $last)}}{{end}}`, control.first, dir, control.last, dir)
	pattern := ""
	if control.first != "" {
		pattern = "^" + control.first + "|^" + control.last
	}
	variables := "folder=" + quote(dir) + "\ncontrols=" + quote(pattern) + "\ntemplate=" + quote(template) + "\n"
	return []driverFile{{"go.sh", variables + goDriver}, {"first.txt", fmt.Sprintf(goFirstCode, control.first)}, {"last.txt", fmt.Sprintf(goLastCode, control.last)}}
}

// checkControls looks whether the controls of a package were reported, as they have to
// be where any test is, and whether nothing was before the first or after the last.
func (g *goReader) checkControls(p *goPackage, c call) {
	if c.control.first == "" || !slices.ContainsFunc(p.ordered, func(t *goCase) bool { return !c.control.owns(t) }) {
		return
	}
	for i, name := range c.control.failing() {
		switch t := p.tests[name]; {
		case t == nil && i > 1 && p.crashed():
		case t == nil:
			g.doubt("%s: no control ran: a test that has to fail was not reported", p.name)
			return
		case t.result != "fail":
			g.doubt("a control, which has to fail, is reported as %q by %s: something changed its results", t.result, p.name)
			return
		}
	}
	g.checkOrder(p, c)
	p.ordered = slices.DeleteFunc(p.ordered, c.control.owns)
}

// checkOrder looks whether the controls were the first and the last. Benchmarks come after
// them, and what -fuzz tries.
func (g *goReader) checkOrder(p *goPackage, c call) {
	line := c.line + strings.Join(texts(c.words), " ")
	if first := p.ordered[0]; !c.control.owns(first) && !strings.Contains(line, "-shuffle") {
		g.doubt("%s reports %s before its tests began: something printed it", p.name, first.name)
	}
	if p.crashed() || strings.Contains(line, "-fuzz") {
		return
	}
	for _, t := range slices.Backward(p.ordered) {
		if c.control.owns(t) {
			return
		}
		if !strings.HasPrefix(t.name, "Benchmark") {
			g.doubt("%s reports %s after its tests had ended: something printed it", p.name, t.name)
			return
		}
	}
}

// crashed says whether the program ended in the middle of its tests with an exit code
// that says so: the testing package then does not print its last line.
func (p *goPackage) crashed() bool { return p.result == "fail" && !p.failed }
