package environment

import (
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// workspace is what a manifest says of the projects that are managed together with it.
type workspace struct {
	declared []string // patterns of folders, from the manifest's own
	excluded []string
}

// declare adds patterns. One with a ! before it leaves out.
func (w *workspace) declare(patterns ...string) {
	for _, pattern := range patterns {
		if unwanted, negated := strings.CutPrefix(pattern, "!"); negated {
			w.leaveOut(unwanted)
			continue
		}
		w.declared = append(w.declared, cleanPattern(pattern))
	}
}

func (w *workspace) leaveOut(patterns ...string) {
	for _, pattern := range patterns {
		w.excluded = append(w.excluded, cleanPattern(pattern))
	}
}

// cleanPattern is a pattern without the forms that mean the same. A module of Maven may
// be named by its file.
func cleanPattern(pattern string) string {
	pattern = path.Clean(strings.ReplaceAll(strings.TrimSpace(pattern), `\`, "/"))
	if path.Base(pattern) == "pom.xml" {
		pattern = path.Dir(pattern)
	}
	return pattern
}

// has reports whether the folder, named from the manifest's own, is a member.
func (w *workspace) has(folder string) bool {
	matches := func(pattern string) bool {
		return matchesFolder(strings.Split(pattern, "/"), strings.Split(folder, "/"))
	}
	return slices.ContainsFunc(w.declared, matches) && !slices.ContainsFunc(w.excluded, func(pattern string) bool {
		return matches(pattern) || strings.HasPrefix(folder, pattern+"/")
	})
}

// named are the members that are named without a pattern.
func (w *workspace) named() []string {
	return slices.DeleteFunc(slices.Clone(w.declared), func(pattern string) bool {
		return strings.ContainsAny(pattern, "*?[{") || pattern == "." || strings.HasPrefix(pattern, "..") || strings.HasPrefix(pattern, "/")
	})
}

// matchesFolder reports whether a folder is what the pattern names; ** stands for any
// number of folders.
func matchesFolder(pattern, folder []string) bool {
	if len(pattern) == 0 {
		return len(folder) == 0
	}
	if pattern[0] == "**" {
		for skipped := range len(folder) + 1 {
			if matchesFolder(pattern[1:], folder[skipped:]) {
				return true
			}
		}
		return false
	}
	if len(folder) == 0 {
		return false
	}
	matched, err := path.Match(pattern[0], folder[0])
	return err == nil && matched && matchesFolder(pattern[1:], folder[1:])
}

// listOfWorkspaces reads both forms of package.json: a list, and a list in a table.
func listOfWorkspaces(value any) []string {
	if table, is := value.(map[string]any); is {
		value = table["packages"]
	}
	return texts(value)
}

// texts are the texts of a list.
func texts(value any) []string {
	var found []string
	list, _ := value.([]any)
	for _, entry := range list {
		if text, is := entry.(string); is {
			found = append(found, text)
		}
	}
	return found
}

func parsePnpmWorkspace(content []byte, into *manifest) error {
	var file struct {
		Packages []string `yaml:"packages"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return err
	}
	into.members.declare(file.Packages...)
	return nil
}

var (
	gradleInclude = lazyregexp.New(`(?m)^\s*include\s*\(?((?:\s*['"][^'"\n]+['"]\s*,?)+)`)
	gradleModule  = lazyregexp.New(`['"]([^'"\n]+)['"]`)
)

// parseGradleSettings takes the modules that are included by name. A settings script
// is a program; it is never run here.
func parseGradleSettings(content []byte, into *manifest) error {
	for _, statement := range gradleInclude.FindAllSubmatch(content, -1) {
		for _, module := range gradleModule.FindAllSubmatch(statement[1], -1) {
			into.members.declare(strings.ReplaceAll(strings.Trim(string(module[1]), ":"), ":", "/"))
		}
	}
	return nil
}
