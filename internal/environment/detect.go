package environment

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Detection is what a folder tells of the environment that it needs.
type Detection struct {
	DetectedFiles   map[string]string `json:"detected_files"` // name to content, which is capped
	EnvironmentType string            `json:"environment_type"`
	Dependencies    []string          `json:"dependencies"`
	SetupCommands   []string          `json:"setup_commands"` // in Directory

	Reason string `json:"reason"`
	// Guess says that nothing tells which environment is needed: the default is taken.
	Guess bool `json:"guess"`
	// Projects are all projects of the repository, the first of which is the one that
	// the other fields are about.
	Projects []Project `json:"projects"`

	Directory       string      `json:"directory"` // in which the manifests are; "." for the top
	PackageManager  string      `json:"package_manager"`
	LanguageVersion string      `json:"language_version"`
	TestCommand     string      `json:"test_command"`  // in Directory
	BuildCommand    string      `json:"build_command"` // in Directory; empty if nothing tells
	Verification    []Check     `json:"verification"`
	Candidates      []Candidate `json:"candidates"`
	Warnings        []string    `json:"warnings"`
}

const (
	// contentCap is how much of one file is kept, contentTotal of all together.
	contentCap   = 16 << 10
	contentTotal = 128 << 10
	// manifestCap is how much of a manifest is parsed.
	manifestCap = 4 << 20
)

// general are files that tell of set-up in any language.
var general = []string{"Dockerfile", "docker-compose.yml", "docker-compose.yaml", "compose.yaml", "Makefile"}

// Detect says what a project needs. Language is the one that the task is about,
// when that is known, and decides where several mix. A manifest that cannot be
// read is a warning; only a folder that cannot be listed is an error.
func (t *Table) Detect(project fs.FS, language string) (Detection, error) {
	top, err := list(project, ".")
	if err != nil {
		return Detection{}, task.Wrap(task.NotFound, err, "the project folder cannot be read")
	}
	below := foldersBelow(project, top)
	candidates, warnings := t.search(project, top, below, t.forLanguage(language))
	markWritten(project, t, candidates)
	result := Detection{DetectedFiles: map[string]string{}, Warnings: append([]string{}, warnings...),
		Dependencies: []string{}, Candidates: []Candidate{}, Verification: []Check{}}

	chosen, reason := t.choose(candidates, language, top)
	if result.Guess = len(candidates) == 0; result.Guess {
		reason += endingsOf(append(slices.Clone(below), top))
	}
	projects, more := t.projects(project, append([]folder{top}, below...), chosen)
	if len(below) >= mostFolders {
		more = append(more, fmt.Sprintf("projects were looked for in the first %d folders only", mostFolders))
	}
	for _, warning := range more {
		if !slices.Contains(result.Warnings, warning) {
			result.Warnings = append(result.Warnings, warning)
		}
	}
	result.Projects = projects
	result = result.about(projects[0], reason)
	entry, _ := t.Find(chosen.Environment)
	result.PackageManager = entry.managerOf(chosen).Name
	if result.Guess {
		result.BuildCommand, result.Projects[0].BuildCommand = "", ""
	}
	result.LanguageVersion = chosen.version(project, entry)
	if chosen.parsed.dependencies != nil {
		result.Dependencies = chosen.parsed.dependencies
	}
	for _, candidate := range candidates {
		candidate.Reason = candidate.why()
		result.Candidates = append(result.Candidates, candidate)
	}
	keepContents(project, append(candidates, Candidate{in: chosen.in}), &result)
	return result, nil
}

// about is the detection with the fields of its main project.
func (d Detection) about(main Project, reason string) Detection {
	d.EnvironmentType, d.Reason, d.Directory = main.EnvironmentType, reason, main.Directory
	d.TestCommand, d.BuildCommand = main.TestCommand, main.BuildCommand
	d.SetupCommands, d.Verification = main.SetupCommands, main.Verification
	return d
}

var plainEnding = lazyregexp.New(`^\.[A-Za-z0-9_+-]{1,16}$`)

// endingsOf names the endings that files most often have, for people.
func endingsOf(folders []folder) string {
	counts := map[string]int{}
	for _, in := range folders {
		for _, file := range in.files {
			if ending := path.Ext(file); plainEnding.MatchString(ending) && ending != file && !strings.Contains(file, "/") {
				counts[ending]++
			}
		}
	}
	endings := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	if len(endings) == 0 {
		return ""
	}
	const shown = 5
	return "; the files end in " + strings.Join(endings[:min(len(endings), shown)], ", ")
}

func (e Environment) managerNamed(name string, otherwise Manager) Manager {
	for _, manager := range e.Managers {
		if manager.Name == name {
			return manager
		}
	}
	return otherwise
}

// plainWord is a text that a shell takes as one word as it is.
var plainWord = lazyregexp.New(`^[A-Za-z0-9_./:@+][A-Za-z0-9_./:@+-]*$`)

// quote makes one word of a text for a shell.
func quote(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// keepContents puts the manifests into the result, capped.
func keepContents(project fs.FS, candidates []Candidate, result *Detection) {
	names := []string{}
	for _, candidate := range candidates {
		for _, file := range candidate.files {
			names = append(names, path.Join(candidate.in.path, file))
			if strings.HasSuffix(file, "/") {
				names = names[:len(names)-1]
			}
		}
		for _, file := range candidate.in.files {
			if slices.Contains(general, file) {
				names = append(names, path.Join(candidate.in.path, file))
			}
		}
	}
	total := 0
	for _, at := range names {
		if _, known := result.DetectedFiles[at]; known {
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
