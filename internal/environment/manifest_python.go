package environment

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/pelletier/go-toml/v2"
)

var (
	requirementName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*`)
	setupRequires   = regexp.MustCompile(`(?s)install_requires\s*=\s*\[(.*?)\]`)
	pythonRequires  = regexp.MustCompile(`python_requires\s*=\s*['"]?([^'"\n,)]+(?:,[^'"\n)]+)?)`)
	quoted          = regexp.MustCompile(`['"]([^'"]+)['"]`)
)

func parseRequirements(content []byte, into *manifest) error {
	scanner := bufio.NewScanner(bytes.NewReader(content))
	scanner.Buffer(nil, manifestCap+1)
	for scanner.Scan() {
		line, _, _ := strings.Cut(scanner.Text(), "#")
		line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
		if line == "" || strings.HasPrefix(line, "-") {
			continue
		}
		if name := requirementName.FindString(line); name != "" {
			into.add(true, name)
		}
	}
	return scanner.Err()
}

func parsePyproject(content []byte, into *manifest) error {
	var file struct {
		Project struct {
			Dependencies         []string            `toml:"dependencies"`
			OptionalDependencies map[string][]string `toml:"optional-dependencies"`
			RequiresPython       string              `toml:"requires-python"`
		} `toml:"project"`
		DependencyGroups map[string][]any `toml:"dependency-groups"`
		Tool             struct {
			Poetry *struct {
				Dependencies    map[string]any `toml:"dependencies"`
				DevDependencies map[string]any `toml:"dev-dependencies"`
				Group           map[string]struct {
					Dependencies map[string]any `toml:"dependencies"`
				} `toml:"group"`
			} `toml:"poetry"`
			Pytest map[string]any `toml:"pytest"`
			Uv     map[string]any `toml:"uv"`
			Pdm    map[string]any `toml:"pdm"`
		} `toml:"tool"`
	}
	if err := toml.Unmarshal(content, &file); err != nil {
		return err
	}
	for _, requirement := range file.Project.Dependencies {
		into.add(true, requirementName.FindString(requirement))
	}
	for _, group := range sortedKeys(file.Project.OptionalDependencies) {
		for _, requirement := range file.Project.OptionalDependencies[group] {
			into.add(false, requirementName.FindString(requirement))
		}
	}
	for _, group := range sortedKeys(file.DependencyGroups) {
		for _, requirement := range file.DependencyGroups[group] {
			into.add(false, requirementName.FindString(fmt.Sprint(requirement)))
		}
	}
	into.setVersion(file.Project.RequiresPython)
	if poetry := file.Tool.Poetry; poetry != nil {
		addPoetry(into, poetry.Dependencies, true)
		addPoetry(into, poetry.DevDependencies, false)
		for _, group := range sortedKeys(poetry.Group) {
			addPoetry(into, poetry.Group[group].Dependencies, false)
		}
		if poetry.Dependencies != nil {
			into.manager = "poetry"
		}
	}
	if file.Tool.Pytest != nil {
		into.add(false, "pytest")
	}
	return nil
}

func addPoetry(into *manifest, dependencies map[string]any, needed bool) {
	for _, name := range sortedKeys(dependencies) {
		if name == "python" {
			if version, isText := dependencies[name].(string); isText {
				into.setVersion(version)
			}
			continue
		}
		into.add(needed, name)
	}
}

func parsePipfile(content []byte, into *manifest) error {
	var file struct {
		Packages    map[string]any    `toml:"packages"`
		DevPackages map[string]any    `toml:"dev-packages"`
		Requires    map[string]string `toml:"requires"`
	}
	if err := toml.Unmarshal(content, &file); err != nil {
		return err
	}
	into.add(true, sortedKeys(file.Packages)...)
	into.add(false, sortedKeys(file.DevPackages)...)
	into.setVersion(file.Requires["python_version"])
	return nil
}

// parseSetupConfig takes the indented lines under install_requires.
func parseSetupConfig(content []byte, into *manifest) error {
	inRequires := false
	for line := range strings.SplitSeq(string(content), "\n") {
		trimmed := strings.TrimSpace(line)
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		switch {
		case strings.HasPrefix(trimmed, "install_requires"):
			inRequires = true
			_, inline, _ := strings.Cut(trimmed, "=")
			into.add(true, requirementName.FindString(strings.TrimSpace(inline)))
		case inRequires && indented && trimmed != "":
			into.add(true, requirementName.FindString(trimmed))
		default:
			inRequires = false
		}
	}
	if found := pythonRequires.FindSubmatch(content); found != nil {
		into.setVersion(string(found[1]))
	}
	return nil
}

// parseSetupScript looks for the list that is nearly always written out in a
// setup.py. The script itself is never run here.
func parseSetupScript(content []byte, into *manifest) error {
	if found := setupRequires.FindSubmatch(content); found != nil {
		for _, item := range quoted.FindAllSubmatch(found[1], -1) {
			into.add(true, requirementName.FindString(string(item[1])))
		}
	}
	if found := pythonRequires.FindSubmatch(content); found != nil {
		into.setVersion(string(found[1]))
	}
	return nil
}

func parseConda(content []byte, into *manifest) error {
	var file struct {
		Dependencies []any `yaml:"dependencies"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return err
	}
	for _, dependency := range file.Dependencies {
		switch entry := dependency.(type) {
		case string:
			name := requirementName.FindString(entry)
			if name == "python" {
				into.setVersion(strings.TrimLeft(strings.TrimPrefix(entry, name), "= "))
			}
			into.add(true, name)
		case map[string]any:
			for _, kind := range sortedKeys(entry) {
				list, _ := entry[kind].([]any)
				for _, item := range list {
					into.add(true, requirementName.FindString(fmt.Sprint(item)))
				}
			}
		}
	}
	return nil
}

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
