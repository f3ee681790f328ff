package testkit

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
)

// TestSpecificationNamesWhatExists fails when docs/specification.md or docs/threats.md names
// something that is not there, or when the specification has the same row twice.
func TestSpecificationNamesWhatExists(t *testing.T) {
	t.Parallel()
	code, text := readDeclarations(t), readDocument(t, "specification.md")
	code.checkNames(t, "specification.md", text)
	code.checkNames(t, "threats.md", readDocument(t, "threats.md"))
	rows := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| rule |") || len(cells) < 3 {
			continue
		}
		if rows[cells[0]] {
			t.Errorf("line %d repeats the rule %q", i+1, cells[0])
		}
		rows[cells[0]] = true
		if !codeSpan.MatchString(cells[len(cells)-1]) {
			t.Errorf("line %d does not say what shows the rule", i+1)
		}
	}
	if len(rows) < 100 {
		t.Errorf("there are only %d rules", len(rows))
	}
}

// TestUnknownNamesAreFound gives the check names that do not exist.
func TestUnknownNamesAreFound(t *testing.T) {
	t.Parallel()
	code := readDeclarations(t)
	for _, line := range []string{
		"`broker.Gone`", "`Gone.Look`", "`gone.Look`", "`broker` (`goneAway`)", "`broker` (`Runs.goneAway`)", "`broker.Runs` (`goneAway`)",
		"`review.gone_key`", "`gone_key`", "`accept_from: gone_away`", "`make gone`", "`GET /v1/gone`", "`goneAway`", "`TestGone`", "TestGone", "`internal/gone`", "`gone.go`", "`broker` (`chat.go`)",
		"`TestScenarios/gone_away`", "`TestScenarios/comments`, `comments_gone`", "`toryo gone-away`", "`toryo tasks next --gone`", "`storetest`: `Gone`",
	} {
		if found := code.unknown(line); len(found) != 1 {
			t.Errorf("%s: found %q, want one name", line, found)
		}
	}
	for _, line := range []string{
		"`broker.Runs`", "`broker` (`Runs`, `Runs.OpenPull`)", "`review.max_rounds`", "`TestScenarios/comments`, `comments_reflection`",
		"`internal/broker`", "`accept_from: all`", "`make bench`", "`server` (`/v1/tasks/request`)", "`toryo tasks next --explain`", "`storetest`: `Users`", "`docs/threats.md`",
	} {
		if found := code.unknown(line); len(found) != 0 {
			t.Errorf("%s: found %q", line, found)
		}
	}
}

func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (d *declarations) checkNames(t *testing.T, document, text string) {
	t.Helper()
	paragraph, start := "", 0
	for i, line := range append(strings.Split(text, "\n"), "") {
		if line == "" || strings.HasPrefix(line, "|") {
			for _, name := range d.unknown(paragraph) {
				t.Errorf("%s: the paragraph at line %d names %s, which does not exist", document, start+1, name)
			}
			paragraph, start = "", i
		}
		paragraph += line + " "
	}
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	// members are names in brackets behind the package or type that has them: `broker` (`said`).
	members = regexp.MustCompile("`([\\w./]+)` \\(([^)]*)\\)")
	// cases are the parts of a suite: `storetest`: `Users`, `Tokens`.
	cases = regexp.MustCompile("`(\\w+test)`: ((?:, )?`\\w+`)+")
	// plainTest is the name of a test, in a code span or not.
	plainTest = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*`)
)

// declarations are what the Go code of this module declares.
type declarations struct {
	packages map[string]bool // by the end of their path, such as "broker" and "internal/broker"
	// names are types, functions, constants and variables as "package.Name", and methods and
	// fields as "package.Type.Name" and "Type.Name".
	names map[string]bool
	// inside has for each package, by its last element, all names that it declares, with
	// methods and fields as "Name" and "Type.Name", and the keys in tags of its structs.
	inside map[string]map[string]bool
	tests  map[string]bool
	files  []string        // all files, with slashes
	texts  map[string]bool // strings in tests
	values map[string]bool // strings in the program, such as labels, states and commands
	keys   map[string]bool // of the configuration, of JSON and of YAML
}

// others are words in code spans that the program does not have.
var others = []string{
	// Folders and labels as the specifications write them.
	"running/", "completed/", "… processing", "… stopped", "… done", "… paused",
	// Formulas and marks in texts.
	"$$[N]", "current_turn = len(chat_history) // 2 + 1",
	`<untrusted source="…" author="…" access="…">`, "</untrusted>", "<pinned …>", "<earlier-summary>",
	// Names that others give: of pod security, of OpenAPI, of the kernel, of tools and of links.
	"restricted", "maxLength", "maxItems", "truncate", "mcp_SERVER_NAME", ".husky -> tools",
}

var (
	scenario = regexp.MustCompile(`^[a-z]+(_[a-z*]+)*$`) // of the test before
	fileName = regexp.MustCompile(`^[\w*./-]+\.(go|md|txt|txtar|yaml|json)$`)
)

// unknown returns the names in a line that do not exist.
func (d *declarations) unknown(line string) (names []string) {
	owners := d.owners(line)
	inTest := false
	for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
		name := span[1]
		switch owner := owners[name]; {
		case owner != "":
			if !d.hasInside(owner, name) {
				names = append(names, owner+" ("+name+")")
			}
		case !d.has(name, inTest):
			names = append(names, name)
		}
		inTest = inTest || strings.HasPrefix(name, "Test") && strings.Contains(name, "/")
	}
	for _, name := range plainTest.FindAllString(codeSpan.ReplaceAllString(line, ""), -1) {
		if !d.tests[name] {
			names = append(names, name)
		}
	}
	return names
}

// owners are the packages, types and suites by the names in a line that they have to have.
func (d *declarations) owners(line string) map[string]string {
	owners := map[string]string{}
	for _, found := range members.FindAllStringSubmatch(line, -1) {
		if owner := found[1]; d.packages[owner] || d.names[owner] {
			for _, span := range codeSpan.FindAllStringSubmatch(found[2], -1) {
				owners[span[1]] = owner
			}
		}
	}
	for _, found := range cases.FindAllStringSubmatch(line, -1) {
		for _, span := range codeSpan.FindAllStringSubmatch(found[0], -1)[1:] {
			owners[span[1]] = found[1]
		}
	}
	return owners
}

// hasInside reports whether a package, or the package of a type, has a name, a key or a file.
func (d *declarations) hasInside(owner, name string) bool {
	if strings.HasPrefix(name, "Test") {
		return d.has(name, false)
	}
	if !d.packages[owner] {
		owner, _, _ = strings.Cut(owner, ".")
	}
	if fileName.MatchString(name) {
		return d.hasFile(owner + "/" + name)
	}
	return d.inside[path.Base(owner)][name]
}

// has reports whether a name exists: a test, a package, a file, a part of the test before, a
// declaration, a key of the configuration, or a value or command of the program.
func (d *declarations) has(name string, inTest bool) bool {
	test, part, isPart := strings.Cut(name, "/")
	switch {
	case plainTest.MatchString(name) && strings.HasPrefix(name, plainTest.FindString(name)):
		return d.tests[test] && (!isPart || d.hasPart(part))
	case d.packages[name], d.names[name], d.keys[name], d.values[name], slices.Contains(others, name):
		return true
	case fileName.MatchString(name), strings.HasPrefix(name, "internal/"), strings.HasPrefix(name, "docs/"), strings.HasPrefix(name, "deploy/"):
		return d.hasFile(name)
	case inTest && scenario.MatchString(name):
		return d.hasPart(name)
	}
	first, rest, _ := strings.Cut(name, " ")
	key, isPair := strings.CutSuffix(first, ":")
	switch {
	case isPair: // accept_from: all
		return d.keys[key] && d.values[rest]
	case first == "make":
		return d.values[name]
	case first == "toryo":
		return !slices.ContainsFunc(strings.Fields(rest), func(word string) bool { return !d.values[strings.TrimPrefix(word, "--")] })
	case first == http.MethodGet || first == http.MethodPost:
		return d.values[rest]
	}
	return false
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
	code := &declarations{packages: map[string]bool{}, names: map[string]bool{}, inside: map[string]map[string]bool{}, tests: map[string]bool{}, texts: map[string]bool{}, values: map[string]bool{}, keys: map[string]bool{}}
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
		switch {
		case name == "Makefile":
			return code.readTargets(file)
		case strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata"):
			return code.read(file, filepath.ToSlash(filepath.Dir(name)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	settings, report := config.Load("", nil, nil)
	for _, setting := range report.Settings(settings) {
		code.keys[setting.Key] = true
	}
	return code
}

var ruleName = regexp.MustCompile(`(?m)^(\w[\w-]*):`)

// readTargets takes in the targets of the Makefile.
func (d *declarations) readTargets(file string) error {
	text, err := os.ReadFile(file) //nolint:gosec // a file of this module
	for _, found := range ruleName.FindAllStringSubmatch(string(text), -1) {
		d.values["make "+found[1]] = true
	}
	return err
}

// read takes in a file of Go.
func (d *declarations) read(file, directory string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	short := path.Base(directory)
	d.packages[short], d.packages[directory], d.packages[strings.TrimPrefix(directory, "internal/")] = true, true, true
	if d.inside[short] == nil {
		d.inside[short] = map[string]bool{}
	}
	isTest := strings.HasSuffix(file, "_test.go")
	for _, declared := range parsed.Decls {
		switch declared := declared.(type) {
		case *ast.FuncDecl:
			if declared.Recv != nil {
				d.addMember(short, typeName(declared.Recv.List[0].Type), declared.Name.Name)
				continue
			}
			d.addName(short, declared.Name.Name)
			d.tests[declared.Name.Name] = d.tests[declared.Name.Name] || isTest
		case *ast.GenDecl:
			for _, spec := range declared.Specs {
				d.addSpec(short, spec)
			}
		}
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		literal, is := node.(*ast.BasicLit)
		if !is || literal.Kind != token.STRING {
			return true
		}
		text := strings.Trim(literal.Value, "\"`")
		if isTest {
			d.texts[text] = true
		} else {
			d.addText(short, text)
		}
		return true
	})
	return nil
}

func (d *declarations) addSpec(short string, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			d.addName(short, name.Name)
		}
	case *ast.TypeSpec:
		d.addName(short, spec.Name.Name)
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

func (d *declarations) addName(short, name string) {
	d.names[short+"."+name], d.inside[short][name] = true, true
}

// tagName is the name that a tag of a field gives it in JSON or YAML.
var tagName = regexp.MustCompile(`(?:json|yaml|key):"(\w+)`)

// addText takes in a string of the program: a tag, the use of a command or a value.
func (d *declarations) addText(short, text string) {
	for _, found := range tagName.FindAllStringSubmatch(text, -1) {
		d.inside[short][found[1]], d.keys[found[1]] = true, true
	}
	d.values[text] = true
	if strings.Contains(text, "/") || strings.HasSuffix(short, "test") {
		d.inside[short][text] = true
	}
	if use, _, is := strings.Cut(text, " "); is && !strings.ContainsAny(use, ",.:") {
		d.values[use] = true // "next [flags]"
	}
}

func (d *declarations) addMember(short, of, name string) {
	d.inside[short][of+"."+name], d.inside[short][name] = true, true
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
