package testfiles

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// Kind is what a file is to the tests.
type Kind string

// The kinds of files. A library that is kept in the repository is one that tests may
// use to compare what they get with what they want.
const (
	Program       Kind = ""
	Test          Kind = "test"          // a test, or what it is compared with
	Configuration Kind = "configuration" // says how tests are run, and nothing else that matters
	Shared        Kind = "shared"        // says that and other things: see [Differs]
	Library       Kind = "library"
)

// Set knows the kinds of the files of one repository.
type Set struct {
	projects  []string
	named     map[string]bool
	known     map[string]bool        // the files
	folders   map[string]bool        // those that have files
	libraries map[string]bool        // those of packages
	imported  func() map[string]bool // see importedModules
}

// Project is a folder whose tests are run by a command.
type Project struct {
	Folder, Command string
	Failures        string // what the tests said that failed before the change
}

// New makes a set for the projects of a repository. The files are those that it had
// before a change, and read reads one of them, or returns nothing.
func New(projects []Project, files []string, read func(name string) []byte) Set {
	set := Set{named: map[string]bool{}, known: map[string]bool{}, folders: map[string]bool{}, libraries: map[string]bool{}}
	for _, name := range files {
		set.known[name], set.folders[path.Dir(name)] = true, true
		if library := libraryFolder(name); library != "" {
			set.libraries[library] = true
		}
	}
	for _, project := range projects {
		folder := path.Clean(project.Folder)
		set.projects = append(set.projects, folder)
		set.addNamed(folder, project.Command, set.known, read)
	}
	set.imported = sync.OnceValue(func() map[string]bool { return set.importedModules(projects, read) })
	return set
}

// mention is a word of a command line or a script that may be the name of a file.
var mention = lazyregexp.New(`[\w./@+-]+`)

// scripts are files that run other files.
var scripts = []string{".sh", ".bash", ".zsh", ".mk", ".bats"}

// testWord is in the names of files that tests are made of.
var testWord = lazyregexp.New(`(?i)test|spec|check|verify|assert|expect|golden|fixture`)

// addNamed takes the files that a test command names for tests: those in the command
// itself, and in a script that it runs those whose names say so.
func (s Set) addNamed(folder, command string, known map[string]bool, read func(string) []byte) {
	words := mention.FindAllString(command, mostMentions)
	if manifest := path.Join(folder, "package.json"); known[manifest] {
		words = append(words, mention.FindAllString(strings.Join(testScripts(read(manifest)), "\n"), mostMentions)...)
	}
	for _, name := range []string{"Makefile", "makefile", "GNUmakefile"} {
		if name = path.Join(folder, name); known[name] && strings.Contains(command, "make") {
			inside := mention.FindAllString(string(read(name)), -1)
			words = append(words, slices.DeleteFunc(inside, func(word string) bool { return !slices.Contains(scripts, path.Ext(word)) })...)
		}
	}
	for _, word := range words {
		if name := path.Join(folder, word); known[name] && !s.named[name] {
			s.named[name] = true
			s.addMentioned(name, folder, string(read(name)), known)
		}
	}
}

// mostMentions bounds how many words of one text are looked at.
const mostMentions = 1000

// addMentioned takes the files that a script mentions for tests if their names say so.
func (s Set) addMentioned(script, folder, text string, known map[string]bool) {
	for _, word := range mention.FindAllString(text, mostMentions) {
		for _, from := range []string{folder, path.Dir(script)} {
			if name := path.Join(from, word); known[name] && testWord.MatchString(path.Base(name)) {
				s.named[name] = true
			}
		}
	}
}

// folders of tests and of what they are compared with, and folders that may be some.
var (
	testFolders = lazyregexp.New(`(?i)^(?:tests?|specs?|e2e|__(?:tests?|mocks?|snapshots?|fixtures?)__|.+[_.-]tests?|test(?:s|data|utils?|helpers?|support|suites?|cases?|fixtures?|resources?)|cypress)$`)
	folders     = lazyregexp.New(`(?i)^(?:__\w+__|test[_.-].+|spec[_.-](?:helpers?|support|data|fixtures?|utils?)|.+[_.-]specs?|test(?:ing|kit|libs?)|fixtures?|snapshots?|goldens?|expected)$`)
)

// generated is a folder of the program that looks like one of tests.
const generated = "__generated__"

// names of tests, and names that may be some.
var (
	testNames = lazyregexp.New(`(?i:^tests?\.|^tests?[_-]|[_.-]tests?\.|[_.-]specs?\.|\.(?:snap|bats|feature)$|^conftest\.py$)|` +
		`(?:Tests?|TestCase)\.\w+$|[a-z0-9]IT\.(?:java|kt|groovy|scala)$|Specs?\.(?:scala|groovy|hs)$|^Test[A-Z].*\.\w+$`)
	names = lazyregexp.New(`(?i:^specs?[_.-]|\.(?:golden|approved|expected)$|(?:^|[^a-z])(?:golden|expected)(?:[^a-z]|$)|^conftest\.)|Specs?\.m?js$`)
)

// paths of tests: those of Perl, and what Cucumber and its like run for a feature.
var paths = lazyregexp.New(`(?:^|/)t/(?:.*/)?[^/]+\.t$|(?:^|/)features/(?:steps|step_definitions|support|environment\.py$)`)

// configurations by name.
var configurations = lazyregexp.New(`^(?i:\.?pytest\.ini|\.?pytest\.toml|tox\.ini|noxfile\.py|\.coveragerc|\.testr\.conf|\.stestr\.conf|nose2?\.cfg|unittest\.cfg|(?:site|user)customize\.py|.*\.pth|` +
	`(?:jest|vitest|vite|babel|karma|ava|playwright|cypress|wdio|web-test-runner|webpack|rollup|esbuild|swc|nyc)[._-].*|\.babelrc.*|\.swcrc|\.mocharc.*|\.nycrc.*|\.c8rc.*|\.taprc|\.jestrc.*|mocha\.opts|tsconfig.*\.json|` +
	`\.npmrc|\.yarnrc.*|\.pnpmfile\.c?js|bunfig\.toml|\.env.*|env\.sh|` +
	`(?:gnu)?makefile.*|.*\.mk|justfile|\.justfile|taskfile\.ya?ml|rakefile|\.rspec.*|spec_helper\.rb|rails_helper\.rb|phpunit\.xml.*|phpunit\.dist\.xml|pest\.php|.*\.runsettings|directory\.(?:build|packages)\..*|xunit\.runner\.json|` +
	`nextest\.toml|go\.work|go\.env|\.bazelrc|gradle\.properties|testng\.xml|junit-platform\.properties|` +
	`\.gitattributes|\.gitmodules|\.gitlab-ci\.ya?ml|\.travis\.ya?ml|jenkinsfile|azure-pipelines\.ya?ml|appveyor\.ya?ml|bitbucket-pipelines\.ya?ml)$`)

// inFolders are folders all of whose files are configuration.
var inFolders = []string{".github/workflows", ".github/actions", ".gitea/workflows", ".forgejo/workflows", ".circleci", ".cargo", ".mvn", ".husky", ".yarn", ".config/nextest"}

// installed are files that make Python take a folder for an installed package, which may
// have plugins of pytest.
var installed = lazyregexp.New(`\.(?:egg-info|dist-info|egg-link)(?:/|$)`)

// shared are files with several purposes.
var shared = []string{"package.json", "pyproject.toml", "setup.cfg", "deno.json", "deno.jsonc", "composer.json"}

// runnerModules are modules of Python that test runners are made of. A file of that
// name in the folder of a project is found first.
var runnerModules = strings.Fields(`_pytest abc argparse ast asyncio builtins codecs collections contextlib copy copyreg dataclasses datetime difflib doctest
	enum errno fnmatch functools gc genericpath getopt glob importlib inspect io iniconfig itertools json keyword linecache locale logging math operator os
	packaging pathlib pdb pkgutil platform pluggy posixpath pprint pytest py random re reprlib runpy selectors shlex shutil signal site sre_compile stat
	string struct subprocess sys sysconfig tempfile textwrap threading time token tokenize traceback types typing unittest uuid warnings weakref zipimport`)

// isTest reports whether a file is a test, or what tests need, for sure.
func (s Set) isTest(name string) bool {
	parts := strings.Split(name, "/")
	base := parts[len(parts)-1]
	return s.named[name] || testNames.MatchString(base) || paths.MatchString(name) || slices.ContainsFunc(parts[:len(parts)-1], testFolders.MatchString)
}

// maybeTest reports whether a file may be a test. A file without an ending may be a link to
// a folder of tests.
func maybeTest(within []string, base string) bool {
	isFolder := func(name string) bool { return folders.MatchString(name) && name != generated }
	return names.MatchString(base) || slices.ContainsFunc(within, isFolder) || path.Ext(base) == "" && (isFolder(base) || testFolders.MatchString(base))
}

// Certain reports whether a file is a test for sure, and not perhaps a part of the program.
func (s Set) Certain(name string) bool { return s.Kind(name) == Test && s.isTest(name) }

// Kind says what a file is.
func (s Set) Kind(name string) Kind {
	parts := strings.Split(name, "/")
	base := parts[len(parts)-1]
	if libraryFolder(name) != "" {
		return Library
	}
	switch {
	case s.isTest(name), maybeTest(parts[:len(parts)-1], base):
		return Test
	case slices.Contains(shared, base):
		return Shared
	case configurations.MatchString(base), installed.MatchString(name), s.shadows(name), slices.ContainsFunc(inFolders, func(folder string) bool {
		return strings.HasPrefix(name, folder+"/") || strings.Contains(name, "/"+folder+"/")
	}):
		return Configuration
	}
	return Program
}

// shadows reports whether a file is found by Python in place of a module that test
// runners are made of, or that tests get from elsewhere.
func (s Set) shadows(name string) bool {
	if path.Ext(name) != ".py" {
		return false
	}
	return slices.ContainsFunc(s.modules(name), func(module string) bool {
		return slices.Contains(runnerModules, module) || !s.known[name] && s.imported()[module]
	})
}

// modules are the names under which Python finds a file from the folders of projects.
func (s Set) modules(name string) []string {
	var found []string
	for _, folder := range append([]string{"."}, s.projects...) {
		inside, below := name, folder == "."
		if !below {
			inside, below = strings.CutPrefix(name, folder+"/")
		}
		if !below {
			continue
		}
		for _, inside := range []string{inside, strings.TrimPrefix(inside, "src/")} {
			first, _, _ := strings.Cut(inside, "/")
			found = append(found, strings.TrimSuffix(first, ".py"))
		}
	}
	return found
}
