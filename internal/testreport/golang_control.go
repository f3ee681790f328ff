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

// goControlCode is what follows the package clause of a control. It runs two tests
// that have to fail, before all others, as its file is the first by name. The testing
// package runs them as it runs all tests but apart from them, so that neither the
// result of the package nor what a TestMain function sees changes. Only -failfast sees
// them: it is switched off. All names are unusual, and none is predeclared, as the
// package may declare those anew.
const goControlCode = `
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

// goControls are the names of the tests that have to fail.
func goControls(control string) []string { return []string{control + "Error", control + "FailNow"} }

// newGoControl is the name of a control, which code that is tested does not know. It
// is empty for a command line that leaves no room for one: an overlay of its own, or
// files in place of packages.
func newGoControl(c call) string {
	if strings.Contains(c.line, "-overlay") || slices.ContainsFunc(c.words, func(w word) bool {
		return strings.Contains(w.text, "-overlay") || strings.HasSuffix(w.text, ".go")
	}) {
		return ""
	}
	return "TestControl" + rand.Text()
}

// goDriverFiles are the driver that adds the control to each package, and what it
// needs.
func goDriverFiles(dir, control string) []driverFile {
	// For a package with tests: the package clause, and an entry of an overlay.
	template := fmt.Sprintf(`{{if and (or .TestGoFiles .XTestGoFiles) (not .Standard)}}{{$name := .Name}}{{if not .TestGoFiles}}{{$name = printf "%%s_test" .Name}}{{end}}`+
		`{{$name}} {{printf "%%q" (printf "%%s/0%s_test.go" .Dir)}}:{{printf "%%q" (printf "%%s/%%s.go.txt" %q $name)}}{{end}}`, control, dir)
	variables := "folder=" + quote(dir) + "\ncontrol=" + control + "\ntemplate=" + quote(template) + "\n"
	return []driverFile{{"go.sh", variables + goDriver}, {"control.txt", fmt.Sprintf(goControlCode, control)}}
}

// checkControl looks whether the control of a package was reported, as it has to be
// where any test is, and whether it was the first.
func (g *goReader) checkControl(p *goPackage, c call) {
	ours := func(t *goCase) bool { return strings.HasPrefix(t.name, c.control) }
	if c.control == "" || !slices.ContainsFunc(p.ordered, func(t *goCase) bool { return !ours(t) }) {
		return
	}
	for _, name := range goControls(c.control) {
		switch t := p.tests[name]; {
		case t == nil:
			g.doubt("%s: no control ran: a test that has to fail was not reported", p.name)
			return
		case t.result != "fail":
			g.doubt("a control, which has to fail, is reported as %q by %s: something changed its results", t.result, p.name)
			return
		}
	}
	if first := p.ordered[0]; !ours(first) && !strings.Contains(c.line+strings.Join(texts(c.words), " "), "-shuffle") {
		g.doubt("%s reports %s before its tests began: something printed it", p.name, first.name)
	}
	p.ordered = slices.DeleteFunc(p.ordered, ours)
}
