package textfmt

import (
	"strings"
	"unicode"
)

// Plain is a text without the control characters that a terminal would obey. Line
// breaks and tabs stay.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}
