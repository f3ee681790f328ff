package textfmt

import (
	"strconv"
	"strings"
)

// Count is a number of tokens and the like as people read it: from 10,000 rounded to
// thousands (12.3k), from a million to millions (1.46M). Where the number must be exact,
// see [Grouped].
func Count(n int64) string {
	switch {
	case n >= 999_950: // what is less is rounded to at most 999.9k
		return rounded(n, 1e6, 2) + "M"
	case n >= 10_000:
		return rounded(n, 1e3, 1) + "k"
	default:
		return strconv.FormatInt(n, 10)
	}
}

// rounded is a number of units with at most so many decimals.
func rounded(n int64, unit float64, decimals int) string {
	text := strconv.FormatFloat(float64(n)/unit, 'f', decimals, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Grouped is a whole number with commas between its thousands.
func Grouped(n int) string {
	text := strconv.Itoa(n)
	first := 0
	if n < 0 {
		first = 1
	}
	for at := len(text) - 3; at > first; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
