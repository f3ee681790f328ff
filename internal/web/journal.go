package web

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/toryo-dev/toryo/internal/textfmt"
)

// paragraphs are texts as one.
func paragraphs(texts []string) string { return strings.Join(texts, "\n\n") }

// asJSON is a text that is a JSON object, laid out for people.
func asJSON(text string) (laidOut string, is bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") || len(text) > maxLaidOut || depth(text) > maxDepth {
		return "", false
	}
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return "", false
	}
	return out.String(), true
}

const (
	// maxLaidOut is how long JSON is that is laid out.
	maxLaidOut = 64 << 10
	// maxDepth is how deep JSON is nested that is laid out: each level indents all
	// that is below.
	maxDepth = 40
)

// depth is how deep JSON may be nested.
func depth(text string) (deepest int) {
	now := 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// marks are what Markdown has in a line that a heading does not need.
var marks = strings.NewReplacer("**", "", "`", "", "# ", "", "#", "")

// firstLine is the beginning of a text, short enough for a heading.
func firstLine(text string) string {
	const longest = 120
	return textfmt.Shorten(strings.TrimSpace(marks.Replace(textfmt.FirstLine(text))), longest)
}
