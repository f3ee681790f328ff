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
	candidates, warnings := t.search(project, top, t.forLanguage(language))
	result := Detection{DetectedFiles: map[string]string{}, Warnings: append([]string{}, warnings...),
		Dependencies: []string{}, Candidates: []Candidate{}, Verification: []Check{}}

	chosen, reason := t.choose(candidates, language, top)
	entry, _ := t.Find(chosen.Environment)
	manager := entry.manager(chosen.in.files)
	if named := chosen.parsed.manager; named != "" && named != manager.Name {
		manager = entry.managerNamed(named, manager)
		manager.Name = named
	}
	result.EnvironmentType, result.Reason, result.Directory = entry.Name, reason, chosen.in.path
	result.PackageManager = manager.Name
	result.TestCommand = manager.test(chosen)
	if len(candidates) > 0 {
		result.BuildCommand = entry.compile(chosen)
	}
	result.SetupCommands = inFolder(chosen.in.path, manager.commands(chosen))
	result.Verification = entry.Verify
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
