package environment

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

const (
	// deepestSource and mostSources bound the look at all files of a folder.
	deepestSource = 12
	mostSources   = 10_000
	// readSources is how many source files are read, and sourceCap how much of each.
	readSources = 30
	sourceCap   = 16 << 10
)

// configuration are files that are written in a language to configure its tools. They
// do not say that the project is written in it.
var configuration = []string{"*.config.*", ".*", "gulpfile.js", "Gruntfile.js", "setup.py", "noxfile.py", "conftest.py"}

// markWritten says which of several candidates in one folder there are source files of.
// A manifest without any is there for tools.
func markWritten(project fs.FS, t *Table, candidates []Candidate) {
	for i, candidate := range candidates {
		rivals := func(c Candidate) bool {
			return c.in.path == candidate.in.path && c.Environment != candidate.Environment && c.solid()
		}
		if !candidate.solid() || !slices.ContainsFunc(candidates, rivals) {
			continue
		}
		entry, _ := t.Find(candidate.Environment)
		if entry.Name == "deno" { // its files go by the names of those for Node.js
			entry, _ = t.Find("node")
		}
		left := mostSources
		candidates[i].written = hasSource(project, candidate.in.path, entry.Sources, deepestSource, &left) || left <= 0
	}
}

// hasSource reports whether a file with one of the endings lies in the folder or below.
// What is left counts down the entries that are looked at.
func hasSource(project fs.FS, at string, endings []string, depth int, left *int) bool {
	entries, err := fs.ReadDir(project, at)
	if err != nil {
		return false // what cannot be listed tells nothing
	}
	for _, entry := range entries {
		if *left--; *left <= 0 {
			return false
		}
		name := entry.Name()
		switch {
		case entry.IsDir():
			if depth > 0 && !strings.HasPrefix(name, ".") && !slices.Contains(skipped, name) && !slices.Contains(carried, name) &&
				hasSource(project, path.Join(at, name), endings, depth-1, left) {
				return true
			}
		case slices.Contains(endings, path.Ext(name)) && !anyMatches(configuration, []string{name}):
			return true
		}
	}
	return false
}

// denoImport is how a program for Deno names what it uses: by addresses, which Node.js
// does not know, or by Deno's own interface.
var denoImport = lazyregexp.New(`(?m)(?:\bfrom|^\s*import|\bimport\()\s*["'](?:https?:|jsr:|npm:)|\bDeno\.[a-z]`)

// asDeno makes of what was taken for Node.js, by its source files alone, what the
// source files are written for.
func (t *Table) asDeno(project fs.FS, folders []folder, found []Candidate) []Candidate {
	at := slices.IndexFunc(found, func(c Candidate) bool { return c.Environment == "node" && c.markers == 0 })
	order := slices.IndexFunc(t.entries, func(e Environment) bool { return e.Name == "deno" })
	if at < 0 || order < 0 {
		return found
	}
	node, _ := t.Find("node")
	looked := 0
	for _, in := range folders {
		for _, file := range in.files {
			if strings.Contains(file, "/") || !slices.Contains(node.Sources, path.Ext(file)) || looked >= readSources {
				continue
			}
			looked++
			content, _ := readStart(project, path.Join(in.path, file)) // what cannot be read tells nothing
			if denoImport.Match(content) {
				found[at].Environment, found[at].order = "deno", order
				return found
			}
		}
	}
	return found
}

// readStart is the beginning of a file.
func readStart(project fs.FS, name string) ([]byte, error) {
	content, err := read(project, name, sourceCap)
	if len(content) > 0 {
		return content, nil
	}
	return content, err
}
