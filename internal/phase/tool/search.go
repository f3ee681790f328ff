package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/workdir"
)

//go:embed search.md
var searchDescription string

const (
	searchMatches = 200
	searchWidth   = 300
	searchedFile  = 4 << 20 // larger files are left out
)

type searchInput struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path,omitempty" jsonschema:"default the root"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files with such names, as *.go"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Context    int    `json:"context,omitempty" jsonschema:"lines around each match, at most 10"`
}

// Search is the tool that searches files.
func Search(w Workspace) Tool {
	return Define("search", searchDescription, true, func(ctx context.Context, _ llm.Call, in searchInput) (Output, error) {
		start, err := w.resolve(in.Path)
		if err != nil {
			return Output{}, err
		}
		s, err := newSearcher(w, in)
		if err != nil {
			return Output{}, err
		}
		info, err := fs.Stat(w.Files, start)
		if err != nil {
			return Output{}, Mistake("there is no %s%s", start, w.similar(start))
		}
		if info.IsDir() {
			err = walk(ctx, w.Files, start, s.visit)
		} else {
			err = s.file(start)
		}
		if err != nil && !errors.Is(err, errEnough) {
			return Output{}, err
		}
		return Output{Text: s.report(), Origin: "files"}, nil
	})
}

type searcher struct {
	files   fs.FS
	pattern *regexp.Regexp
	glob    string
	around  int
	found   strings.Builder
	matches int
	skipped []string
}

func newSearcher(w Workspace, in searchInput) (*searcher, error) {
	if in.Pattern == "" {
		return nil, Mistake("the pattern is empty")
	}
	expression := in.Pattern
	if in.IgnoreCase {
		expression = "(?i)" + expression
	}
	pattern, err := regexp.Compile(expression)
	if err != nil {
		return nil, Mistake("the pattern is not a regular expression: %v; to search for a text as it is, use %q", err, regexp.QuoteMeta(in.Pattern))
	}
	if _, err := path.Match(in.Glob, ""); err != nil {
		return nil, Mistake("the glob %q is not valid", in.Glob)
	}
	return &searcher{files: w.Files, pattern: pattern, glob: in.Glob, around: min(max(in.Context, 0), 10)}, nil
}

func (s *searcher) visit(name string, entry fs.DirEntry) error {
	if entry.IsDir() || !entry.Type().IsRegular() || !s.wanted(name) {
		return nil
	}
	return s.file(name)
}

func (s *searcher) wanted(name string) bool {
	if s.glob == "" {
		return true
	}
	if matched, _ := path.Match(s.glob, path.Base(name)); matched { // checked before
		return true
	}
	matched, _ := path.Match(s.glob, name)
	return matched
}

func (s *searcher) file(name string) error {
	data, err := workdir.ReadFile(s.files, name, searchedFile)
	if err != nil {
		s.skipped = append(s.skipped, name)
		return nil //nolint:nilerr // the report says so
	}
	if isBinary(data) || !s.pattern.Match(data) && !strings.ContainsAny(s.pattern.String(), "^$") {
		return nil
	}
	lines := splitLines(string(data))
	shown := -1
	for i, line := range lines {
		if !s.pattern.MatchString(strings.TrimSuffix(line, "\r")) {
			continue
		}
		if s.matches == searchMatches {
			return errEnough
		}
		s.matches++
		for j := max(i-s.around, shown+1); j <= min(i+s.around, len(lines)-1); j++ {
			s.show(name, j, lines[j], j == i)
			shown = j
		}
	}
	return nil
}

func (s *searcher) show(name string, at int, line string, match bool) {
	mark := ":"
	if !match {
		mark = "-"
	}
	line = Printable(line)
	if len(line) > searchWidth {
		line = strings.ToValidUTF8(line[:searchWidth], "") + "…"
	}
	fmt.Fprintf(&s.found, "%s%s%d%s %s\n", Printable(name), mark, at+1, mark, line)
}

func (s *searcher) report() string {
	text := s.found.String()
	if s.matches == 0 {
		text = "(no match)\n"
	}
	if s.matches == searchMatches {
		text += fmt.Sprintf("[only the first %d matches are shown; narrow the search]\n", searchMatches)
	}
	if len(s.skipped) > 0 {
		text += fmt.Sprintf("[%d files were too large or could not be read, for example %s]\n", len(s.skipped), s.skipped[0])
	}
	return text
}
