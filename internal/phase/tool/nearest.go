package tool

import (
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// nearestWork limits how many lines are compared for a hint.
	nearestWork = 200_000
	// nearestLeast is the share of lines' likeness below which there is no hint.
	nearestLeast = 0.5
)

// nearest says what in the text is most like what was looked for.
func nearest(text, wanted string) string {
	lines, want := splitLines(text), splitLines(strings.Trim(wanted, "\n"))
	if len(want) == 0 || len(lines) == 0 || len(lines)*len(want) > nearestWork {
		return "Read the file and give the text exactly as it is."
	}
	best, at := 0.0, 0
	wantPairs := make([]map[string]int, len(want))
	for i, line := range want {
		wantPairs[i] = pairs(line)
	}
	linePairs := make([]map[string]int, len(lines))
	for i, line := range lines {
		linePairs[i] = pairs(line)
	}
	for start := 0; start+len(want) <= max(len(lines), len(want)) && start < len(lines); start++ {
		total := 0.0
		for i := range want {
			if start+i < len(lines) {
				total += alike(wantPairs[i], linePairs[start+i])
			}
		}
		if score := total / float64(len(want)); score > best {
			best, at = score, start
		}
	}
	if best < nearestLeast {
		return "Nothing in the file is like it. Read the file first."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The nearest is at line %d", at+1)
	if textfmt.OneLine(strings.Join(want, "\n")) == textfmt.OneLine(strings.Join(lines[at:min(at+len(want), len(lines))], "\n")) {
		b.WriteString(", and differs in white space only")
	}
	b.WriteString(":\n")
	for i := at; i < min(at+len(want), len(lines)); i++ {
		b.WriteString(numbered(i+1, lines[i]))
	}
	return b.String()
}

// pairs counts the pairs of neighbouring characters in a line, white space aside.
func pairs(line string) map[string]int {
	line = textfmt.OneLine(line)
	found := map[string]int{}
	for i := 0; i+1 < len(line); i++ {
		found[line[i:i+2]]++
	}
	if len(line) == 1 {
		found[line]++
	}
	return found
}

// alike is the share of pairs that two lines have in common.
func alike(a, b map[string]int) float64 {
	total, common := 0, 0
	for pair, count := range a {
		total += count
		common += min(count, b[pair])
	}
	for _, count := range b {
		total += count
	}
	if total == 0 {
		return 1 // both are empty
	}
	return 2 * float64(common) / float64(total)
}
