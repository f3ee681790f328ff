package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Shorten cuts a text in the middle so that it has at most so many bytes, keeps
// whole lines where it can, and says how much is missing. The beginning of an
// output says what was done, the end how it went.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head, tail := text[:most*2/5], text[len(text)-most*3/5:]
	if at := strings.LastIndexByte(head, '\n'); at > len(head)/2 {
		head = head[:at+1]
	}
	if at := strings.IndexByte(tail, '\n'); at >= 0 && at < len(tail)/2 {
		tail = tail[at+1:]
	}
	missing := text[len(head) : len(text)-len(tail)]
	return strings.ToValidUTF8(head, "") +
		fmt.Sprintf("\n[… %d bytes in %d lines are left out here …]\n", len(missing), strings.Count(missing, "\n")) +
		strings.ToValidUTF8(tail, "")
}

// Printable makes any bytes into text that a model can be sent: valid UTF-8,
// without the control sequences of terminals.
func Printable(raw string) string {
	if !utf8.ValidString(raw) {
		raw = strings.ToValidUTF8(raw, "\uFFFD")
	}
	raw = textfmt.StripEscapes(raw)
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r >= ' ' && r != 0x7f {
			return r
		}
		return -1
	}, raw)
}
