package testreport

import (
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// copyReports runs a line around which report files below the project are removed
// and then copied to dir, so that none of an earlier run is read.
func copyReports(dir, pattern, line string) string {
	find := "find . -type f -path " + quote(pattern)
	return shellScript(dir, nil, find+" -exec rm -f {} + || exit 125\n"+line+"\ncode=$?\nn=0\n"+find+
		" | while IFS= read -r file; do n=$((n+1)); cp \"$file\" "+quote(dir)+"/$n.xml; done\nexit $code")
}

// readXML reads the JUnit files of a run. The function makes a case of the elements
// around and of a test, without its result.
func (r run) readXML(b *builder, runner string, named func(path []*element) Case) {
	if r.eachReport(b, ".xml", func(name string, data []byte) { readJUnit(b, name, data, named) }) == 0 {
		b.doubt("%s wrote no report", runner)
	}
}

// classAndMethod is a test as JUnit itself names it.
func classAndMethod(path []*element) Case {
	e := path[len(path)-1]
	class, name := e.attribute("classname"), e.attribute("name")
	if class == "" || name == "" {
		return Case{Name: class + name, File: e.attribute("file")}
	}
	return Case{Name: class + "." + name, File: e.attribute("file")}
}

// buildTool reads the JUnit files of a build tool that does more than run tests: if
// it failed and no test did, it may have ended before all tests ran.
func (r run) buildTool(name string) Report {
	b := newBuilder()
	r.readXML(b, name, classAndMethod)
	report := b.report()
	if _, _, failed, _ := report.Counts(); report.Complete && r.exit != 0 && failed == 0 {
		report.Complete, report.Note = false, name+" failed outside the tests"
	}
	return report
}

// maven runs tests with Surefire and Failsafe, which write a file for each class.
type maven struct{}

func (maven) name() string { return "maven" }

func (maven) matches(words []string) bool {
	return slices.Contains([]string{"mvn", "mvnw"}, path.Base(words[0])) &&
		slices.ContainsFunc(words, func(w string) bool {
			return slices.Contains([]string{"test", "package", "verify", "install"}, w)
		})
}

var javaCase = lazyregexp.New(`^([\w.$]+)\.([\w$]+)(?:[\[({ ].*)?$`)

func (maven) command(c call, dir string, only []string) (string, bool) {
	arguments := []string{"--fail-at-end"}
	if len(only) > 0 {
		methods := []string{}
		for _, name := range only {
			found := javaCase.FindStringSubmatch(name)
			if found == nil {
				return "", false
			}
			methods = append(methods, found[1]+"#"+found[2]+"*")
		}
		arguments = append(arguments, "-Dtest="+strings.Join(methods, ","), "-DfailIfNoTests=false", "-Dsurefire.failIfNoSpecifiedTests=false")
	}
	return copyReports(dir, "*/*-reports/TEST-*.xml", c.with(arguments...)), true
}

func (maven) read(_ call, r run) Report { return r.buildTool("maven") }

// gradle writes a file for each class too. It selects tests per project, and fails in
// a project that has none of them: so it does not select.
type gradle struct{}

func (gradle) name() string { return "gradle" }

func (gradle) matches(words []string) bool {
	return slices.Contains([]string{"gradle", "gradlew"}, path.Base(words[0])) &&
		slices.ContainsFunc(words, func(w string) bool {
			return slices.Contains([]string{"test", "check", "build"}, w[strings.LastIndexByte(w, ':')+1:])
		})
}

func (gradle) command(c call, dir string, only []string) (string, bool) {
	if len(only) > 0 {
		return "", false
	}
	return copyReports(dir, "*/test-results/*/TEST-*.xml", c.with("--continue")), true
}

func (gradle) read(_ call, r run) Report { return r.buildTool("gradle") }
