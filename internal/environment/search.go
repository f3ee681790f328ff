package environment

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const (
	// deepest and mostFolders bound the search when the top has no manifest.
	deepest     = 3
	mostFolders = 400
	mostEntries = 5000
)

// skipped are folders that hold other people's code or what a build made.
var skipped = []string{"node_modules", "vendor", ".git", ".hg", ".svn", "venv", ".venv", "target", "dist",
	"__pycache__", ".tox", ".idea", ".vscode", ".github", "third_party", "bower_components", ".cache"}

// carried are folders in which a project often carries other projects.
var carried = []string{"third-party", "thirdparty", "3rdparty", "external", "extern", "deps", "submodules"}

// aside are folders that go with a project and are not the project.
var aside = []string{"doc", "docs", "documentation", "example", "examples", "sample", "samples", "demo", "demos", "test", "tests",
	"testing", "testdata", "fixtures", "e2e", "spec", "script", "scripts", "tools", "utils", "ci", "docker", "deploy", "deployment",
	"hack", "benchmark", "benchmarks", "website", "site", "infra", "build", "contrib", "packaging"}

// samples are folders with projects that nobody works on as such.
var samples = []string{"__fixtures__", "__mocks__", "__tests__", "fixture", "template", "templates", "boilerplate", "skeleton", "buildsrc", "build-logic"}

// folder is one folder of a project: its path and what is directly in it (and,
// for some, one level below), with a slash after the name of a folder.
type folder struct {
	path  string
	files []string
}

func (f folder) depth() int {
	if f.path == "." {
		return 0
	}
	return strings.Count(f.path, "/") + 1
}

// isAside reports whether the folder lies in one that goes with the project.
func (f folder) isAside() bool {
	for part := range strings.SplitSeq(f.path, "/") {
		if slices.Contains(aside, strings.ToLower(part)) {
			return true
		}
	}
	return false
}

// isSample reports whether the folder lies in one with samples.
func (f folder) isSample() bool {
	for part := range strings.SplitSeq(f.path, "/") {
		if slices.Contains(samples, strings.ToLower(part)) {
			return true
		}
	}
	return false
}

func list(project fs.FS, at string) (folder, error) {
	entries, err := fs.ReadDir(project, at)
	if err != nil {
		return folder{}, err
	}
	listed := folder{path: at}
	for _, entry := range entries {
		if len(listed.files) >= mostEntries {
			break
		}
		name := entry.Name()
		if !entry.IsDir() {
			listed.files = append(listed.files, name)
			continue
		}
		listed.files = append(listed.files, name+"/")
		if patterns, known := looked[name]; known {
			listed.files = append(listed.files, inside(project, path.Join(at, name), name, patterns)...)
		}
	}
	return listed, nil
}

// looked are folders in which a manifest's parts lie, and which those are.
var looked = map[string][]string{
	"requirements": {"*.txt", "*.in"},
	"project":      {"build.properties"},
	"bin":          {"rails", "console"},
	"tests":        {"conftest.py", "requirements.txt"},
	"test":         {"conftest.py", "requirements.txt"},
}

func inside(project fs.FS, at, name string, patterns []string) []string {
	entries, _ := fs.ReadDir(project, at) // what cannot be listed tells nothing
	var found []string
	for _, entry := range entries {
		if !entry.IsDir() && anyMatches(patterns, []string{entry.Name()}) {
			found = append(found, name+"/"+entry.Name())
		}
	}
	return found
}

// foldersBelow lists folders by depth, then by name.
func foldersBelow(project fs.FS, top folder) []folder {
	var all []folder
	level := []folder{top}
	for range deepest {
		var next []folder
		for _, parent := range level {
			for _, name := range parent.files {
				name, isFolder := strings.CutSuffix(name, "/")
				if !isFolder || strings.HasPrefix(name, ".") || slices.Contains(skipped, name) || slices.Contains(carried, name) {
					continue
				}
				if len(all)+len(next) >= mostFolders {
					return append(all, next...)
				}
				if below, err := list(project, path.Join(parent.path, name)); err == nil {
					next = append(next, below)
				}
			}
		}
		all = append(all, next...)
		level = next
	}
	return all
}

// search looks at the top of the project. If no manifest there says that
// something is needed, it looks at the folders below. Without any manifest the
// source files tell.
func (t *Table) search(project fs.FS, top folder, below []folder, wanted string) ([]Candidate, []string) {
	found, warnings := t.candidates(project, top)
	if slices.ContainsFunc(found, Candidate.solid) {
		return found, warnings
	}
	deeper, deeperWarnings := t.below(project, below)
	sources := t.sources(append(slices.Clone(below), top))
	built := slices.ContainsFunc(found, Candidate.built)
	switch {
	case len(deeper) > 0 && built && !deeper[0].in.isAside():
		return deeper, deeperWarnings // the top has only tools
	case len(deeper) > 0 && !built && (wanted != "" || !t.topLeads(top, found, deeper, sources)):
		return deeper, deeperWarnings
	case !built:
		return t.asDeno(project, append(slices.Clone(below), top), t.withSources(found, sources, top)), warnings
	}
	return found, warnings
}

// below returns the candidates of the folders that are nearest to the top, one
// for each environment: that of which most is needed. Folders that only go with
// a project count when there is no other.
func (t *Table) below(project fs.FS, folders []folder) ([]Candidate, []string) {
	var (
		best     []Candidate
		warnings []string
		nearest  folder
	)
	folders = slices.Clone(folders)
	slices.SortStableFunc(folders, func(a, b folder) int {
		return cmp.Or(yes(a.isAside())-yes(b.isAside()), a.depth()-b.depth())
	})
	for _, in := range folders {
		if len(best) > 0 && (in.depth() != nearest.depth() || in.isAside() != nearest.isAside()) {
			break
		}
		found, told := t.candidates(project, in)
		found = slices.DeleteFunc(found, func(c Candidate) bool { return !c.built() })
		if len(found) == 0 {
			continue
		}
		nearest, warnings = in, append(warnings, told...)
		for _, candidate := range found {
			at := slices.IndexFunc(best, func(c Candidate) bool { return c.Environment == candidate.Environment })
			switch {
			case at < 0:
				best = append(best, candidate)
			case best[at].Dependencies < candidate.Dependencies:
				best[at] = candidate
			}
		}
	}
	return best, warnings
}

// sources counts the source files of each environment in all folders.
func (t *Table) sources(folders []folder) map[string]int {
	byEnding := map[string]int{}
	for _, in := range folders {
		for _, file := range in.files {
			if !strings.Contains(file, "/") {
				byEnding[path.Ext(file)]++
			}
		}
	}
	counts := map[string]int{}
	for _, entry := range t.entries {
		for _, ending := range entry.Sources {
			counts[entry.Name] += byEnding[ending]
		}
	}
	return counts
}

// topLeads reports whether the source files at the top, or a Makefile there,
// tell more than the manifests of the folders below: a program in one language
// has often a small part in another, or carries a library with it.
func (t *Table) topLeads(top folder, found, deeper []Candidate, sources map[string]int) bool {
	chosen, _ := t.choose(deeper, "", top)
	for _, candidate := range found {
		switch {
		case candidate.sources == 0:
		case candidate.Environment == chosen.Environment:
			if chosen.in.depth() > 1 {
				return true
			}
		case sources[candidate.Environment] >= sources[chosen.Environment]:
			return true
		}
	}
	return anyMatches(makefiles, top.files) && sources["c"] > 0 && leads("c", sources)
}

var makefiles = []string{"Makefile", "makefile", "GNUmakefile"}

// leads reports whether no environment has more source files.
func leads(name string, sources map[string]int) bool {
	for _, count := range sources {
		if count > sources[name] {
			return false
		}
	}
	return true
}

// withSources adds the environments of which there are source files anywhere.
func (t *Table) withSources(found []Candidate, sources map[string]int, top folder) []Candidate {
	for order, entry := range t.entries {
		count := sources[entry.Name]
		if count == 0 {
			continue
		}
		if at := slices.IndexFunc(found, func(c Candidate) bool { return c.Environment == entry.Name }); at >= 0 {
			found[at].sources = count
			continue
		}
		found = append(found, Candidate{Environment: entry.Name, sources: count, order: order, in: top})
	}
	slices.SortStableFunc(found, func(a, b Candidate) int { return a.order - b.order })
	return found
}
