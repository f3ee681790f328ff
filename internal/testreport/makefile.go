package testreport

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// makefile is what is read of a simple Makefile: plain variables, and rules with plain
// targets.
type makefile struct {
	variables map[string]string
	rules     map[string]*makeRule
	phony     []string
	exported  []string
	expanding int // how deep variables are in each other
}

type makeRule struct {
	needs  string
	recipe []string
}

var (
	makeContinued  = lazyregexp.New(`[ \t]*\\\r?\n[ \t]*`)
	makeTarget     = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	makeAssignment = lazyregexp.New(`^([A-Za-z_][A-Za-z0-9_]*)[ \t]*(?:\?|::?)?=[ \t]*(.*)$`)
	makeVariable   = lazyregexp.New(`\$(?:\$|\(([A-Za-z_][A-Za-z0-9_]*)\)|\{([A-Za-z_][A-Za-z0-9_]*)\}|.|$)`)
	makeDirective  = lazyregexp.New(`^ *(?:-?include|sinclude|define|endef|ifn?eq|ifn?def|else|endif|override|unexport|vpath|private|undefine|load)\b`)
)

// makeEnvironment are variables that make hands to commands if it was given them
// itself, and those that change how it runs commands.
var makeEnvironment = []string{"SHELL", "MAKEFLAGS", "PATH", "HOME", "PYTHONPATH", "NODE_OPTIONS", "NODE_ENV", "GOFLAGS", "GOPATH", "GOOS", "GOARCH", "GO111MODULE", "CGO_ENABLED"}

// makeLine is the command line that make runs for a target, as one line of a shell: it
// makes what the target needs, and then runs the recipe. False if the Makefile is not
// simple enough to be sure.
func makeLine(words []string, project fs.FS) (string, bool) {
	if len(words) == 0 || words[0] != "make" || project == nil {
		return "", false
	}
	arguments := slices.DeleteFunc(slices.Clone(words[1:]), func(w string) bool {
		return slices.Contains([]string{"-s", "--silent", "--quiet", "--no-print-directory"}, w)
	})
	if len(arguments) != 1 || !makeTarget.MatchString(arguments[0]) {
		return "", false
	}
	target := arguments[0]
	m, ok := readMakefile(project)
	if !ok || m.rules[target] == nil {
		return "", false
	}
	if _, err := fs.Stat(project, target); err == nil && !slices.Contains(m.phony, target) {
		return "", false // it may be up to date
	}
	return m.line(m.rules[target])
}

func readMakefile(project fs.FS) (*makefile, bool) {
	var data []byte
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} { // in make's order
		var err error
		if data, err = readFile(project, name, maxProject); err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, false
		}
	}
	m := &makefile{variables: map[string]string{}, rules: map[string]*makeRule{}}
	var current []*makeRule
	text := makeContinued.ReplaceAllString(string(data), " ")
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if recipe, is := strings.CutPrefix(line, "\t"); is {
			for _, rule := range current {
				rule.recipe = append(rule.recipe, recipe)
			}
			continue
		}
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		var ok bool
		if current, ok = m.add(line); !ok {
			return nil, false
		}
	}
	return m, true
}

// add reads a line that is no part of a recipe, and returns the rules that it begins.
func (m *makefile) add(line string) ([]*makeRule, bool) {
	if makeDirective.MatchString(line) {
		return nil, false
	}
	line, isExported := strings.CutPrefix(line, "export ")
	if found := makeAssignment.FindStringSubmatch(line); found != nil {
		return nil, m.assign(found[1], found[2], isExported)
	}
	if strings.HasPrefix(line, ".DEFAULT_GOAL") { // only for make without a target
		return nil, true
	}
	before, after, isRule := strings.Cut(line, ":")
	targets, ok := m.expand(before)
	if !isRule || !ok || isExported || strings.ContainsAny(after, ":;=|") || strings.ContainsAny(targets, "=+!&") {
		return nil, false
	}
	var rules []*makeRule
	for target := range strings.FieldsSeq(targets) {
		switch {
		case target == ".PHONY":
			names, ok := m.expand(after)
			if !ok {
				return nil, false
			}
			m.phony = append(m.phony, strings.Fields(names)...)
		case slices.Contains([]string{".ONESHELL", ".EXPORT_ALL_VARIABLES", ".IGNORE"}, target) || m.rules[target] != nil:
			return nil, false
		default:
			m.rules[target] = &makeRule{needs: after}
			rules = append(rules, m.rules[target])
		}
	}
	return rules, true
}

func (m *makefile) assign(name, value string, isExported bool) bool {
	if name == "SHELL" && slices.Contains([]string{"sh", "bash", "dash"}, path.Base(value)) {
		return true // they run simple commands alike
	}
	if isExported {
		m.exported = append(m.exported, name)
	}
	_, again := m.variables[name]
	m.variables[name] = value
	return !again && (isExported || !slices.Contains(makeEnvironment, name))
}

// expand replaces variables. Functions, variables of make itself and those that the
// Makefile does not set are not known.
func (m *makefile) expand(text string) (string, bool) {
	const deepest = 10
	if m.expanding++; m.expanding > deepest {
		return "", false
	}
	defer func() { m.expanding-- }()
	known := true
	text = makeVariable.ReplaceAllStringFunc(text, func(reference string) string {
		found := makeVariable.FindStringSubmatch(reference)
		name := found[1] + found[2]
		value, set := m.variables[name]
		switch {
		case reference == "$$":
			return "$"
		case name == "MAKE" && !set:
			return "make"
		case !set:
			known = false
			return ""
		}
		value, ok := m.expand(value)
		known = known && ok
		return value
	})
	return text, known && len(text) <= maxProject
}

// stateful are commands of a shell that change what those after them do. In make, each
// line has a shell of its own.
var stateful = []string{"cd", "export", "set", "unset", "exec", "exit", "return", ".", "source", "umask", "trap", "alias", "eval", "readonly", "ulimit", "shift"}

func (m *makefile) line(rule *makeRule) (string, bool) {
	var exports []string
	for _, name := range m.exported {
		value, ok := m.expand(m.variables[name])
		if !ok {
			return "", false
		}
		exports = append(exports, "export "+quote(name+"="+value))
	}
	lines, ok := m.lines(rule)
	if !ok || len(lines) == 0 {
		return "", false
	}
	for i, line := range lines {
		commands, ok := parseLine(line)
		if !ok || i+1 < len(lines) && slices.ContainsFunc(commands, changesShell) {
			return "", false
		}
	}
	return strings.Join(append(exports, lines...), " && "), true
}

// changesShell says whether a command may change what those after it do.
func changesShell(c simpleCommand) bool {
	return slices.Contains(stateful, c.words[0].text) || assignment.MatchString(c.words[len(c.words)-1].text)
}

// lines make what a rule needs, and run its recipe.
func (m *makefile) lines(rule *makeRule) (lines []string, ok bool) {
	needs, ok := m.expand(rule.needs)
	names := strings.Fields(needs)
	if !ok || slices.ContainsFunc(names, func(name string) bool { return !makeTarget.MatchString(name) }) {
		return nil, false
	}
	if len(names) > 0 {
		lines = append(lines, "make "+strings.Join(names, " "))
	}
	for _, recipe := range rule.recipe {
		recipe = strings.TrimLeft(recipe, "@+ \t")
		if recipe == "" || recipe[0] == '#' {
			continue
		}
		expanded, ok := m.expand(recipe)
		if !ok || recipe[0] == '-' { // its failure does not count
			return nil, false
		}
		lines = append(lines, strings.TrimLeft(expanded, " \t"))
	}
	return lines, true
}
