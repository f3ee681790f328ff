package testkit

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// TestCheckerOnMadeUpImports gives the checker small import graphs, each with one
// import, and expects the fault that it holds.
func TestCheckerOnMadeUpImports(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		importer string
		code     string // imported by the code
		test     string // imported by the tests
		fault    string // part of the one fault, or nothing
	}{
		"an allowed import":                         {importer: "broker", code: ours("store")},
		"the standard library":                      {importer: "task", code: "net/http"},
		"an import that the row lacks":              {importer: "broker", code: ours("server"), fault: `does not name "server"`},
		"a lower layer importing a higher one":      {importer: "store", code: ours("broker"), fault: `does not name "broker"`},
		"task importing a package of ours":          {importer: "task", code: ours("wire"), fault: `does not name "wire"`},
		"task importing another module":             {importer: "task", code: "example.com/money", fault: "standard library"},
		"another module where nothing forbids it":   {importer: "broker", code: "example.com/money"},
		"a leaf importing its port":                 {importer: "store/sqlite", code: ours("store")},
		"a leaf importing a sibling":                {importer: "store/sqlite", code: ours("store/postgres"), fault: `does not name "store/postgres"`},
		"a leaf importing the leaf of another port": {importer: "forge/board", code: ours("store/sqlite"), fault: `does not name "store/sqlite"`},
		"what two leaves share":                     {importer: "store/postgres", code: ours("store/relational")},
		"a parent importing a leaf":                 {importer: "store", code: ours("store/sqlite"), fault: `does not name "store/sqlite"`},
		"a user of a port importing a leaf":         {importer: "broker", code: ours("forge/github"), fault: `does not name "forge/github"`},
		"app importing a leaf":                      {importer: "app", code: ours("forge/github")},
		"a part of app importing a leaf":            {importer: "app/config", code: ours("forge/github")},
		"app importing a part of itself":            {importer: "app", code: ours("app/config")},
		"a part of app imported from outside":       {importer: "server", code: ours("app/config"), fault: `does not name "app"`},
		"app importing testkit":                     {importer: "app", code: ours("testkit"), fault: "only tests may"},
		"app importing a conformance suite":         {importer: "app", code: ours("store/storetest"), fault: "only tests may"},
		"code importing testkit":                    {importer: "server", code: ours("testkit"), fault: "only tests may"},
		"a conformance suite importing testkit":     {importer: "llm/llmtest", code: ours("testkit")},
		"a test importing testkit":                  {importer: "server", test: ours("testkit")},
		"a test importing a conformance suite":      {importer: "store/sqlite", test: ours("store/storetest")},
		"a test importing an adapter":               {importer: "broker", test: ours("store/sqlite")},
		"a test importing its own package":          {importer: "broker", test: ours("broker")},
		"a test importing a higher layer":           {importer: "store", test: ours("server"), fault: `does not name "server"`},
		"a test importing a program":                {importer: "task", test: ours("task/machinedoc"), fault: "it is a program"},
		"the main program importing app":            {importer: "cmd/toryo", code: ours("app")},
		"the main program importing more":           {importer: "cmd/toryo", code: ours("task"), fault: `does not name "task"`},
		"a program imported":                        {importer: "app", code: ours("tools/bench"), fault: "it is a program"},
		"a part importing another by its row":       {importer: "phase/turn", code: ours("phase/tool")},
		"a part importing one that its row lacks":   {importer: "phase/tool", code: ours("phase/turn"), fault: `does not name "phase/turn"`},
		"a package importing its parts":             {importer: "phase", code: ours("phase/turn")},
		"a user of a package importing a part":      {importer: "agent", code: ours("phase/turn"), fault: `does not name "phase/turn"`},
		"a ledger importing the store":              {importer: "llm/ledger", code: ours("store")},
		"redact imported by a leaf":                 {importer: "llm/openai", code: ours("redact")},
		"redact imported by task":                   {importer: "task", code: ours("redact"), fault: `does not name "redact"`},
		"redact importing a package of ours":        {importer: "redact", code: ours("task"), fault: `does not name "task"`},
		"an SDK in its leaf":                        {importer: "store/postgres", code: "github.com/jackc/pgx/v5/pgxpool"},
		"an SDK outside its leaf":                   {importer: "store/sqlite", code: "github.com/jackc/pgx/v5", fault: "only for store/postgres"},
		"an SDK in app":                             {importer: "app", code: "github.com/jackc/pgx/v5", fault: "only for store/postgres"},
		"a module whose name only begins the same":  {importer: "broker", code: "github.com/jackc/pgxmock"},
		"a module for tests in code":                {importer: "broker", code: "github.com/google/go-cmp/cmp", fault: "only tests may"},
		"a module for tests in a test":              {importer: "broker", test: "github.com/google/go-cmp/cmp"},
		"a module for tests in a conformance suite": {importer: "store/storetest", code: "github.com/google/go-cmp/cmp"},
		"a package that the table does not know":    {importer: "helpers", code: "fmt", fault: `add a row "helpers"`},
		"a leaf that the table does not know":       {importer: "store/mysql", code: "fmt", fault: `add a row "store/mysql"`},
		"an unknown package imported":               {importer: "broker", code: ours("helpers"), fault: `does not name "helpers"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := goPackage{path: ours(test.importer)}
			if test.code != "" {
				p.imports = []string{test.code}
			}
			if test.test != "" {
				p.testImports = []string{test.test}
			}
			faults := designRules.check([]goPackage{p})
			switch {
			case test.fault == "" && len(faults) != 0:
				t.Errorf("found %q in an allowed import", faults)
			case test.fault != "" && (len(faults) != 1 || !strings.Contains(faults[0], test.fault)):
				t.Errorf("found %q, want one fault with %q", faults, test.fault)
			}
		})
	}
}

// TestImportTableHasNoUnusedEntry fails for what a row allows and no import uses.
func TestImportTableHasNoUnusedEntry(t *testing.T) {
	t.Parallel()
	for _, fault := range designRules.unused(readPackages(t)) {
		t.Error(fault)
	}
	p := goPackage{path: ours("git"), imports: []string{ours("task")}, testImports: []string{ours("store")}}
	rules := checker{table: map[string]row{"git": {imports: []string{"task", "forge"}, tests: []string{"task", "store"}}, "gone": {}},
		confined: map[string][]string{"example.com/a": {"git"}, "example.com/b": testsOnly}}
	if faults := rules.unused([]goPackage{p}); len(faults) != 5 {
		t.Errorf("found %q, want two imports, a row and two modules", faults)
	}
}

// TestImportTableIsSound looks at the table itself: a wrong row would excuse what
// the design forbids.
func TestImportTableIsSound(t *testing.T) {
	t.Parallel()
	// All SQL, the program that runs inside of every kind of sandbox, what sandboxes on
	// this machine share, the control groups of those that are processes of it, the
	// filter of system calls, and the watch over the disk.
	sharedByLeaves := []string{"store/relational", "sandbox/guest", "sandbox/local", "sandbox/cgroup", "sandbox/seccomp", "sandbox/disk"}
	for name, row := range importTable {
		for _, target := range row.imports {
			if _, known := importTable[target]; !known {
				t.Errorf("the row %q names %q, which has no row", name, target)
			}
			if isBelow(target, name) && !row.parts {
				t.Errorf("the row %q lets a parent import its leaf %q", name, target)
			}
			if designRules.isAdapter(name) && !row.testing && path.Dir(name) == path.Dir(target) && !slices.Contains(sharedByLeaves, target) {
				t.Errorf("the row %q lets a leaf import its sibling %q", name, target)
			}
		}
	}
	for module, importers := range confined {
		for _, importer := range importers {
			if _, known := importTable[importer]; !known {
				t.Errorf("%s is confined to %q, which has no row", module, importer)
			}
		}
	}
}

// TestReadPackagesSeesThisPackage guards against a reading that finds nothing and
// therefore no fault.
func TestReadPackagesSeesThisPackage(t *testing.T) {
	t.Parallel()
	packages := readPackages(t)
	own := slices.IndexFunc(packages, func(p goPackage) bool { return p.path == ours("testkit") })
	if own < 0 {
		t.Fatalf("testkit is not among %d packages", len(packages))
	}
	if !packages[own].documented || !packages[own].hasCode() {
		t.Error("the package comment of testkit was not seen")
	}
	if !slices.Contains(packages[own].imports, "testing") {
		t.Errorf("the import of testing was not seen among %q", packages[own].imports)
	}
	if !slices.Contains(packages[own].testImports, "go/parser") {
		t.Errorf("the test import of go/parser was not seen among %q", packages[own].testImports)
	}
}

// ours is the import path of a package of this module.
func ours(name string) string {
	if name == "cmd/toryo" || name == "tools/bench" {
		return path.Join(module, name)
	}
	return path.Join(module, "internal", name)
}
