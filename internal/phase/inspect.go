package phase

import (
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/phase/tool"
)

// placeholders are what stands in for work that was not done. They count in added
// lines of program text only: a document may well speak of such things.
var placeholders = lazyregexp.New(`\b(?:TODO|FIXME|XXX)\b|(?i:not (?:yet )?implemented\b|NotImplementedError|unimplemented!|\btodo!\(|your code here|rest of (?:the )?(?:code|file|function|implementation)\b|(?:implementation|code) (?:goes|comes) here|existing code (?:remains )?(?:here|unchanged)|placeholder (?:implementation|for now))`)

var documents = []string{".md", ".rst", ".txt", ".adoc", ".html"}

const mostPlaceholders = 20

// inspect looks at the added lines of a diff: which files have marks of a merge
// conflict in them, and which lines are placeholders.
func inspect(diff string) (conflicts, left []string) {
	for _, file := range tool.SplitDiff(diff) {
		document := slices.ContainsFunc(documents, func(ending string) bool { return strings.HasSuffix(strings.ToLower(file.Name), ending) })
		for _, line := range file.Added {
			if isMark(line) {
				if !slices.Contains(conflicts, file.Name) {
					conflicts = append(conflicts, file.Name)
				}
				continue
			}
			// A line that was only moved is not new.
			moved := slices.ContainsFunc(file.Removed, func(old string) bool { return strings.TrimSpace(old) == strings.TrimSpace(line) })
			if !document && !moved && len(left) < mostPlaceholders && placeholders.MatchString(line) {
				left = append(left, plainName(file.Name)+": "+tool.Shorten(strings.TrimSpace(tool.Printable(line)), 200))
			}
		}
	}
	return conflicts, left
}

// isMark reports whether a line is the mark of a conflict.
func isMark(line string) bool {
	return strings.HasPrefix(line, "<<<<<<< ") || strings.HasPrefix(line, ">>>>>>> ")
}
