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
		"`TestScenarios/gone_away`", "`TestScenarios/comments`, `comments_gone`", "`toryo gone-away`", "`toryo tasks next --gone-away`", "`storetest`: `Gone`",
		// Names that only tests declare, a word of a text, a part of a test of another package, a
		// member of another type, and a name of another package whose folder ends the same.
		"`broker` (`said`)", "`toryo cannot`", "`TestUnknownNamesAreFound/comments_reflection`", "`broker.Runs` (`StatusText`)", "`broker.Runs` (`Waits.Explain`)", "`app/command/board` (`Forge`)", "`forge/board.Command`",
	} {
		if found := code.unknown(line); len(found) != 1 {
			t.Errorf("%s: found %q, want one name", line, found)
		}
	}
	for _, line := range []string{
		"`broker.Runs`", "`broker` (`Runs`, `Runs.OpenPull`)", "`review.max_rounds`", "`TestScenarios/comments`, `comments_reflection`",
		"`internal/broker`", "`accept_from: all`", "`make bench`", "`server` (`/v1/tasks/request`)", "`toryo tasks next --explain`", "`storetest`: `Users`", "`docs/threats.md`",
		"`board` (`Forge`)", "`forge/board` (`Forge`)", "`board.Command`", "`broker.Runs` (`OpenPull`)", "`toryo env detect`", "`TestSuite/snapshot`",
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
	// members are names in brackets behind the package or type that has them: `broker` (`StatusText`).
	members = regexp.MustCompile("`([\\w./]+)` \\(([^)]*)\\)")
	// cases are the parts of a suite: `storetest`: `Users`, `Tokens`.
	cases = regexp.MustCompile("`(\\w+test)`: ((?:, )?`\\w+`)+")
	// plainTest is the name of a test, in a code span or not.
	plainTest = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*`)
)

// declarations are what the Go code of this module declares.
type declarations struct {
	packages map[string]*declared // by their folder, such as "internal/broker"
	tests    map[string][]string  // the folders that have a test, by its name
	files    []string             // all files, with slashes
	values   map[string]bool      // strings in the program, such as labels and states
	commands map[string]bool      // words of the command line
	keys     map[string]bool      // of the configuration, of JSON and of YAML
}

// declared is what one package declares. Of its tests only the strings count.
type declared struct {
	// names are types, functions, constants and variables, and methods, fields and keys in
	// tags of structs as "Type.Name".
	names map[string]bool
	// parts are methods, fields and keys without their type, paths of the API and, in a
	// package of tests, all strings.
	parts  map[string]bool
	texts  map[string]bool // strings in its tests
	suites map[string]bool // folders of packages of tests that its tests import
}

// others are words in code spans that the program does not have.
var others = []string{
	// Folders and labels as the specifications write them.
	"running/", "completed/", "… processing", "… stopped", "… done", "… paused",
	// Formulas and marks in texts.
	"$$[N]", "current_turn = len(chat_history) // 2 + 1",
	`<untrusted source="…" author="…" access="…">`, "</untrusted>", "<pinned …>", "<earlier-summary>",
	// Names that others give: of pod security, of OpenAPI, of the kernel, of tools and of links.
	"restricted", "maxLength", "maxItems", "truncate", "chmod", "mcp_SERVER_NAME", ".husky -> tools",
}

var (
	scenario = regexp.MustCompile(`^[a-z]+(_[a-z*]+)*$`) // of the test before
	fileName = regexp.MustCompile(`^[\w*./-]+\.(go|md|txt|txtar|yaml|json)$`)
)

// unknown returns the names in a line that do not exist.
func (d *declarations) unknown(line string) (names []string) {
	owners := d.owners(line)
	test := "" // the last one with a part
	for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
		name := span[1]
		switch owner := owners[name]; {
		case owner != "":
			if !d.hasInside(owner, name) {
				names = append(names, owner+" ("+name+")")
			}
		case !d.has(name, test):
			names = append(names, name)
		}
		if before, _, isPart := strings.Cut(name, "/"); isPart && strings.HasPrefix(name, "Test") {
			test = before
		}
	}
	for _, name := range plainTest.FindAllString(codeSpan.ReplaceAllString(line, ""), -1) {
		if d.tests[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// owners are the packages, types and suites by the names in a line that they have to have.
func (d *declarations) owners(line string) map[string]string {
	owners := map[string]string{}
	for _, found := range members.FindAllStringSubmatch(line, -1) {
		if owner := found[1]; len(d.resolve(owner)) > 0 || d.hasName(owner) {
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

// resolve returns the packages that a name may mean: those whose folder ends with it.
func (d *declarations) resolve(name string) (found []*declared) {
	for folder, one := range d.packages {
		if strings.HasSuffix("/"+folder, "/"+name) {
			found = append(found, one)
		}
	}
	return found
}

// hasName reports whether one of the packages of a short name has a name: "broker.Runs",
// "broker.Runs.OpenPull", or "Runs.OpenPull" in any package.
func (d *declarations) hasName(name string) bool {
	first, rest, dotted := strings.Cut(name, ".")
	if !dotted {
		return false
	}
	if found := d.resolve(first); len(found) > 0 {
		return slices.ContainsFunc(found, func(one *declared) bool { return one.names[rest] })
	}
	for _, one := range d.packages {
		if one.names[name] {
			return true
		}
	}
	return false
}

// hasInside reports whether a package has a name, a key or a file, or a type a member.
func (d *declarations) hasInside(owner, name string) bool {
	found := d.resolve(owner)
	switch {
	case strings.HasPrefix(name, "Test"):
		return d.has(name, "")
	case len(found) == 0:
		return d.hasName(owner + "." + name)
	case fileName.MatchString(name):
		return d.hasFile(owner + "/" + name)
	}
	return slices.ContainsFunc(found, func(one *declared) bool { return one.names[name] || one.parts[name] })
}

// has reports whether a name exists: a test, a package, a file, a part of the test before, a
// declaration, a key of the configuration, or a value or command of the program.
func (d *declarations) has(name, before string) bool {
	test, part, isPart := strings.Cut(name, "/")
	switch {
	case plainTest.MatchString(name) && strings.HasPrefix(name, plainTest.FindString(name)):
		return d.tests[test] != nil && (!isPart || d.hasPart(test, part))
	case d.keys[name], d.values[name], slices.Contains(others, name), d.hasName(name), len(d.resolve(name)) > 0:
		return true
	case fileName.MatchString(name), strings.HasPrefix(name, "internal/"), strings.HasPrefix(name, "docs/"), strings.HasPrefix(name, "deploy/"):
		return d.hasFile(name)
	case before != "" && scenario.MatchString(name):
		return d.hasPart(before, name)
	}
	first, rest, _ := strings.Cut(name, " ")
	key, isPair := strings.CutSuffix(first, ":")
	switch {
	case isPair: // accept_from: all
		return d.keys[key] && d.values[rest]
	case first == "make":
		return d.values[name]
	case first == "toryo":
		return d.hasCommand(strings.Fields(rest))
	case first == http.MethodGet || first == http.MethodPost:
		return d.values[rest]
	}
	return false
}

// hasCommand reports whether the words are commands and flags.
func (d *declarations) hasCommand(words []string) bool {
	for _, word := range words {
		flag, isFlag := strings.CutPrefix(word, "--")
		if !d.commands[word] && (!isFlag || !d.values[flag]) {
			return false
		}
	}
	return true
}

// hasPart reports whether a test has a part of this name: a file in the testdata of its
// package, or a string in the tests of its package or in a suite that these import.
func (d *declarations) hasPart(test, part string) bool {
	part = path.Base(part)
	spaced := strings.ReplaceAll(part, "_", " ")
	return slices.ContainsFunc(d.tests[test], func(folder string) bool {
		of := d.packages[folder]
		found := of.texts[part] || of.texts[spaced] || slices.ContainsFunc(d.files, func(file string) bool {
			matched, err := path.Match(part, strings.TrimSuffix(path.Base(file), path.Ext(file)))
			return err == nil && matched && strings.HasPrefix(file, folder+"/testdata/")
		})
		for suite := range of.suites {
			found = found || d.packages[suite].parts[part] || d.packages[suite].parts[spaced]
		}
		return found
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
	code := &declarations{packages: map[string]*declared{}, tests: map[string][]string{}, values: map[string]bool{}, commands: map[string]bool{}, keys: map[string]bool{}}
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
	text, err := os.ReadFile(file)
	for _, found := range ruleName.FindAllStringSubmatch(string(text), -1) {
		d.values["make "+found[1]] = true
	}
	return err
}

// read takes in a file of Go.
func (d *declarations) read(file, folder string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	into := d.packages[folder]
	if into == nil {
		into = &declared{names: map[string]bool{}, parts: map[string]bool{}, texts: map[string]bool{}, suites: map[string]bool{}}
		d.packages[folder] = into
	}
	if strings.HasSuffix(file, "_test.go") {
		d.readTest(parsed, folder)
		return nil
	}
	for _, declaration := range parsed.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			if declaration.Recv != nil {
				into.addMember(typeName(declaration.Recv.List[0].Type), declaration.Name.Name)
				continue
			}
			into.names[declaration.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range declaration.Specs {
				d.addSpec(into, spec)
			}
		}
	}
	isSuite := strings.HasSuffix(folder, "test")
	ast.Inspect(parsed, func(node ast.Node) bool {
		d.addCommand(node)
		if text, is := literal(node); is {
			d.values[text] = true
			if strings.Contains(text, "/") || isSuite {
				into.parts[text] = true
			}
		}
		return true
	})
	return nil
}

// readTest takes in the tests of a file, its strings and the suites that it imports.
func (d *declarations) readTest(parsed *ast.File, folder string) {
	into := d.packages[folder]
	for _, declaration := range parsed.Decls {
		if function, is := declaration.(*ast.FuncDecl); is && function.Recv == nil {
			d.tests[function.Name.Name] = append(d.tests[function.Name.Name], folder)
		}
	}
	for _, imported := range parsed.Imports {
		text, _ := literal(imported.Path)
		if suite, own := strings.CutPrefix(text, module+"/"); own && strings.HasSuffix(suite, "test") {
			into.suites[suite] = true
		}
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		if text, is := literal(node); is {
			into.texts[text] = true
		}
		return true
	})
}

// literal is the text of a string in the code.
func literal(node ast.Node) (string, bool) {
	found, is := node.(*ast.BasicLit)
	if !is || found.Kind != token.STRING {
		return "", false
	}
	return strings.Trim(found.Value, "\"`"), true
}

// addCommand takes in the word of a command: the first one of the field Use of a command, or
// the first argument of cli.Group, which makes it the Use of a command for others.
func (d *declarations) addCommand(node ast.Node) {
	var use ast.Expr
	switch node := node.(type) {
	case *ast.CallExpr:
		if isSelector(node.Fun, "cli", "Group") {
			use = node.Args[0]
		}
	case *ast.CompositeLit:
		if !isSelector(node.Type, "cobra", "Command") {
			return
		}
		for _, element := range node.Elts {
			if field, is := element.(*ast.KeyValueExpr); is && isName(field.Key, "Use") {
				use = field.Value
			}
		}
	}
	if text, is := literal(use); is {
		word, _, _ := strings.Cut(text, " ") // "next [flags]"
		d.commands[word] = true
	}
}

// isSelector reports whether code names something of a package.
func isSelector(code ast.Expr, of, name string) bool {
	selector, is := code.(*ast.SelectorExpr)
	return is && isName(selector.X, of) && selector.Sel.Name == name
}

func isName(code ast.Expr, name string) bool {
	identifier, is := code.(*ast.Ident)
	return is && identifier.Name == name
}

func (d *declarations) addSpec(into *declared, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			into.names[name.Name] = true
		}
	case *ast.TypeSpec:
		into.names[spec.Name.Name] = true
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
				into.addMember(spec.Name.Name, name.Name)
			}
			if member.Tag == nil {
				continue
			}
			for _, found := range tagName.FindAllStringSubmatch(member.Tag.Value, -1) {
				into.addMember(spec.Name.Name, found[1])
				d.keys[found[1]] = true
			}
		}
	}
}

// tagName is the name that a tag of a field gives it in JSON or YAML.
var tagName = regexp.MustCompile(`(?:json|yaml|key):"(\w+)`)

func (d *declared) addMember(of, name string) {
	d.names[of+"."+name], d.parts[name] = true, true
}

// typeName is the name of the type of a receiver.
func typeName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return typeName(of.X)
	case *ast.IndexExpr:
		return typeName(of.X)
	case *ast.IndexListExpr:
		return typeName(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}
