package environment

import (
	"path"
	"slices"
	"strings"
)

// manifest is what the manifests of one environment say together.
type manifest struct {
	dependencies []string
	runtime      int    // how many of them are needed to run, not only to develop
	product      bool   // it is the manifest of something that runs or is published
	version      string // of the language
	manager      string // the package manager that it names
	test         string // the command that it says runs the tests
	hasTest      bool
}

type parser func(content []byte, into *manifest) error

// parsers are by file name or pattern.
var parsers = []struct {
	pattern string
	parse   parser
}{
	{"requirements.txt", parseRequirements},
	{"requirements*.txt", parseRequirements},
	{"requirements/*.txt", parseRequirements},
	{"pyproject.toml", parsePyproject},
	{"Pipfile", parsePipfile},
	{"setup.cfg", parseSetupConfig},
	{"setup.py", parseSetupScript},
	{".python-version", parseVersionFile},
	{"environment.yml", parseConda},
	{"environment.yaml", parseConda},
	{"condaenv.yaml", parseConda},
	{"condaenv.yml", parseConda},
	{"package.json", parsePackageJSON},
	{".nvmrc", parseVersionFile},
	{"pom.xml", parsePom},
	{"build.gradle", parseGradle},
	{"build.gradle.kts", parseGradle},
	{"go.mod", parseGoMod},
	{"go.work", parseGoWork},
	{"Cargo.toml", parseCargo},
	{"rust-toolchain", parseVersionFile},
	{"Gemfile", parseGemfile},
	{".ruby-version", parseVersionFile},
	{"composer.json", parseComposer},
	{"*.csproj", parseProject},
	{"*.fsproj", parseProject},
	{"mix.exs", parseMix},
	{"pubspec.yaml", parsePubspec},
}

func parserFor(file string) (parser, bool) {
	for _, known := range parsers {
		if matchesName(known.pattern, file) {
			return known.parse, true
		}
	}
	return nil, false
}

// add records dependencies, each once.
func (m *manifest) add(needed bool, names ...string) {
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name == "" || slices.Contains(m.dependencies, name) {
			continue
		}
		m.dependencies = append(m.dependencies, name)
		if needed {
			m.runtime++
		}
	}
}

func (m *manifest) setVersion(version string) {
	if version = strings.TrimSpace(version); m.version == "" {
		m.version = version
	}
}

func (m *manifest) managerOr(otherwise string) string {
	if m.manager != "" {
		return m.manager
	}
	return otherwise
}

func (m *manifest) mentions(dependency string) bool {
	return slices.ContainsFunc(m.dependencies, func(name string) bool { return strings.HasPrefix(name, dependency) })
}

func parseVersionFile(content []byte, into *manifest) error {
	line, _, _ := strings.Cut(strings.TrimSpace(string(content)), "\n")
	into.setVersion(path.Base(strings.TrimSpace(line)))
	return nil
}
