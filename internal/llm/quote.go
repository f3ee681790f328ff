package llm

import (
	_ "embed"
	"html"
	"strings"
)

// UntrustedRule is the paragraph of a system prompt that says what quoted text
// is. A prompt that quotes anything has it.
//
//go:embed untrusted.md
var UntrustedRule string

// Origin says where a text from outside comes from.
type Origin struct {
	Source string // for example "issue body", "comment", "file README.md", "command output"
	Author string // who wrote it, where that is known
	Access string // the author's access level on the forge, for example "write" or "none"
}

const (
	quoteTag   = "untrusted"
	quoteOpen  = "<" + quoteTag
	quoteClose = "</" + quoteTag
)

// Quote puts a text from outside between marks that name its origin. The text
// cannot close the marks itself, nor open others.
func Quote(origin Origin, text string) string {
	var b strings.Builder
	b.WriteString(quoteOpen)
	for _, attribute := range []struct{ name, value string }{
		{"source", origin.Source}, {"author", origin.Author}, {"access", origin.Access},
	} {
		if attribute.value != "" {
			b.WriteString(" " + attribute.name + `="` + html.EscapeString(strings.Join(strings.Fields(attribute.value), " ")) + `"`)
		}
	}
	b.WriteString(">\n")
	b.WriteString(defuse(text))
	if !strings.HasSuffix(text, "\n") {
		b.WriteString("\n")
	}
	b.WriteString(quoteClose + ">")
	return b.String()
}

// defuse makes marks inside a text harmless, in any case and with spaces.
func defuse(text string) string {
	lower := asciiLower(text)
	if !strings.Contains(lower, quoteTag) {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if text[i] == '<' && isMark(lower[i+1:]) {
			b.WriteString("&lt;")
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func isMark(after string) bool {
	after = strings.TrimLeft(after, " \t\r\n/")
	return strings.HasPrefix(after, quoteTag)
}

// asciiLower keeps every byte in its place, which strings.ToLower does not.
func asciiLower(text string) string {
	lower := []byte(text)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}
