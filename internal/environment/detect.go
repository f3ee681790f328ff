package environment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// Detection is what a folder tells of the environment that it needs.
type Detection struct {
	DetectedFiles   map[string]string `json:"detected_files"` // name to content, which is capped
	EnvironmentType string            `json:"environment_type"`
	Dependencies    []string          `json:"dependencies"`
	SetupCommands   []string          `json:"setup_commands"`

	Reason          string      `json:"reason"`
	Directory       string      `json:"directory"` // in which the manifests are; "." for the top
	PackageManager  string      `json:"package_manager"`
	LanguageVersion string      `json:"language_version"`
	TestCommand     string      `json:"test_command"`
	Verification    []Check     `json:"verification"`
	Candidates      []Candidate `json:"candidates"`
	Warnings        []string    `json:"warnings"`
}

// Candidate is an environment that the folder might need, and why.
type Candidate struct {
	Environment  string `json:"environment"`
	Reason       string `json:"reason"`
	Dependencies int    `json:"dependencies"`

	files   []string
	parsed  manifest
	builds  int // how many files that build it there are
	markers int
	sources int
	order   int
	unread  bool // a manifest could not be read, so nothing is known of what it needs
}

const (
	// contentCap is how much of one file is kept, contentTotal of all together.
	contentCap   = 16 << 10
	contentTotal = 128 << 10
	// manifestCap is how much of a manifest is parsed.
	manifestCap = 4 << 20
	// deepest and mostFolders bound the search when the top has no manifest.
	deepest     = 3
	mostFolders = 400
	mostEntries = 5000
)

// general are files that tell of set-up in any language.
var general = []string{"Dockerfile", "docker-compose.yml", "docker-compose.yaml", "compose.yaml", "Makefile"}

// skipped are folders that hold other people's code or what a build made.
var skipped = []string{"node_modules", "vendor", ".git", ".hg", ".svn", "venv", ".venv", "target", "dist",
	"__pycache__", ".tox", ".idea", ".vscode", ".github", "third_party", "bower_components", ".cache"}

// Detect says what a project needs. Language is the one that the task is about,
// when that is known, and decides where several mix. A manifest that cannot be
// read is a warning; only a folder that cannot be listed is an error.
func (t *Table) Detect(project fs.FS, language string) (Detection, error) {
	folder, candidates, warnings, err := t.search(project)
	if err != nil {
		return Detection{}, err
	}
	result := Detection{Directory: folder.path, DetectedFiles: map[string]string{}, Warnings: warnings,
		Dependencies: []string{}, Candidates: []Candidate{}, Verification: []Check{}}
	if result.Warnings == nil {
		result.Warnings = []string{}
	}
	chosen, reason := t.choose(candidates, language)
	entry, _ := t.Find(chosen.Environment)
	manager := entry.manager(folder.files)

	result.EnvironmentType, result.Reason = entry.Name, reason
	result.PackageManager = chosen.parsed.managerOr(manager.Name)
	if result.PackageManager != manager.Name {
		manager = entry.managerNamed(result.PackageManager, manager)
	}
	result.SetupCommands = inFolder(folder.path, manager.commands(folder.files))
	result.TestCommand = testCommand(manager, chosen, folder)
	result.Verification = entry.Verify
	result.LanguageVersion = chosen.parsed.version
	if chosen.parsed.dependencies != nil {
		result.Dependencies = chosen.parsed.dependencies
	}
	for _, candidate := range candidates {
		candidate.Reason = candidate.why()
		result.Candidates = append(result.Candidates, candidate)
	}
	keepContents(project, folder, candidates, &result)
	return result, nil
}

// folder is one folder of a project: its path and what is directly in it (and
// one level below), with a slash after the name of a folder.
type folder struct {
	path  string
	files []string
}

// search looks at the top of the project, then, if there is no manifest, at the
// folders below, and takes the first that has one.
func (t *Table) search(project fs.FS) (folder, []Candidate, []string, error) {
	top, err := list(project, ".")
	if err != nil {
		return folder{}, nil, nil, task.Wrap(task.NotFound, err, "the project folder cannot be read")
	}
	found, warnings := t.candidates(project, top)
	if slices.ContainsFunc(found, func(c Candidate) bool { return c.builds > 0 }) {
		return top, found, warnings, nil
	}
	for _, below := range foldersBelow(project, top) {
		deeper, deeperWarnings := t.candidates(project, below)
		if slices.ContainsFunc(deeper, func(c Candidate) bool { return c.builds > 0 }) {
			return below, deeper, deeperWarnings, nil
		}
	}
	return top, found, warnings, nil
}

// foldersBelow lists folders by depth, then by name.
func foldersBelow(project fs.FS, top folder) []folder {
	var all []folder
	level := []folder{top}
	for depth := 0; depth < deepest && len(all) < mostFolders; depth++ {
		var next []folder
		for _, parent := range level {
			for _, name := range parent.files {
				name, isFolder := strings.CutSuffix(name, "/")
				if !isFolder || strings.Contains(name, "/") || slices.Contains(skipped, name) {
					continue
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
		if name == "requirements" || name == "project" {
			below, _ := fs.ReadDir(project, path.Join(at, name))
			for _, inner := range below {
				if !inner.IsDir() {
					listed.files = append(listed.files, name+"/"+inner.Name())
				}
			}
		}
	}
	return listed, nil
}

// candidates are the environments of which the folder has a marker or a source
// file.
func (t *Table) candidates(project fs.FS, in folder) ([]Candidate, []string) {
	var (
		found    []Candidate
		warnings []string
	)
	for order, entry := range t.entries {
		candidate := entry.candidate(in.files, order)
		if candidate.markers == 0 && candidate.sources == 0 {
			continue
		}
		warnings = append(warnings, candidate.parse(project, in.path)...)
		found = append(found, candidate)
	}
	return found, warnings
}

// candidate counts what speaks for the environment among the files.
func (e Environment) candidate(files []string, order int) Candidate {
	candidate := Candidate{Environment: e.Name, order: order}
	for _, file := range files {
		if anyMatches(e.Markers, []string{file}) {
			candidate.files = append(candidate.files, file)
			candidate.markers++
		}
		if anyMatches(e.Build, []string{file}) {
			candidate.builds++
		}
		if slices.Contains(e.Sources, path.Ext(file)) {
			candidate.sources++
		}
	}
	return candidate
}

// parse reads the candidate's manifests and returns what is wrong with them.
func (c *Candidate) parse(project fs.FS, at string) []string {
	var warnings []string
	for _, file := range c.files {
		parse, known := parserFor(file)
		if !known {
			continue
		}
		content, err := read(project, path.Join(at, file), manifestCap)
		if err == nil {
			err = parse(content, &c.parsed)
		}
		if err != nil {
			c.unread = true
			warnings = append(warnings, fmt.Sprintf("%s cannot be read as a manifest: %v", path.Join(at, file), err))
		}
	}
	c.Dependencies = len(c.parsed.dependencies)
	return warnings
}

// choose applies the specification's order: what tells of conda; the language
// that the task is about; the most dependencies; files that build. After that
// come other markers, source files, and the order of the table.
func (t *Table) choose(candidates []Candidate, language string) (Candidate, string) {
	if len(candidates) == 0 {
		entry := t.Default()
		return Candidate{Environment: entry.Name}, "nothing tells which environment is needed, so the default is taken"
	}
	ranked := slices.Clone(candidates)
	wanted := t.forLanguage(language)
	slices.SortStableFunc(ranked, func(a, b Candidate) int {
		return firstDifference(
			yes(b.Environment == wanted)-yes(a.Environment == wanted),
			yes(b.conda())-yes(a.conda()),
			yes(b.builds > 0)-yes(a.builds > 0),
			yes(a.helper(ranked))-yes(b.helper(ranked)),
			b.Dependencies-a.Dependencies,
			b.builds-a.builds,
			b.sources-a.sources,
			b.markers-a.markers,
			a.order-b.order,
		)
	})
	best := ranked[0]
	if best.Environment == wanted {
		return best, "the task is about " + language + ", and " + best.why()
	}
	why := best.why()
	return best, why
}

// conda reports whether the project asks for conda itself: then it needs it
// whatever else there is, for the same packages come from there.
func (c *Candidate) conda() bool { return c.Environment == "miniforge" && c.builds > 0 }

// helper reports whether a package.json is there only for the tools of a project
// in another language: nothing of it is needed when the program runs.
func (c *Candidate) helper(all []Candidate) bool {
	if c.Environment != "node" || c.parsed.runtime > 0 || c.parsed.product || c.unread {
		return false
	}
	return slices.ContainsFunc(all, func(other Candidate) bool {
		return other.Environment != "node" && other.builds > 0
	})
}

func (c *Candidate) why() string {
	switch {
	case len(c.files) > 0 && c.Dependencies > 0:
		return fmt.Sprintf("%s exists, with %d dependencies", strings.Join(c.files, ", "), c.Dependencies)
	case len(c.files) > 0:
		return strings.Join(c.files, ", ") + " exists"
	case c.sources > 0:
		return fmt.Sprintf("%d source files exist", c.sources)
	default:
		return "nothing tells otherwise"
	}
}

func yes(condition bool) int {
	if condition {
		return 1
	}
	return 0
}

func firstDifference(differences ...int) int {
	for _, difference := range differences {
		if difference != 0 {
			return difference
		}
	}
	return 0
}

func (e Environment) managerNamed(name string, otherwise Manager) Manager {
	for _, manager := range e.Managers {
		if manager.Name == name {
			return manager
		}
	}
	return otherwise
}

// inFolder makes the commands run where the manifests are.
func inFolder(at string, commands []string) []string {
	if at == "." || len(commands) == 0 {
		return commands
	}
	return append([]string{"cd -- " + quote(at)}, commands...)
}

// quote makes one word of a text for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func testCommand(manager Manager, chosen Candidate, in folder) string {
	if chosen.parsed.test != "" {
		return chosen.parsed.test
	}
	if manager.FallbackTest != "" && !chosen.parsed.mentions("pytest") &&
		!anyMatches([]string{"pytest.ini", "conftest.py", "tox.ini"}, in.files) {
		return manager.FallbackTest
	}
	if chosen.Environment == "node" && !chosen.parsed.hasTest {
		return ""
	}
	return manager.Test
}

// keepContents puts the manifests into the result, capped.
func keepContents(project fs.FS, in folder, candidates []Candidate, result *Detection) {
	names := []string{}
	for _, candidate := range candidates {
		names = append(names, candidate.files...)
	}
	for _, file := range in.files {
		if slices.Contains(general, file) {
			names = append(names, file)
		}
	}
	total := 0
	for _, name := range names {
		at := path.Join(in.path, name)
		if _, known := result.DetectedFiles[at]; known || strings.HasSuffix(name, "/") {
			continue
		}
		content, err := read(project, at, int64(min(contentCap, contentTotal-total)))
		if err != nil && !errors.Is(err, errTooLong) {
			result.Warnings = append(result.Warnings, fmt.Sprintf("%s cannot be read: %v", at, err))
			continue
		}
		total += len(content)
		result.DetectedFiles[at] = strings.ToValidUTF8(string(content), "\uFFFD")
	}
}

var errTooLong = errors.New("it is longer than what is looked at")

// read returns the content of a regular file, up to the limit. More than that is
// errTooLong, with what fits.
func read(project fs.FS, name string, limit int64) ([]byte, error) {
	file, err := project.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is not a regular file")
	}
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return content[:limit], errTooLong
	}
	return content, nil
}
