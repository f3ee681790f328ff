package items

import (
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// ClosingWords and BlockingWords begin a line of references in an item's text:
// what a pull request is for, and what has to be closed before an item.
var (
	ClosingWords  = lazyregexp.New(`(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?)\s*:?\s+(` + references + `)`)
	BlockingWords = lazyregexp.New(`(?i)\b(?:blocked\s+by|depends\s+on)\s*:?\s*(` + references + `)`)
	oneReference  = lazyregexp.New(`([\w.-]+(?:/[\w.-]+)+)?#(\d+)`)
)

const references = `(?:[\w.-]+(?:/[\w.-]+)+)?#\d+(?:(?:\s*,\s*|\s+and\s+|\s*,\s*and\s+)(?:[\w.-]+(?:/[\w.-]+)+)?#\d+)*`

// mostMentioned is how many issues are taken from the text of one item: everyone can write as
// many as they like, and each is looked at.
const mostMentioned = 100

// Mentioned returns the issues that stand in the item's text behind the words, no more than a
// hundred.
func Mentioned(item forge.Item, behind *lazyregexp.Regexp) []task.Key {
	var keys []task.Key
	for _, match := range behind.FindAllStringSubmatch(item.Body, -1) {
		for _, one := range oneReference.FindAllStringSubmatch(match[1], -1) {
			number, err := strconv.ParseInt(one[2], 10, 64)
			if err != nil {
				continue // no forge counts so far
			}
			key := task.Key{Forge: item.Key.Forge, Repository: item.Key.Repository, Kind: task.Issue, Number: number}
			if one[1] != "" {
				key.Repository = strings.Trim(one[1], "/")
			}
			if key.Validate() == nil && key != item.Key && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
			if len(keys) == mostMentioned {
				return keys
			}
		}
	}
	return keys
}
