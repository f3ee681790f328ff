package testfiles

import (
	"path"
	"regexp"
	"slices"
	"strings"
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
	projects []string
	named    map[string]bool
}

// Project is a folder whose tests are run by a command.
type Project struct {
	Folder, Command string
}

// New makes a set for the projects of a repository. The files are those that it had
// before a change, and read reads one of them, or returns nothing.
func New(projects []Project, files []string, read func(name string) []byte) Set {
	set := Set{named: map[string]bool{}}
	known := map[string]bool{}
	for _, name := range files {
		known[name] = true
	}
	for _, project := range projects {
		folder := path.Clean(project.Folder)
		set.projects = append(set.projects, folder)
		set.addNamed(folder, project.Command, known, read)
	}
	return set
}

// mention is a word of a command line or a script that may be the name of a file.
var mention = regexp.MustCompile(`[\w./@+-]+`)

// scripts are files that run other files.
var scripts = []string{".sh", ".bash", ".zsh", ".mk", ".bats"}

// testWord is in the names of files that tests are made of.
var testWord = regexp.MustCompile(`(?i)test|spec|check|verify|assert|expect|golden|fixture`)

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

// folders of tests and of what they are compared with.
var folders = regexp.MustCompile(`(?i)^(?:tests?|specs?|e2e|__\w+__|(?:test|spec)[_.-].+|.+[_.-](?:tests?|specs?)|test(?:s|ing|data|utils?|kit|libs?|helpers?|support|suites?|cases?|fixtures?|resources?)|fixtures?|snapshots?|goldens?|expected|cypress|features)$`)

// names of tests.
var names = regexp.MustCompile(`(?i:^tests?\.|^tests?[_-]|[_.-]tests?\.|[_.-]specs?\.|^specs?[_.-]|\.(?:snap|golden|approved|expected|bats|feature|t)$|golden|expected|^conftest\.)|(?:Tests?|TestCase|IT|Specs?)\.\w+$|^(?:Test|Spec)[A-Z].*\.\w+$`)

// configurations by name.
var configurations = regexp.MustCompile(`^(?i:\.?pytest\.ini|\.?pytest\.toml|tox\.ini|noxfile\.py|\.coveragerc|\.testr\.conf|\.stestr\.conf|nose2?\.cfg|unittest\.cfg|(?:site|user)customize\.py|.*\.pth|` +
	`(?:jest|vitest|vite|babel|karma|ava|playwright|cypress|wdio|web-test-runner|webpack|rollup|esbuild|swc|nyc)[._-].*|\.babelrc.*|\.swcrc|\.mocharc.*|\.nycrc.*|\.c8rc.*|\.taprc|\.jestrc.*|mocha\.opts|tsconfig.*\.json|` +
	`\.npmrc|\.yarnrc.*|\.pnpmfile\.c?js|bunfig\.toml|\.env.*|env\.sh|` +
	`(?:gnu)?makefile.*|.*\.mk|justfile|\.justfile|taskfile\.ya?ml|rakefile|\.rspec.*|spec_helper\.rb|rails_helper\.rb|phpunit\.xml.*|phpunit\.dist\.xml|pest\.php|.*\.runsettings|directory\.(?:build|packages)\..*|xunit\.runner\.json|` +
	`nextest\.toml|go\.work|go\.env|\.bazelrc|gradle\.properties|testng\.xml|junit-platform\.properties|` +
	`\.gitattributes|\.gitmodules|\.gitlab-ci\.ya?ml|\.travis\.ya?ml|jenkinsfile|azure-pipelines\.ya?ml|appveyor\.ya?ml|bitbucket-pipelines\.ya?ml)$`)

// inFolders are folders all of whose files are configuration.
var inFolders = []string{".github/workflows", ".github/actions", ".gitea/workflows", ".forgejo/workflows", ".circleci", ".cargo", ".mvn", ".husky", ".yarn", ".config/nextest"}

// libraries are folders of packages that others have written.
var libraries = []string{"vendor", "node_modules", "third_party", "site-packages", ".venv"}

// shared are files with several purposes.
var shared = []string{"package.json", "pyproject.toml", "setup.cfg", "deno.json", "deno.jsonc", "composer.json"}

// runnerModules are modules of Python that test runners are made of. A file of that
// name in the folder of a project is found first.
var runnerModules = strings.Fields(`_pytest abc argparse ast asyncio builtins codecs collections contextlib copy copyreg dataclasses datetime difflib doctest
	enum errno fnmatch functools gc genericpath getopt glob importlib inspect io iniconfig itertools json keyword linecache locale logging math operator os
	packaging pathlib pdb pkgutil platform pluggy posixpath pprint pytest py random re reprlib runpy selectors shlex shutil signal site sre_compile stat
	string struct subprocess sys sysconfig tempfile textwrap threading time token tokenize traceback types typing unittest uuid warnings weakref zipimport`)

// Kind says what a file is.
func (s Set) Kind(name string) Kind {
	parts := strings.Split(name, "/")
	base := parts[len(parts)-1]
	for _, folder := range parts[:len(parts)-1] {
		if slices.Contains(libraries, folder) {
			return Library
		}
	}
	switch {
	case s.named[name], slices.ContainsFunc(parts[:len(parts)-1], folders.MatchString), folders.MatchString(base) && path.Ext(base) == "", names.MatchString(base):
		return Test
	case slices.Contains(shared, base):
		return Shared
	case configurations.MatchString(base), s.shadows(name), slices.ContainsFunc(inFolders, func(folder string) bool {
		return strings.HasPrefix(name, folder+"/") || strings.Contains(name, "/"+folder+"/")
	}):
		return Configuration
	}
	return Program
}

// shadows reports whether a file is found by Python in place of a module that test
// runners are made of.
func (s Set) shadows(name string) bool {
	for _, folder := range append(s.projects, ".") {
		inside, below := name, folder == "."
		if !below {
			inside, below = strings.CutPrefix(name, folder+"/")
		}
		if !below {
			continue
		}
		for _, inside := range []string{inside, strings.TrimPrefix(inside, "src/")} {
			first, _, isFolder := strings.Cut(inside, "/")
			module, isModule := strings.CutSuffix(first, ".py")
			if (isModule || isFolder) && path.Ext(name) == ".py" && slices.Contains(runnerModules, module) {
				return true
			}
		}
	}
	return false
}
