package testkit

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEveryPackageImportsOnlyWhatItMay fails when the code of this module departs
// from importTable.
func TestEveryPackageImportsOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	for _, fault := range designRules.check(readPackages(t)) {
		t.Error(fault)
	}
}

// TestEveryPackageHasAComment fails for a package that does not say what it is.
func TestEveryPackageHasAComment(t *testing.T) {
	t.Parallel()
	for _, p := range readPackages(t) {
		if !p.documented && p.hasCode() {
			t.Errorf("package %s has no package comment: write one in its doc.go", p.path)
		}
	}
}

// goPackage is one directory of Go files, for all build tags at once.
type goPackage struct {
	path        string // import path
	imports     []string
	testImports []string
	documented  bool
	files       int // without test files
}

func (p *goPackage) hasCode() bool { return p.files > 0 }

// checker finds imports that its rules do not allow.
type checker struct {
	table    map[string]row
	confined map[string][]string
}

var designRules = checker{table: importTable, confined: confined}

// check returns one sentence for each import that is not allowed, and for each
// package that the table does not know.
func (c checker) check(packages []goPackage) []string {
	var faults []string
	for _, p := range packages {
		name := nameInTable(p.path)
		if _, known := c.table[name]; !known {
			faults = append(faults, fmt.Sprintf("package %s is not in the import table: add a row %q to "+
				"importTable in imports_table_test.go that says what it may import, and add it to the rows "+
				"of the packages that may import it", p.path, name))
			continue
		}
		for _, imported := range p.imports {
			if why := c.mayImport(name, imported); why != "" {
				faults = append(faults, fmt.Sprintf("%s imports %s: %s", p.path, imported, why))
			}
		}
		for _, imported := range p.testImports {
			if why := c.testMayImport(name, imported); why != "" {
				faults = append(faults, fmt.Sprintf("the tests of %s import %s: %s", p.path, imported, why))
			}
		}
	}
	return faults
}

// unused returns one sentence for each entry of the rules that no import needs.
func (c checker) unused(packages []goPackage) []string {
	all := map[string]goPackage{} // by their names in the table
	for _, p := range packages {
		name := nameInTable(p.path)
		whole := all[name]
		whole.imports = append(whole.imports, p.imports...)
		whole.testImports = append(whole.testImports, p.testImports...)
		all[name] = whole
	}
	var faults []string
	for name := range c.table {
		if _, is := all[name]; is {
			faults = append(faults, c.unusedInRow(name, all[name])...)
		} else {
			faults = append(faults, fmt.Sprintf("the row %q is of no package", name))
		}
	}
	for module, importers := range c.confined {
		uses := func(p goPackage) bool {
			return slices.ContainsFunc(slices.Concat(p.imports, p.testImports), func(one string) bool { return isBelow(one, module) })
		}
		for _, importer := range importers {
			if !uses(all[importer]) {
				faults = append(faults, fmt.Sprintf("%s is confined to %q, which does not import it", module, importer))
			}
		}
		if len(importers) == 0 && !slices.ContainsFunc(packages, uses) {
			faults = append(faults, fmt.Sprintf("%s is confined to tests, and nobody imports it", module))
		}
	}
	return faults
}

// unusedInRow does that for one row.
func (c checker) unusedInRow(name string, p goPackage) (faults []string) {
	imported := func(by []string, target string) bool {
		return slices.ContainsFunc(by, func(one string) bool { return isOurs(one) && nameInTable(one) == target })
	}
	row := c.table[name]
	for _, target := range row.imports {
		if !imported(p.imports, target) {
			faults = append(faults, fmt.Sprintf("the row %q allows %q, which the code does not import", name, target))
		}
	}
	tests := row.tests
	row.tests = nil
	without := checker{table: maps.Clone(c.table), confined: c.confined}
	without.table[name] = row
	for _, target := range tests {
		if !imported(p.testImports, target) || without.testMayImport(name, ours(target)) == "" {
			faults = append(faults, fmt.Sprintf("the row %q allows %q to tests, which do not need that", name, target))
		}
	}
	return faults
}

// mayImport says why the code of a package may not import another, or nothing.
func (c checker) mayImport(name, imported string) string {
	if isStandard(imported) {
		return ""
	}
	importer := c.table[name]
	if !isOurs(imported) {
		return c.mayImportModule(name, imported)
	}
	target := nameInTable(imported)
	switch goal := c.table[target]; {
	case target == name: // a package below app imports another part of app
		return ""
	case goal.program:
		return "it is a program"
	case slices.Contains(importer.imports, target):
		return ""
	case goal.testing:
		return "only tests may"
	case slices.Contains(forAll, target) && name != notFor && !slices.Contains(forAll, name), importer.any:
		return ""
	}
	return fmt.Sprintf("the row %q of the import table does not name %q", name, target)
}

// mayImportModule does the same for a package of another project.
func (c checker) mayImportModule(name, imported string) string {
	if c.table[name].standardOnly {
		return "it keeps to the standard library"
	}
	for prefix, importers := range c.confined {
		if !isBelow(imported, prefix) || slices.Contains(importers, name) {
			continue
		}
		if len(importers) > 0 {
			return prefix + " is only for " + strings.Join(importers, ", ")
		}
		if !c.table[name].testing {
			return "only tests may"
		}
	}
	return ""
}

// testMayImport is mayImport for test files. They may also import their own
// package, what is there for tests, every adapter, and any other module.
func (c checker) testMayImport(name, imported string) string {
	if !isOurs(imported) {
		return ""
	}
	target := nameInTable(imported)
	if target == name || c.table[target].testing || c.isAdapter(target) || slices.Contains(c.table[name].tests, target) {
		return ""
	}
	return c.mayImport(name, imported)
}

// isAdapter says whether a package is a leaf below a port.
func (c checker) isAdapter(name string) bool {
	port, portIsKnown := c.table[path.Dir(name)]
	return path.Dir(name) != "." && portIsKnown && !port.parts && !c.table[name].program
}

// nameInTable turns an import path into a name as the table has it.
func nameInTable(importPath string) string {
	if importPath == module {
		return "."
	}
	name := strings.TrimPrefix(strings.TrimPrefix(importPath, module+"/"), "internal/")
	if isBelow(name, "app") {
		return "app"
	}
	return name
}

func isOurs(importPath string) bool { return isBelow(importPath, module) }

// isStandard knows the standard library by its first element, which has no dot.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

func isBelow(name, prefix string) bool {
	return name == prefix || strings.HasPrefix(name, prefix+"/")
}

// readPackages reads the imports of every Go file of the module. It parses the
// files, rather than asking the go command, to see those of all build tags.
func readPackages(t *testing.T) []goPackage {
	t.Helper()
	root := moduleRoot(t)
	packages := map[string]*goPackage{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && isOutside(file, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(file) != ".go":
			return nil
		}
		relative, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		importPath := path.Join(module, filepath.ToSlash(relative))
		if packages[importPath] == nil {
			packages[importPath] = &goPackage{path: importPath}
		}
		return packages[importPath].add(file)
	})
	if err != nil {
		t.Fatalf("read the module's files: %v", err)
	}
	var all []goPackage
	for _, p := range packages {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b goPackage) int { return strings.Compare(a.path, b.path) })
	return all
}

// isOutside says whether the go command would pass a directory by.
func isOutside(dir, name string) bool {
	if name == "testdata" || name == "vendor" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func (p *goPackage) add(file string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	imports, err := importsOf(parsed)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if strings.HasSuffix(file, "_test.go") {
		p.testImports = append(p.testImports, imports...)
		return nil
	}
	p.files++
	p.documented = p.documented || parsed.Doc.Text() != ""
	p.imports = append(p.imports, imports...)
	return nil
}

func importsOf(file *ast.File) ([]string, error) {
	var imports []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("import %s: %w", spec.Path.Value, err)
		}
		imports = append(imports, imported)
	}
	return imports, nil
}

// moduleRoot is the directory of go.mod. Tests run in their package's directory.
func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatalf("find the module's root: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("%s is not the module's root: %v", root, err)
	}
	return root
}
