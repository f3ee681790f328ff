package testfiles

import (
	"bytes"
	"encoding/json"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// Differs reports whether a [Shared] file says something else about tests than it did
// before. What cannot be read does.
func Differs(name string, before, after []byte) bool {
	switch path.Base(name) {
	case "package.json", "composer.json", "deno.json", "deno.jsonc":
		was, ok := jsonObject(before)
		is, okNow := jsonObject(after)
		return !ok || !okNow || scriptsDiffer(was, is) || partsDiffer(was, is, manifestParts)
	case "pyproject.toml":
		was, ok := tomlTable(before)
		is, okNow := tomlTable(after)
		return !ok || !okNow || partsDiffer(was, is, pythonParts)
	default:
		return !slices.Equal(testSections(before), testSections(after))
	}
}

// manifestParts are the parts of package.json and its like, besides scripts, that
// change how tests are run or what they are run with.
var manifestParts = strings.Fields(`jest mocha ava vitest nyc c8 tap tape babel overrides resolutions pnpm imports importMap
	tasks test nodeModulesDir autoload-dev repositories packageManager config ts-node`)

// pythonParts are those of pyproject.toml. What is installed may have plugins of pytest.
var pythonParts = strings.Fields(`build-system project.entry-points tool.pytest tool.unittest tool.tox tool.nox tool.hatch tool.poe tool.taskipy tool.coverage
	tool.setuptools tool.pytest-enabler tool.nose2 tool.uv.sources tool.pdm.scripts tool.poetry.scripts tool.poetry.plugins`)

func partsDiffer(before, after map[string]any, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return !reflect.DeepEqual(partOf(before, part), partOf(after, part)) })
}

// partOf is a part by the names on the way to it.
func partOf(table map[string]any, part string) any {
	first, rest, further := strings.Cut(part, ".")
	if !further {
		return table[first]
	}
	return partOf(object(table[first]), rest)
}

func jsonObject(data []byte) (map[string]any, bool) {
	var value map[string]any
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, true
	}
	return value, json.Unmarshal(data, &value) == nil
}

func tomlTable(data []byte) (map[string]any, bool) {
	var value map[string]any
	return value, toml.Unmarshal(data, &value) == nil
}

func object(value any) map[string]any {
	known, _ := value.(map[string]any)
	return known
}

// installHooks are scripts that run when packages are installed.
var installHooks = []string{"preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare", "dependencies", "test", "pre-autoload-dump", "post-autoload-dump"}

// scriptsDiffer reports whether scripts that were there do something else, or new ones
// run beside them. A new script that nothing runs makes no difference.
func scriptsDiffer(before, after map[string]any) bool {
	was, is := object(before["scripts"]), object(after["scripts"])
	for name, command := range was {
		if !reflect.DeepEqual(is[name], command) {
			return true
		}
	}
	for name := range is {
		if _, known := was[name]; known {
			continue
		}
		_, before := was[strings.TrimPrefix(name, "pre")]
		_, after := was[strings.TrimPrefix(name, "post")]
		if before || after || slices.Contains(installHooks, name) || strings.HasPrefix(name, "pretest") || strings.HasPrefix(name, "posttest") {
			return true
		}
	}
	return false
}

// testScripts are the commands of a package.json that run tests.
func testScripts(manifest []byte) []string {
	read, _ := jsonObject(manifest)
	var commands []string
	for name, command := range object(read["scripts"]) {
		if text, is := command.(string); is && strings.Contains(name, "test") {
			commands = append(commands, text)
		}
	}
	slices.Sort(commands)
	return commands
}

var section = lazyregexp.New(`^\[\s*(.*?)\s*\]`)

// testSections are the lines of the sections about tests of an INI file.
func testSections(data []byte) []string {
	lines, _ := sections(data)
	return lines
}

// sections are the lines of the sections about tests of an INI file, and the others.
func sections(data []byte) (ofTests, others []string) {
	inside := false
	for line := range strings.SplitSeq(string(data), "\n") {
		if found := section.FindStringSubmatch(line); found != nil {
			inside = strings.Contains(found[1], "test") || strings.HasPrefix(found[1], "tox") || found[1] == "aliases" || strings.HasPrefix(found[1], "options")
		}
		line = strings.TrimRight(line, " \t\r")
		switch {
		case line == "":
		case inside:
			ofTests = append(ofTests, line)
		default:
			others = append(others, line)
		}
	}
	return ofTests, others
}

type buildLine struct{ file, line *lazyregexp.Regexp }

// buildLines are, by the names of build files, lines that change which tests are run, or
// by what the packages that they use are replaced.
var buildLines = []buildLine{
	{lazyregexp.New(`^go\.mod$`), lazyregexp.New(`=>|^\s*replace\b|^\s*exclude\b`)},
	{lazyregexp.New(`^Cargo\.toml$`), lazyregexp.New(`^\s*\[+\s*(?:patch|replace|test)|^\s*(?:test|harness|autotests|doctest)\s*=`)},
	{lazyregexp.New(`^pom\.xml$`), lazyregexp.New(`(?i)skip|testFailureIgnore|surefire|failsafe|maven\.test|systemPath|<exclude|<groups|<testSourceDirectory`)},
	{lazyregexp.New(`\.gradle(?:\.kts)?$`), lazyregexp.New(`(?i)ignoreFailures|exclude|onlyIf|\btest\b|enabled|filter|substitut|flatDir|mavenLocal`)},
	{lazyregexp.New(`\.(?:cs|fs|vb)proj$|\.(?:props|targets)$`), lazyregexp.New(`(?i)VSTest|IsTestProject|Compile Remove|HintPath|<Target\b|<Exec\b`)},
	{lazyregexp.New(`^package\.json$`), lazyregexp.New(`"(?:file|link|portal|workspace|git\+?\w*):`)},
	{lazyregexp.New(`^requirements.*\.txt$`), lazyregexp.New(`^\s*(?:-e|--editable|-f|--find-links|-i|--index-url|--extra-index-url)\b|^[^#]*(?:file:|\.whl\b|\.tar\.gz\b)|^\s*[\w.-]*/[^:]*$|^\s*\.{1,2}(?:\[.*)?$`)},
	{lazyregexp.New(`^setup\.py$`), lazyregexp.New(`entry_points|pytest11|cmdclass`)},
	{lazyregexp.New(`^requirements.*\.txt$|^Pipfile$|^pyproject\.toml$`), lazyregexp.New(`(?:pytest|pluggy|unittest\w*|nose2?|hypothesis|assertpy)\b.*(?:file:|@|path\s*=)|^\s*-e\b`)},
	{lazyregexp.New(`^Gemfile$`), lazyregexp.New(`(?:rspec|minitest|test-unit).*(?:path|git)\b`)},
	{lazyregexp.New(`^CMakeLists\.txt$`), lazyregexp.New(`(?i)add_test|enable_testing|set_tests_properties`)},
	{lazyregexp.New(`^mix\.exs$`), lazyregexp.New(`test_(?:paths|pattern|coverage)|path:`)},
}

// IsBuildFile reports whether [ChangedBuildLines] knows such files.
func IsBuildFile(name string) bool {
	return slices.ContainsFunc(buildLines, func(one buildLine) bool { return one.file.MatchString(path.Base(name)) })
}

// ChangedBuildLines are the lines that one version of a build file has and the other has not, and
// that say which tests are run or by what the packages that they use are replaced.
func ChangedBuildLines(name string, was, is []byte) []string {
	before, after := strings.Split(string(was), "\n"), strings.Split(string(is), "\n")
	changed := append(without(after, before), without(before, after)...)
	var found []string
	for _, one := range buildLines {
		if !one.file.MatchString(path.Base(name)) {
			continue
		}
		for _, line := range changed {
			if text := strings.TrimSpace(line); one.line.MatchString(line) && !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
	}
	return found
}

// without are the lines that others have not.
func without(lines, others []string) []string {
	known := make(map[string]bool, len(others))
	for _, line := range others {
		known[strings.TrimSpace(line)] = true
	}
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return known[strings.TrimSpace(line)] })
}
