package eval

import (
	"fmt"
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/testreport"
)

// Names that Django's and SymPy's runners write are those of a report if they can mean one test
// alone.
func TestTranslated(t *testing.T) {
	t.Parallel()
	report := map[string]testreport.Status{}
	for _, name := range []string{
		"tests/admin_views/tests.py::ViewTests::test_login", "tests/other/tests.py::ViewTests::test_logout", "tests/admin_views/tests.py::ViewTests::test_logout",
		"forms.tests.FormTests.test_clean", "sympy/core/tests/test_add.py::test_sum", "sympy/a/tests/test_a.py::test_twice", "sympy/b/tests/test_b.py::test_twice",
	} {
		report[name] = testreport.Passed
	}
	for name, want := range map[string]string{
		"test_login (admin_views.tests.ViewTests)":             "tests/admin_views/tests.py::ViewTests::test_login",
		"test_login (admin_views.tests.ViewTests.test_login)":  "tests/admin_views/tests.py::ViewTests::test_login",
		"test_logout (admin_views.tests.ViewTests)":            "tests/admin_views/tests.py::ViewTests::test_logout",
		"test_clean (forms.tests.FormTests)":                   "forms.tests.FormTests.test_clean",
		"test_sum":                                             "sympy/core/tests/test_add.py::test_sum",
		"forms.tests.FormTests.test_clean":                     "forms.tests.FormTests.test_clean",
		"test_logout (tests.ViewTests)":                        "test_logout (tests.ViewTests)", // two
		"test_twice":                                           "test_twice",                    // two
		"test_none (admin_views.tests.ViewTests)":              "test_none (admin_views.tests.ViewTests)",
		"test_login (views.tests.ViewTests)":                   "test_login (views.tests.ViewTests)", // another module
		"A form is cleaned (and that is a sentence of a test)": "A form is cleaned (and that is a sentence of a test)",
	} {
		if got := translated([]string{name}, report); !slices.Equal(got, []string{want}) {
			t.Errorf("%q is %q", name, got)
		}
	}
	// Two names for one test are not two tests.
	both := []string{"test_sum", "sympy/core/tests/test_add.py::test_sum"}
	if got := translated(both, report); !slices.Equal(got, both) {
		t.Errorf("two names: %q", got)
	}
}

// Tens of thousands of names are held against as many tests without comparing each with each, which
// would take hours.
func TestTranslatedManyNames(t *testing.T) {
	t.Parallel()
	const many = 20_000
	report, names := make(map[string]testreport.Status, many), make([]string, many)
	for i := range many {
		report[fmt.Sprintf("tests/app%d/tests.py::ViewTests::test_login", i)] = testreport.Passed
		names[i] = fmt.Sprintf("test_login (app%d.tests.ViewTests)", i)
	}
	for i, got := range translated(names, report) {
		if want := fmt.Sprintf("tests/app%d/tests.py::ViewTests::test_login", i); got != want {
			t.Fatalf("%q is %q", names[i], got)
		}
	}
}
