package testkit

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSpecificationNamesWhatExists fails when docs/specification.md names a test, a
// declaration or a file that is not there, or has the same row twice.
func TestSpecificationNamesWhatExists(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), "docs", "specification.md"))
	if err != nil {
		t.Fatal(err)
	}
	code := readDeclarations(t)
	rows := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| rule |") || len(cells) < 3 {
			continue
		}
		if rows[cells[0]] {
			t.Errorf("line %d repeats the rule %q", i+1, cells[0])
		}
		rows[cells[0]] = true
		last := "" // the test before
		for _, name := range codeSpans(strings.Join(cells[1:], " | ")) {
			if test, _, found := strings.Cut(name, "/"); strings.HasPrefix(name, "Test") && found {
				last = test
			}
			if !code.has(name, last) {
				t.Errorf("line %d names %s, which does not exist", i+1, name)
			}
		}
		if len(codeSpans(cells[len(cells)-1])) == 0 {
			t.Errorf("line %d does not say what shows the rule", i+1)
		}
	}
	if len(rows) < 100 {
		t.Errorf("there are only %d rules", len(rows))
	}
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

func codeSpans(text string) (names []string) {
	for _, found := range codeSpan.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

// declarations are what the Go code of this module declares.
type declarations struct {
	packages map[string]bool // by the end of their path, such as "broker" and "internal/broker"
	// names are types, functions, constants and variables as "package.Name", and methods and
	// fields as "package.Type.Name" and "Type.Name".
	names map[string]bool
	types map[string]bool
	tests map[string]bool
	files []string // all files, with slashes
	texts map[string]bool
}

var (
	qualified = regexp.MustCompile(`^[A-Za-z]\w*(\.\w+)+$`)
	scenario  = regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`) // of the test before
	fileName  = regexp.MustCompile(`^[\w*./-]+\.(go|md|txt|txtar|yaml|json)$`)
)

// stateOfRun is a file that runs make.
const stateOfRun = "comment_detection_state.json"

// has reports whether something exists. What looks neither like a test nor like a
// declaration nor like a file, such as a setting, is not looked for.
func (d *declarations) has(name, lastTest string) bool {
	test, part, isPart := strings.Cut(name, "/")
	switch {
	case strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Benchmark") || strings.HasPrefix(name, "Fuzz"):
		return d.tests[test] && (!isPart || d.hasPart(part))
	case strings.HasPrefix(name, "internal/"), strings.HasPrefix(name, "docs/"):
		return d.packages[name] || d.hasFile(name)
	case fileName.MatchString(name):
		return d.hasFile(name) || d.names[name] || name == stateOfRun
	case lastTest != "" && scenario.MatchString(name):
		return d.hasPart(name)
	case qualified.MatchString(name):
		first, _, _ := strings.Cut(name, ".")
		return d.names[name] || !d.packages[first] && !d.types[first]
	}
	return true
}

// hasPart reports whether a test has a part of this name: a file of a scenario, or a name
// in the code.
func (d *declarations) hasPart(part string) bool {
	part = path.Base(part)
	return d.texts[part] || d.texts[strings.ReplaceAll(part, "_", " ")] ||
		slices.ContainsFunc(d.files, func(file string) bool {
			matched, err := path.Match(part, strings.TrimSuffix(path.Base(file), path.Ext(file)))
			return err == nil && matched
		})
}

func (d *declarations) hasFile(name string) bool {
	return slices.ContainsFunc(d.files, func(file string) bool {
		matched, err := path.Match(name, file[max(0, len(file)-len(name)):])
		return strings.HasSuffix("/"+file, "/"+name) || strings.HasPrefix(file, name+"/") || err == nil && matched && strings.Contains(name, "*")
	})
}

func readDeclarations(t *testing.T) *declarations {
	t.Helper()
	code := &declarations{packages: map[string]bool{}, names: map[string]bool{}, types: map[string]bool{}, tests: map[string]bool{}, texts: map[string]bool{}}
	root := moduleRoot(t)
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another test has removed it
		}
		if err != nil || entry.IsDir() && file != root && entry.Name() != "testdata" && (isOutside(file, entry.Name()) || entry.Name() == "dist") {
			if err == nil {
				err = filepath.SkipDir
			}
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil || entry.IsDir() {
			return err
		}
		code.files = append(code.files, filepath.ToSlash(name))
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata") {
			return code.read(file, filepath.ToSlash(filepath.Dir(name)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// read takes in a file of Go.
func (d *declarations) read(file, directory string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	short := path.Base(directory)
	d.packages[short], d.packages[directory] = true, true
	isTest := strings.HasSuffix(file, "_test.go")
	for _, declared := range parsed.Decls {
		switch declared := declared.(type) {
		case *ast.FuncDecl:
			if declared.Recv != nil {
				d.addMember(short, typeName(declared.Recv.List[0].Type), declared.Name.Name)
				continue
			}
			d.names[short+"."+declared.Name.Name] = true
			d.tests[declared.Name.Name] = d.tests[declared.Name.Name] || isTest
		case *ast.GenDecl:
			for _, spec := range declared.Specs {
				d.addSpec(short, spec)
			}
		}
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING && isTest {
			d.texts[strings.Trim(literal.Value, "\"`")] = true
		}
		return true
	})
	return nil
}

func (d *declarations) addSpec(short string, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			d.names[short+"."+name.Name] = true
		}
	case *ast.TypeSpec:
		d.names[short+"."+spec.Name.Name], d.types[spec.Name.Name] = true, true
		var members *ast.FieldList
		switch of := spec.Type.(type) {
		case *ast.StructType:
			members = of.Fields
		case *ast.InterfaceType:
			members = of.Methods
		default:
			return
		}
		for _, member := range members.List {
			for _, name := range member.Names {
				d.addMember(short, spec.Name.Name, name.Name)
			}
		}
	}
}

func (d *declarations) addMember(short, of, name string) {
	d.names[short+"."+of+"."+name] = true
	d.names[of+"."+name] = true
}

// typeName is the name of the type of a receiver.
func typeName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return typeName(of.X)
	case *ast.IndexExpr:
		return typeName(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}
