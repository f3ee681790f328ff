package environment

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/pelletier/go-toml/v2"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

var (
	requirementName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*`)
	setupRequires   = lazyregexp.New(`(?s)install_requires\s*=\s*\[(.*?)\]`)
	pythonRequires  = lazyregexp.New(`python_requires\s*=\s*['"]?([^'"\n,)]+(?:,[^'"\n)]+)?)`)
	setupExtras     = lazyregexp.New(`(?s)extras_require\s*=\s*\{(.*?)\}`)
	extraName       = lazyregexp.New(`['"]([a-z]+)['"]\s*:`)
	quoted          = lazyregexp.New(`['"]([^'"]+)['"]`)
)

func parseRequirements(content []byte, into *manifest) error {
	into.needs = true
	scanner := bufio.NewScanner(bytes.NewReader(content))
	scanner.Buffer(nil, manifestCap+1)
	for scanner.Scan() {
		line, _, _ := strings.Cut(scanner.Text(), "#")
		line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
		if line == "" || strings.HasPrefix(line, "-") {
			continue
		}
		into.require(true, line)
	}
	return scanner.Err()
}

// require records a requirement as pip writes it.
func (m *manifest) require(needed bool, requirement string) {
	name := requirementName.FindString(requirement)
	m.add(needed, name)
	if name == "pytest" || strings.HasPrefix(name, "pytest-") {
		m.addFact("pytest", "")
		m.addFact("declares-pytest", "")
	}
}

// lookForPytest records that the tests are pytest's if its files are there, and
// whether it has to be installed by name, as no manifest asks for it.
func (m *manifest) lookForPytest(in folder) {
	if anyMatches([]string{"pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py"}, in.files) {
		m.addFact("pytest", "")
	}
	_, used := m.parts["pytest"]
	_, declared := m.parts["declares-pytest"]
	if used && !declared {
		m.addFact("needs-pytest", "")
	}
}

// testExtras are the names that people give to what tests need, best first.
var testExtras = []string{"test", "tests", "testing", "dev", "develop", "development", "all"}

func parsePyproject(content []byte, into *manifest) error {
	var file struct {
		Project *struct {
			Dependencies         []string            `toml:"dependencies"`
			OptionalDependencies map[string][]string `toml:"optional-dependencies"`
			RequiresPython       string              `toml:"requires-python"`
		} `toml:"project"`
		BuildSystem      map[string]any   `toml:"build-system"`
		DependencyGroups map[string][]any `toml:"dependency-groups"`
		Tool             struct {
			Poetry *struct {
				Dependencies    map[string]any `toml:"dependencies"`
				DevDependencies map[string]any `toml:"dev-dependencies"`
				Group           map[string]struct {
					Dependencies map[string]any `toml:"dependencies"`
				} `toml:"group"`
			} `toml:"poetry"`
			Pytest map[string]any `toml:"pytest"`
			Uv     map[string]any `toml:"uv"`
			Pdm    map[string]any `toml:"pdm"`
		} `toml:"tool"`
	}
	if err := toml.Unmarshal(content, &file); err != nil {
		return err
	}
	into.declareUv(file.Tool.Uv)
	if file.Project != nil {
		into.addProject(file.Project.Dependencies, file.Project.OptionalDependencies)
		into.setVersion(file.Project.RequiresPython)
	}
	for _, group := range sortedKeys(file.DependencyGroups) {
		for _, requirement := range file.DependencyGroups[group] {
			if text, isText := requirement.(string); isText {
				into.require(false, text)
			}
		}
	}
	into.addGroup(file.DependencyGroups)
	into.needs = into.needs || len(file.DependencyGroups) > 0
	if file.Project != nil || file.BuildSystem != nil || file.Tool.Poetry != nil {
		into.needs = true
		into.addPackage()
	} else {
		into.tools = true
	}
	if poetry := file.Tool.Poetry; poetry != nil {
		addPoetry(into, poetry.Dependencies, true)
		addPoetry(into, poetry.DevDependencies, false)
		for _, group := range sortedKeys(poetry.Group) {
			addPoetry(into, poetry.Group[group].Dependencies, false)
		}
		if poetry.Dependencies != nil {
			into.manager = "poetry"
		}
	}
	if file.Tool.Pytest != nil {
		into.addFact("pytest", "")
	}
	return nil
}

// declareUv records the members of a workspace of uv.
func (m *manifest) declareUv(settings map[string]any) {
	about, is := settings["workspace"].(map[string]any)
	if !is {
		return
	}
	m.addFact("members", "")
	m.addFact("sync", "--all-packages")
	m.members.declare(texts(about["members"])...)
	m.members.leaveOut(texts(about["exclude"])...)
}

// addPackage records that the project itself can be installed.
func (m *manifest) addPackage() {
	m.product = true
	m.addFact("package", "")
	m.addFact("target", ".")
}

// addExtra records the optional dependencies that tests need.
func (m *manifest) addExtra(extras map[string][]string) {
	for _, name := range testExtras {
		if _, known := extras[name]; known {
			m.addFact("target", "'.["+name+"]'")
			m.addFact("sync", "--extra "+name)
		}
	}
}

// addGroup records the dependency group that tests need.
func (m *manifest) addGroup(groups map[string][]any) {
	for _, name := range testExtras {
		if _, known := groups[name]; known {
			m.addFact("group", name)
		}
	}
}

func (m *manifest) addProject(dependencies []string, extras map[string][]string) {
	for _, requirement := range dependencies {
		m.require(true, requirement)
	}
	for _, name := range sortedKeys(extras) {
		for _, requirement := range extras[name] {
			m.require(false, requirement)
		}
	}
	m.addExtra(extras)
}

func addPoetry(into *manifest, dependencies map[string]any, needed bool) {
	for _, name := range sortedKeys(dependencies) {
		if name == "python" {
			if version, isText := dependencies[name].(string); isText {
				into.setVersion(version)
			}
			continue
		}
		into.require(needed, name)
	}
}

func parsePipfile(content []byte, into *manifest) error {
	var file struct {
		Packages    map[string]any    `toml:"packages"`
		DevPackages map[string]any    `toml:"dev-packages"`
		Requires    map[string]string `toml:"requires"`
	}
	if err := toml.Unmarshal(content, &file); err != nil {
		return err
	}
	into.needs = true
	for needed, packages := range map[bool]map[string]any{true: file.Packages, false: file.DevPackages} {
		for _, name := range sortedKeys(packages) {
			into.require(needed, name)
		}
	}
	into.setVersion(file.Requires["python_version"])
	return nil
}

// parseSetupConfig takes the indented lines under install_requires.
func parseSetupConfig(content []byte, into *manifest) error {
	inRequires := false
	if bytes.Contains(content, []byte("[metadata]")) {
		into.needs = true
		into.addPackage()
	}
	if bytes.Contains(content, []byte("[tool:pytest]")) {
		into.addFact("pytest", "")
	}
	for line := range strings.SplitSeq(string(content), "\n") {
		trimmed := strings.TrimSpace(line)
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		switch {
		case strings.HasPrefix(trimmed, "install_requires"):
			inRequires = true
			_, inline, _ := strings.Cut(trimmed, "=")
			into.add(true, requirementName.FindString(strings.TrimSpace(inline)))
		case inRequires && indented && trimmed != "":
			into.add(true, requirementName.FindString(trimmed))
		default:
			inRequires = false
		}
	}
	if found := pythonRequires.FindSubmatch(content); found != nil {
		into.setVersion(string(found[1]))
	}
	return nil
}

// parseSetupScript looks for the list that is nearly always written out in a
// setup.py. The script itself is never run here.
func parseSetupScript(content []byte, into *manifest) error {
	into.needs = true
	if extras := setupExtras.FindSubmatch(content); extras != nil {
		named := map[string][]string{}
		for _, extra := range extraName.FindAllSubmatch(extras[1], -1) {
			named[string(extra[1])] = nil
		}
		into.addExtra(named)
	}
	into.addPackage()
	if bytes.Contains(content, []byte("pytest")) {
		into.addFact("pytest", "")
	}
	if found := setupRequires.FindSubmatch(content); found != nil {
		for _, item := range quoted.FindAllSubmatch(found[1], -1) {
			into.add(true, requirementName.FindString(string(item[1])))
		}
	}
	if found := pythonRequires.FindSubmatch(content); found != nil {
		into.setVersion(string(found[1]))
	}
	return nil
}

// parseToolConfig looks for pytest in the configuration of something that runs
// tests.
func parseToolConfig(content []byte, into *manifest) error {
	if bytes.Contains(content, []byte("pytest")) {
		into.addFact("pytest", "")
	}
	return nil
}

// parseRuntime reads a line like python-3.11.4.
func parseRuntime(content []byte, into *manifest) error {
	if version, named := strings.CutPrefix(strings.TrimSpace(string(content)), "python-"); named {
		into.setVersion(version)
	}
	return nil
}

func parseConda(content []byte, into *manifest) error {
	var file struct {
		Dependencies []any `yaml:"dependencies"`
		Channels     any   `yaml:"channels"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return err
	}
	if file.Dependencies == nil && file.Channels == nil && len(bytes.TrimSpace(content)) > 0 {
		into.tools = true // an environment of something else goes by the same name
		return nil
	}
	into.needs = true
	for _, dependency := range file.Dependencies {
		switch entry := dependency.(type) {
		case string:
			name := requirementName.FindString(entry)
			if name == "python" {
				into.setVersion(strings.TrimLeft(strings.TrimPrefix(entry, name), "= "))
			}
			into.require(true, name)
		case map[string]any:
			for _, kind := range sortedKeys(entry) {
				list, _ := entry[kind].([]any)
				for _, item := range list {
					into.require(true, fmt.Sprint(item))
				}
			}
		}
	}
	return nil
}

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
