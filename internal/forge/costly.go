package forge

import "strings"

// What a text may have so that its blocks can be read as Markdown in little time.
const (
	maxLines   = 5000 // each may be a block
	maxNesting = 24   // quotes and lists in each other, on one line
	maxIndent  = 200  // columns, of lists in each other
	maxDefined = 200  // definitions of the target of links
)

// Costly says whether the time that it takes to read the blocks of a text as Markdown
// is out of proportion: it grows with the square of what is counted here, and more.
func Costly(source string) bool {
	lines := 0
	for line := range strings.SplitSeq(source, "\n") {
		if lines++; lines > maxLines || nesting(line) > maxNesting {
			return true
		}
	}
	return strings.Count(source, "]:") > maxDefined
}

// nesting is how many quotes and lists a line may begin, one in the other. A line
// that is indented far counts as nested too deep if it may begin one.
func nesting(line string) int {
	count, indent := 0, 0
	for line != "" {
		if line[0] == ' ' || line[0] == '\t' {
			line = line[1:]
			indent++
			continue
		}
		size := markerLength(line)
		if size == 0 {
			return count
		}
		if count++; indent > maxIndent {
			return maxNesting + 1
		}
		line = line[size:]
	}
	return count
}

// markerLength returns the length of the marker that begins a quote or an entry of a
// list, 0 if there is none.
func markerLength(line string) int {
	if strings.IndexByte(">-+*", line[0]) >= 0 {
		return 1
	}
	rest := strings.TrimLeft(line, "0123456789")
	if len(rest) < len(line) && rest != "" && (rest[0] == '.' || rest[0] == ')') {
		return len(line) - len(rest) + 1
	}
	return 0
}
