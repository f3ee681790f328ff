package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const (
	mostNotes        = 8 << 10
	mostDeclarations = 8 << 10
	mostDoc          = 400
	mostTestNames    = 50
)

// statement is what the model is asked for: what the newer version says of itself where it
// has a change log, or else the names of the tests that fail; the packages whose tests have to
// pass; and the declarations that these tests use and the older version does not have in that
// form. Without the latter nobody could know their names.
func (s source) statement(p pair, tests string, failToPass []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "This repository has version %s of the Go module %s. ", p.older, p.module)
	notes := s.notes(p.newer)
	if notes != "" {
		fmt.Fprintf(&b, "Change it as the change log says of version %s:\n\n%s\n\n", p.newer, notes)
	} else {
		fmt.Fprintf(&b, "Change it so that it does what the tests of version %s expect.\n\n", p.newer)
	}
	b.WriteString("Hidden tests of these packages have to pass:\n\n")
	for _, name := range packagesOf(failToPass) {
		fmt.Fprintf(&b, "- %s\n", name)
	}
	if notes == "" {
		fmt.Fprintf(&b, "\nThese of them fail now: %s.\n", strings.Join(s.changedTests(failToPass), ", "))
	}
	if declared := s.declarations(tests); declared != "" {
		fmt.Fprintf(&b, "\nThey use these declarations, which are new or differ from those in the repository:\n\n```go\n%s```\n", declared)
	}
	return b.String()
}

// packagesOf are the packages of tests.
func packagesOf(tests []string) []string {
	found := map[string]bool{}
	for _, name := range tests {
		name, _, _ = strings.Cut(name, " ")
		found[name] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// changedTests are the functions among tests that are new or have another text. The others
// fail because their package does not compile, or by what they read: they are named only if
// there is none of the former.
func (s source) changedTests(tests []string) []string {
	was, is := testFunctions(s.older), testFunctions(s.newer)
	found, others := map[string]bool{}, map[string]bool{}
	for _, test := range tests {
		_, test, _ = strings.Cut(test, " ")
		test, _, _ = strings.Cut(test, "/")
		if others[test] = true; was[test] != is[test] {
			found[test] = true
		}
	}
	if len(found) == 0 {
		found = others
	}
	list := slices.Sorted(maps.Keys(found))
	return list[:min(len(list), mostTestNames)]
}

// testFunctions are the texts of the functions in test files, by name.
func testFunctions(f files) map[string]string {
	found := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f.only(isTest))) {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "", f[name], parser.SkipObjectResolution)
		if err != nil { // such as code for another version of Go: the statement says less
			continue
		}
		for _, d := range file.Decls {
			if function, is := d.(*ast.FuncDecl); is {
				found[function.Name.Name] += string(f[name][set.Position(d.Pos()).Offset:set.Position(d.End()).Offset])
			}
		}
	}
	return found
}

var (
	changeLog = regexp.MustCompile(`(?i)^(changelog|changes|history|news|releases?|release[-_]?notes)(\.(md|markdown|txt|rst))?$`)
	// heading is a line that begins with a version: "## [1.2.0] - 2020-01-01", "v1.2", "Version 1.2.0:".
	heading = regexp.MustCompile(`(?i)^[#=*\s\[]*(?:version|release)?\s*v?(\d+\.\d+(?:\.\d+)?)(?:-[^A-Za-z]|[^-.\dA-Za-z]|\.?$|\.\s)`)
)

// notes is the part of the newer version's change log about it. It is empty if there is none.
func (s source) notes(version string) string {
	for _, name := range slices.Sorted(maps.Keys(s.newer)) {
		if !changeLog.MatchString(name) {
			continue
		}
		if notes := notesOf(string(s.newer[name]), version); notes != "" {
			return notes
		}
	}
	return ""
}

// notesOf is the text below the heading of a version, up to the next such heading.
func notesOf(text, version string) string {
	var kept []string
	within := false
	for line := range strings.Lines(text) {
		if found := heading.FindStringSubmatch(line); found != nil {
			if within {
				break
			}
			within = semver.Canonical("v"+found[1]) == version
			continue
		}
		if within {
			kept = append(kept, strings.TrimRight(line, "\r\n"))
		}
	}
	if len(kept) > 0 && regexp.MustCompile(`^[-=~]+$`).MatchString(kept[0]) { // the heading was underlined
		kept = kept[1:]
	}
	notes := strings.TrimSpace(strings.Join(kept, "\n"))
	if len(notes) > mostNotes {
		notes = strings.ToValidUTF8(notes[:mostNotes], "") + "…"
	}
	return notes
}

var word = regexp.MustCompile(`[\pL_][\pL\pN_]*`)

// declarations are those of the newer version that are new or have another form, and whose
// names are in lines that the tests add.
func (s source) declarations(tests string) string {
	used := map[string]bool{}
	for line := range strings.Lines(tests) {
		if strings.HasPrefix(line, "+") {
			for _, name := range word.FindAllString(line, -1) {
				used[name] = true
			}
		}
	}
	was, is := declarationsOf(s.older), declarationsOf(s.newer)
	var b strings.Builder
	last := ""
	for _, key := range slices.Sorted(maps.Keys(is)) {
		d := is[key]
		if !used[d.name] || was[key].form == d.form {
			continue
		}
		if b.Len()+len(d.doc)+len(d.form) > mostDeclarations {
			b.WriteString("\n// and more\n")
			break
		}
		if d.pkg != last {
			fmt.Fprintf(&b, "// package %s\n", d.pkg)
			last = d.pkg
		}
		b.WriteString("\n" + d.doc + d.form + "\n")
	}
	return b.String()
}

// declaration is one on the top level of a package, without what it does.
type declaration struct{ pkg, name, doc, form string }

// declarationsOf are those of the code that is not a test, by folder, kind and name.
func declarationsOf(f files) map[string]declaration {
	found := map[string]declaration{}
	mod, err := modfile.ParseLax("go.mod", f["go.mod"], nil)
	if err != nil || mod.Module == nil {
		return found
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !isSource(name) || strings.HasPrefix(name, "vendor/") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, f[name], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil { // such as code for another version of Go: the statement says less
			continue
		}
		r := reader{set: set, pkg: path.Join(mod.Module.Mod.Path, path.Dir(name)), found: found}
		for _, d := range file.Decls {
			r.declaration(d)
		}
	}
	return found
}

// reader collects the declarations of a file.
type reader struct {
	set   *token.FileSet
	pkg   string
	found map[string]declaration
}

func (r reader) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		bare := *d
		bare.Body, bare.Doc = nil, nil
		form := r.print(&bare)
		receiver := ""
		if d.Recv != nil && len(d.Recv.List) == 1 {
			receiver = strings.TrimPrefix(r.print(d.Recv.List[0].Type), "*")
		}
		r.add("func "+receiver, d.Name.Name, d.Doc, form)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			r.spec(d, spec)
		}
	}
}

func (r reader) spec(d *ast.GenDecl, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		bare := *s
		bare.Doc, bare.Comment = nil, nil
		doc := s.Doc
		if doc == nil && len(d.Specs) == 1 {
			doc = d.Doc
		}
		r.add("type", s.Name.Name, doc, "type "+r.print(&bare))
	case *ast.ValueSpec:
		// Values are left out: they may be the work that is asked for.
		kind := ""
		if s.Type != nil {
			kind = " " + r.print(s.Type)
		}
		for _, name := range s.Names {
			r.add(d.Tok.String(), name.Name, s.Doc, d.Tok.String()+" "+name.Name+kind)
		}
	}
}

func (r reader) print(node any) string {
	var b strings.Builder
	if err := format.Node(&b, r.set, node); err != nil {
		return ""
	}
	return b.String()
}

func (r reader) add(kind, name string, doc *ast.CommentGroup, form string) {
	text := strings.TrimSpace(doc.Text())
	if len(text) > mostDoc {
		text = strings.ToValidUTF8(text[:mostDoc], "") + "…"
	}
	if text != "" {
		text = "// " + strings.ReplaceAll(strings.ReplaceAll(text, "\n", "\n// "), "// \n", "//\n") + "\n"
	}
	r.found[r.pkg+" "+kind+" "+name] = declaration{pkg: r.pkg, name: name, doc: text, form: form}
}
