package testfiles

import (
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

var (
	// imports are the lines at the top of a module of Python. Those in functions are left
	// out: what they name may be missing while tests run.
	imports    = lazyregexp.New(`(?m)^(?:import[ \t]+([\w., \t]+)|from[ \t]+(\w+)[\w.]*[ \t]+import\b)`)
	notThere   = lazyregexp.New(`No module named '?(\w+)`)
	moduleName = lazyregexp.New(`^\s*(\w+)`)
)

// pythonSources are the endings of files that modules of Python are made of.
var pythonSources = []string{".py", ".pyx", ".pyi", ".c", ".cc", ".cpp"}

// importedModules are the modules of Python that tests get from elsewhere: they import
// them, the program does not have them, and nothing said that they are missing.
func (s Set) importedModules(projects []Project, read func(name string) []byte) map[string]bool {
	found, own := map[string]bool{}, map[string]bool{}
	for name := range s.known {
		if !slices.Contains(pythonSources, path.Ext(name)) {
			continue
		}
		if !s.isTest(name) {
			own[strings.TrimSuffix(path.Base(name), path.Ext(name))] = true
			for folder := range strings.SplitSeq(path.Dir(name), "/") {
				own[folder] = true
			}
			continue
		}
		for _, module := range imported(string(read(name))) {
			found[module] = true
		}
	}
	for _, project := range projects {
		for _, missing := range notThere.FindAllStringSubmatch(project.Failures, -1) {
			own[missing[1]] = true
		}
	}
	for module := range own {
		delete(found, module)
	}
	return found
}

// imported are the modules that a module of Python imports.
func imported(text string) []string {
	var modules []string
	for _, line := range imports.FindAllStringSubmatch(text, -1) {
		if line[2] != "" {
			modules = append(modules, line[2])
			continue
		}
		for part := range strings.SplitSeq(line[1], ",") {
			if name := moduleName.FindStringSubmatch(part); name != nil {
				modules = append(modules, name[1])
			}
		}
	}
	return modules
}

// libraries are folders of packages that others have written.
var libraries = []string{"vendor", "node_modules", "third_party", "site-packages", ".venv"}

// packageLists are files that say which packages there are.
var packageLists = lazyregexp.New(`^(?:go\.(?:mod|sum|work)|package\.json|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|deno\.(?:json|jsonc|lock)|` +
	`requirements.*\.txt|pyproject\.toml|setup\.(?:py|cfg)|Pipfile(?:\.lock)?|poetry\.lock|uv\.lock|pdm\.lock|composer\.(?:json|lock)|Gemfile(?:\.lock)?|Cargo\.(?:toml|lock))$`)

// SetsUp reports whether the set-up of an environment reads a file: it says which packages there
// are, or how the program is built.
func SetsUp(name string) bool { return packageLists.MatchString(path.Base(name)) || IsBuildFile(name) }

// libraryFolder is the folder of packages that a file is in, or empty.
func libraryFolder(name string) string {
	parts := strings.Split(name, "/")
	for i, folder := range parts[:len(parts)-1] {
		if slices.Contains(libraries, folder) {
			return strings.Join(parts[:i+1], "/")
		}
	}
	return ""
}

// Stays reports whether a changed [Library] file belongs to new packages and not to
// those that there were: it is in a new folder, or is the list of packages, and a file that
// says which packages there are was changed too. The first packages of all do not stay:
// before the change, tests got theirs from elsewhere.
func (s Set) Stays(name string, changed []string) bool {
	library := libraryFolder(name)
	if !s.libraries[library] || path.Base(name) != "modules.txt" && s.folders[path.Dir(name)] {
		return false
	}
	return slices.ContainsFunc(changed, func(list string) bool {
		folder := path.Dir(list)
		return packageLists.MatchString(path.Base(list)) && libraryFolder(list) == "" && (folder == "." || strings.HasPrefix(library, folder+"/"))
	})
}
