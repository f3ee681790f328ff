package review

import (
	"slices"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/task"
)

// digits are ASCII or full-width ones.
const digits = `[0-9\x{FF10}-\x{FF19}]+`

var (
	mentionPattern        = lazyregexp.New(`§(` + digits + `)|第(` + digits + `)段落`)
	englishMentionPattern = lazyregexp.New(mentionPattern.String() + `|(?i:\b(?:section|paragraph) ([0-9]+)\b)`)
)

// Mentions returns the sections that a message names, each once, in order: §N and
// 第N段落 with the digits right behind, ASCII or full-width; in English also
// "section N" and "paragraph N". A space, ¶ or a number in words is no mention.
func Mentions(input string, language task.Language) []int {
	pattern := mentionPattern
	if language == task.English {
		pattern = englishMentionPattern
	}
	var numbers []int
	for _, match := range pattern.FindAllStringSubmatch(input, -1) {
		for _, digits := range match[1:] {
			if number, ok := judge.ParseNumber(digits); ok {
				numbers = append(numbers, number)
			}
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
