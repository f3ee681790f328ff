package images

import (
	"html"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

var (
	comment    = lazyregexp.New(`(?s)<!--.*?(-->|$)`)
	inlineCode = lazyregexp.New("(?s)``.+?``|`[^`]+`")
	link       = lazyregexp.New(`!\[[^\]\n]*\]\(\s*<?([^\s<>()]+(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+["'(][^)\n]*)?\s*\)|<img\s[^>]*?\bsrc\s*=\s*(?:"([^"]+)"|'([^']+)')`)
)

// Links returns the addresses of the images of a text in Markdown, as they are written there, each
// once. Those in code are examples and not images.
func Links(text string) []string {
	text = inlineCode.ReplaceAllString(comment.ReplaceAllString(withoutCodeBlocks(text), ""), "")
	var found []string
	seen := map[string]bool{}
	for _, match := range link.FindAllStringSubmatch(text, -1) {
		written := match[1] + match[2] + match[3]
		if !seen[written] {
			seen[written] = true
			found = append(found, written)
		}
	}
	return found
}

// addressOf is the address that is meant by what is written.
func addressOf(written string) string { return html.UnescapeString(strings.TrimSpace(written)) }

// withoutCodeBlocks leaves out what is between fences, and what is indented as code.
func withoutCodeBlocks(text string) string {
	var kept strings.Builder
	fence := ""
	blank := true
	for line := range strings.Lines(text) {
		trimmed := strings.TrimLeft(line, " ")
		mark := fenceOf(trimmed)
		switch {
		case fence != "":
			if strings.HasPrefix(mark, fence) && strings.TrimSpace(strings.TrimLeft(trimmed, fence[:1])) == "" {
				fence = ""
			}
			continue
		case mark != "" && len(line)-len(trimmed) < 4:
			fence = mark
			continue
		case blank && (strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")):
			continue
		}
		blank = strings.TrimSpace(line) == ""
		kept.WriteString(line)
	}
	return kept.String()
}

// fenceOf is the fence with which a line begins, or nothing.
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		if rest := strings.TrimLeft(line, mark); len(line)-len(rest) >= 3 {
			return line[:len(line)-len(rest)]
		}
	}
	return ""
}
