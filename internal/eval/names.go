package eval

import (
	"maps"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/testreport"
)

var (
	// djangoName is a test as Django's runner writes it: test_x (app.tests.Class), since
	// Python 3.11 with the name once more at the end of what is in brackets.
	djangoName = lazyregexp.New(`^(\w+) \(([\w.]+)\)$`)
	// bareName is a test as SymPy's runner writes it.
	bareName = lazyregexp.New(`^test\w*$`)
	// asDotted makes names of pytest those of Python.
	asDotted = strings.NewReplacer(".py::", ".", "::", ".", "/", ".")
)

// translated are names of tests as the report has them. Names that another runner has written are
// taken for the one test that they can mean; all others stay as they are.
func translated(names []string, report map[string]testreport.Status) []string {
	wanted := map[string]string{} // the dotted name of each that the report does not have
	asked := make(map[string]bool, len(names))
	for _, name := range names {
		asked[name] = true
		if dotted := dottedName(name); dotted != "" && report[name] == "" {
			wanted[name] = dotted
		}
	}
	if len(wanted) == 0 {
		return slices.Clone(names)
	}
	meant := meaning(slices.Collect(maps.Values(wanted)), report)
	found := make([]string, len(names))
	for i, name := range names {
		found[i] = name
		if of := meant[wanted[name]]; len(of) == 1 && !asked[of[0]] {
			found[i] = of[0]
		}
	}
	return found
}

// meaning are the tests of a report, two at most, that each dotted name can mean: those that it is
// the end of.
func meaning(dotted []string, report map[string]testreport.Status) map[string][]string {
	meant := make(map[string][]string, len(dotted))
	for _, name := range dotted {
		meant[name] = nil
	}
	for known := range report {
		for rest, more := asDotted.Replace(known), true; more; _, rest, more = strings.Cut(rest, ".") {
			if of, is := meant[rest]; is && len(of) < 2 {
				meant[rest] = append(of, known)
			}
		}
	}
	return meant
}

// dottedName is the name of a test with its class and modules as far as they are known, or empty
// if it is written in no known way.
func dottedName(name string) string {
	if parts := djangoName.FindStringSubmatch(name); parts != nil {
		return strings.TrimSuffix(parts[2], "."+parts[1]) + "." + parts[1]
	}
	if bareName.MatchString(name) {
		return name
	}
	return ""
}
