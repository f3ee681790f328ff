package eval

import (
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
	var found []string
	for _, name := range names {
		if dotted := dottedName(name); dotted != "" && report[name] == "" {
			var meant []string
			for known := range report {
				if is := asDotted.Replace(known); is == dotted || strings.HasSuffix(is, "."+dotted) {
					meant = append(meant, known)
				}
			}
			if len(meant) == 1 && !slices.Contains(names, meant[0]) {
				name = meant[0]
			}
		}
		found = append(found, name)
	}
	return found
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
