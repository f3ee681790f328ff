package environment

import (
	"slices"
	"strings"
)

// manifest is what the manifests of one environment say together.
type manifest struct {
	dependencies []string
	runtime      int    // how many of them are needed to run, not only to develop
	product      bool   // it is the manifest of something that runs or is published
	private      bool   // it says that it is not published
	version      string // of the language
	manager      string // the package manager that it names
	test         string // the command that it says runs the tests
	tools, needs bool   // a manifest only configures tools; another says more
	members      workspace
	// parts are facts by name, with the text that stands for them in commands.
	parts map[string]string
}

// toolsOnly reports whether nothing is said but how tools are to work.
func (m *manifest) toolsOnly() bool { return m.tools && !m.needs && m.runtime == 0 }

// addFact records a fact, unless it is known already.
func (m *manifest) addFact(fact, text string) {
	if m.parts == nil {
		m.parts = map[string]string{}
	}
	if _, known := m.parts[fact]; !known {
		m.parts[fact] = text
	}
}

type parser func(content []byte, into *manifest) error

// parsers are by file name or pattern.
var parsers = []struct {
	pattern string
	parse   parser
}{
	{"*requirements*.txt", parseRequirements},
	{"requirements/*.txt", parseRequirements},
	{"tests/requirements.txt", parseRequirements},
	{"test/requirements.txt", parseRequirements},
	{"pyproject.toml", parsePyproject},
	{"Pipfile", parsePipfile},
	{"setup.cfg", parseSetupConfig},
	{"setup.py", parseSetupScript},
	{"tox.ini", parseToolConfig},
	{"noxfile.py", parseToolConfig},
	{".python-version", parseVersionFile},
	{"runtime.txt", parseRuntime},
	{"*env*.yml", parseConda},
	{"*env*.yaml", parseConda},
	{"conda.yml", parseConda},
	{"conda.yaml", parseConda},
	{"package.json", parsePackageJSON},
	{"pnpm-workspace.yaml", parsePnpmWorkspace},
	{".nvmrc", parseVersionFile},
	{".node-version", parseVersionFile},
	{"pom.xml", parsePom},
	{"build.gradle", parseGradle},
	{"build.gradle.kts", parseGradle},
	{"settings.gradle", parseGradleSettings},
	{"settings.gradle.kts", parseGradleSettings},
	{"go.mod", parseGoMod},
	{"go.work", parseGoWork},
	{"Cargo.toml", parseCargo},
	{"rust-toolchain", parseRustToolchain},
	{"rust-toolchain.toml", parseRustToolchain},
	{"Gemfile", parseGemfile},
	{"*.gemspec", parseGemfile},
	{".ruby-version", parseVersionFile},
	{"composer.json", parseComposer},
	{"*.csproj", parseProject},
	{"*.fsproj", parseProject},
	{"global.json", parseGlobalJSON},
	{"mix.exs", parseMix},
	{"deno.json", parseDeno},
	{"deno.jsonc", parseDeno},
	{"Package.swift", parseSwift},
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
	if version = strings.TrimSpace(version); m.version == "" && !strings.Contains(version, "/*") {
		m.version = version
	}
}

func (m *manifest) mentions(dependency string) bool {
	return slices.ContainsFunc(m.dependencies, func(name string) bool { return strings.HasPrefix(name, dependency) })
}

func parseVersionFile(content []byte, into *manifest) error {
	line, _, _ := strings.Cut(strings.TrimSpace(string(content)), "\n")
	into.setVersion(strings.TrimSpace(line))
	return nil
}
