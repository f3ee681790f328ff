package forge

import (
	"strconv"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

var closingWords = lazyregexp.New(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(\d+)\b`)

// Closes are the numbers of the issues that the text of a pull request says it closes, in order.
func Closes(text string) []int64 {
	var numbers []int64
	for _, found := range closingWords.FindAllStringSubmatch(text, -1) {
		if number, err := strconv.ParseInt(found[1], 10, 64); err == nil { // else no item has such a number
			numbers = append(numbers, number)
		}
	}
	return numbers
}
