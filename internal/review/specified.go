package review

import (
	"slices"
	"sort"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/review/judge"
)

// window is how many sections before and after one that is named are given too.
const window = 5

// span is a range of section numbers, both ends included.
type span struct{ from, to int }

// spansOf returns the ranges around the numbers, clamped to the sections that exist
// and merged where they touch. A number just outside has a range too; one so far
// away that no section is in its range has none.
func spansOf(sections []judge.Section, numbers []int) []span {
	if len(sections) == 0 {
		return nil
	}
	first, last := sections[0].Number, sections[len(sections)-1].Number
	named := slices.Clone(numbers)
	slices.Sort(named)
	var spans []span
	for _, number := range named {
		around := span{max(first, number-window), min(last, number+window)}
		if around.from > around.to {
			continue
		}
		if end := len(spans) - 1; end >= 0 && around.from <= spans[end].to+1 {
			spans[end].to = max(spans[end].to, around.to)
			continue
		}
		spans = append(spans, around)
	}
	return slices.DeleteFunc(spans, func(s span) bool { // numbers may leave holes
		at, _ := sectionAt(sections, s.from)
		return sections[at].Number > s.to
	})
}

// sectionAt finds a section, or the place where it would be. Sections are by
// number.
func sectionAt(sections []judge.Section, number int) (int, bool) {
	return sort.Find(len(sections), func(i int) int { return number - sections[i].Number })
}

// Specified is the part of the answer around the sections with these numbers:
// for each the five before and the five after it as far as they exist, with a gap
// between ranges that do not touch. Sections are by number.
func Specified(sections []judge.Section, numbers []int) string {
	var b strings.Builder
	for i, around := range spansOf(sections, numbers) {
		if i > 0 {
			b.WriteString(gap + "\n")
		}
		at, _ := sectionAt(sections, around.from)
		for ; at < len(sections) && sections[at].Number <= around.to; at++ {
			b.WriteString(llm.QuoteSection(sections[at].Number, sections[at].Text) + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
