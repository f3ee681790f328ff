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
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == ' ' || c == '\t':
			indent++
			i++
			continue
		case c == '>' || c == '-' || c == '+' || c == '*':
			i++
		case c >= '0' && c <= '9':
			for i < len(line) && line[i] >= '0' && line[i] <= '9' {
				i++
			}
			if i == len(line) || line[i] != '.' && line[i] != ')' {
				return count
			}
			i++
		default:
			return count
		}
		if count++; indent > maxIndent {
			return maxNesting + 1
		}
	}
	return count
}
