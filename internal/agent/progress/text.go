package progress

import (
	"strings"
	"unicode"

	"github.com/toryo-dev/toryo/internal/textfmt"
)

// inline makes text of others fit to stand in a line of ours: one line, not too
// long, and nothing in it that a forge gives a meaning to.
func inline(text string, most int) string {
	return escape(textfmt.Shorten(textfmt.OneLine(strings.Map(printable, strings.ToValidUTF8(text, "?"))), most))
}

// printable drops what is not to be seen, and what turns the order of the letters
// around.
func printable(r rune) rune {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return ' '
	case unicode.IsControl(r), unicode.In(r, unicode.Bidi_Control), unicode.Is(unicode.Cf, r):
		return -1
	}
	return r
}

// breaker stands behind a character that would begin a mention or a reference. It
// cannot be seen, and ends the name before it begins.
const breaker = "\u200b"

// escape takes the meaning out of characters. Backslashes are understood by every
// forge in front of punctuation, entities where HTML is.
func escape(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch r {
		case '<':
			out.WriteString("&lt;")
		case '>':
			out.WriteString("&gt;")
		case '&':
			out.WriteString("&amp;" + breaker)
		case '\\', '`', '*', '_', '[', ']', '|', '(', ')':
			out.WriteByte('\\')
			out.WriteRune(r)
		case '@', '#', '!', '~', '%', '$', '^':
			out.WriteByte('\\')
			out.WriteRune(r)
			out.WriteString(breaker)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
