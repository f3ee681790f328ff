package environment

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Candidate is an environment that the folder might need, and why.
type Candidate struct {
	Environment  string `json:"environment"`
	Reason       string `json:"reason"`
	Dependencies int    `json:"dependencies"`

	in      folder
	files   []string
	parsed  manifest
	builds  int // how many files that build it there are
	markers int
	sources int
	leading int // how many files say that the project as a whole is this
	order   int
	written bool // there are source files for it, where others have none
	unread  bool // a manifest could not be read, so nothing is known of what it needs
}

// built reports whether there is a file that builds the environment.
func (c Candidate) built() bool { return c.builds > 0 }

// solid reports whether what builds it also says that something is needed or
// made. A manifest that only configures tools is not.
func (c Candidate) solid() bool { return c.builds > 0 && !c.parsed.toolsOnly() }

// candidates are the environments of which the folder has a marker or a source
// file.
func (t *Table) candidates(project fs.FS, in folder) ([]Candidate, []string) {
	var (
		found    []Candidate
		warnings []string
	)
	for order, entry := range t.entries {
		candidate, before := entry.candidate(in, order), len(warnings)
		if candidate.markers == 0 && candidate.sources == 0 {
			continue
		}
		warnings = append(warnings, candidate.parsed.read(project, in, candidate.files)...)
		candidate.unread = len(warnings) > before
		if entry.Name == "python" {
			candidate.parsed.lookForPytest(in)
		}
		candidate.Dependencies = len(candidate.parsed.dependencies)
		found = append(found, candidate)
	}
	return found, warnings
}

// candidate counts what speaks for the environment among the files.
func (e Environment) candidate(in folder, order int) Candidate {
	candidate := Candidate{Environment: e.Name, order: order, in: in}
	for _, file := range in.files {
		if anyMatches(e.Markers, []string{file}) {
			candidate.files = append(candidate.files, file)
			candidate.markers++
		}
		if anyMatches(e.Build, []string{file}) {
			candidate.builds++
		}
		if anyMatches(e.Leading, []string{file}) {
			candidate.leading++
		}
		if !strings.Contains(file, "/") && slices.Contains(e.Sources, path.Ext(file)) {
			candidate.sources++
		}
	}
	return candidate
}

// read takes in the manifests and returns what is wrong with them.
func (m *manifest) read(project fs.FS, in folder, files []string) []string {
	var warnings []string
	for _, file := range files {
		parse, known := parserFor(file)
		if !known {
			continue
		}
		content, err := read(project, path.Join(in.path, file), manifestCap)
		if err == nil {
			err = parse(content, m)
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s cannot be read as a manifest: %v", path.Join(in.path, file), err))
		}
	}
	return warnings
}

// has reports whether there is a file of that name, or, after an @, whether the
// manifests told that fact. A sign after a ! must not be there.
func (c Candidate) has(sign string) bool {
	if unwanted, negated := strings.CutPrefix(sign, "!"); negated {
		return !c.has(unwanted)
	}
	if fact, isFact := strings.CutPrefix(sign, "@"); isFact {
		_, told := c.parsed.parts[fact]
		return told
	}
	return anyMatches([]string{sign}, c.in.files)
}

// version is the version of the language that the manifests ask for, or else the
// file in which version managers keep it.
func (c Candidate) version(project fs.FS, entry Environment) string {
	if c.parsed.version != "" || !slices.Contains(c.in.files, ".tool-versions") {
		return c.parsed.version
	}
	content, err := read(project, path.Join(c.in.path, ".tool-versions"), contentCap)
	if err != nil {
		return "" // it is not the manifest: nobody misses it
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && (fields[0] == entry.Name || slices.Contains(entry.Languages, fields[0])) {
			return fields[1]
		}
	}
	return ""
}

// choose applies the specification's order: what tells of conda; the language
// that the task is about; the most dependencies; files that build. After that
// come other markers, source files, and the order of the table.
func (t *Table) choose(candidates []Candidate, language string, top folder) (Candidate, string) {
	if len(candidates) == 0 {
		entry := t.Default()
		return Candidate{Environment: entry.Name, in: top}, "no manifest and no source file of a known environment exists, so the default is taken"
	}
	ranked := slices.Clone(candidates)
	wanted := t.forLanguage(language)
	slices.SortStableFunc(ranked, func(a, b Candidate) int {
		return cmp.Or(
			yes(b.Environment == wanted)-yes(a.Environment == wanted),
			yes(b.conda())-yes(a.conda()),
			yes(b.solid())-yes(a.solid()),
			yes(b.built())-yes(a.built()),
			yes(b.written)-yes(a.written),
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
	return best, best.why()
}

// conda reports whether the project asks for conda itself: then it needs it
// whatever else there is, for the same packages come from there.
func (c Candidate) conda() bool { return c.Environment == "miniforge" && c.solid() }

// helper reports whether a package.json is there only for a project in another
// language: nothing of it is needed when the program runs, or it makes the pages of
// a program that is built from the other manifest.
func (c Candidate) helper(all []Candidate) bool {
	if c.Environment != "node" || c.parsed.product {
		return false
	}
	return slices.ContainsFunc(all, func(other Candidate) bool {
		if other.Environment == "node" || !other.solid() || other.in.path != c.in.path {
			return false
		}
		_, starts := c.parsed.parts["start"]
		return (c.parsed.runtime == 0 && !starts && !c.unread) || other.leading > 0 || (c.parsed.private && other.parsed.product)
	})
}

func (c Candidate) why() string {
	files := make([]string, len(c.files))
	for i, file := range c.files {
		files[i] = path.Join(c.in.path, file)
	}
	switch {
	case len(files) > 0 && c.Dependencies > 0:
		return fmt.Sprintf("%s exists, with %d dependencies", strings.Join(files, ", "), c.Dependencies)
	case len(files) > 0:
		return strings.Join(files, ", ") + " exists"
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
