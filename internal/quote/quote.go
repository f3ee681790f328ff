// Package quote puts text from outside into prompts, so that it cannot be taken for
// anything else: it cannot end where it is quoted, nor begin something of its own.
// Every prompt that has such a text uses it.
//
// It escapes and does not use random marks: the same text is always quoted in the
// same way, which the caches of providers need, and which holds for a run that goes
// on later or elsewhere.
package quote

import (
	_ "embed" // for the rule
	"fmt"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// Rule is the paragraph of a system prompt that says what quoted text is. A prompt
// that quotes anything has it, or says the same in other words.
//
//go:embed rule.md
var Rule string

// Origin says where a text comes from. It stands outside of what is quoted.
type Origin struct {
	Source string // for example "issue body", "comment", "file README.md", "command output"
	Author string // who wrote it, where that is known
	Access string // the author's access level on the forge, for example "write" or "none"
}

// The tags of our marks: of what is quoted, of blocks that stay at the head of a
// conversation, and of the summary of its earlier part.
const (
	tag        = "untrusted"
	pinnedTag  = "pinned"
	summaryTag = "earlier-summary"
)

// Pinned is a block at the head of a conversation. What is quoted in it is escaped
// already; what a model wrote in it cannot end it either.
func Pinned(name, text string) string {
	return fmt.Sprintf("<%s name=%q>\n%s\n</%s>\n", pinnedTag, Line(name), ours(text), pinnedTag)
}

// Summary is the summary of the earlier part of a conversation, under a heading.
func Summary(heading, text string) string {
	return "<" + summaryTag + ">\n" + heading + "\n" + ours(text) + "\n</" + summaryTag + ">"
}

// ours escapes marks of blocks in a text that may have quotes in it.
func ours(text string) string {
	return blockMark.ReplaceAllStringFunc(text, escapeMark)
}

// Text puts a text between marks that name its origin. The text cannot close the
// marks itself, nor open others. [Parse] gives it back.
func Text(origin Origin, text string) string {
	var b strings.Builder
	b.WriteString("<" + tag)
	for _, attribute := range []struct{ name, value string }{
		{"source", origin.Source}, {"author", origin.Author}, {"access", origin.Access},
	} {
		if attribute.value != "" {
			b.WriteString(" " + attribute.name + `="` + html.EscapeString(oneLine(attribute.value)) + `"`)
		}
	}
	b.WriteString(">\n")
	b.WriteString(escape(text))
	if !strings.HasSuffix(text, "\n") {
		b.WriteString("\n")
	}
	b.WriteString("</" + tag + ">")
	return b.String()
}

// Line is a short text from outside in a line of ours, such as a title: without line
// breaks, without marks, and not longer than a line.
func Line(text string) string {
	const longest = 500
	text = oneLine(text)
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return escape(text)
}

func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
	}), " ")
}

// Inset is a text as an entry of a list of entries, one of which begins on each line
// that is not indented. All its lines but the first are.
func Inset(text string) string { return lineBreak.ReplaceAllString(text, "$0  ") }

// lineBreak is whatever a reader may take for the end of a line.
var lineBreak = lazyregexp.New(`\r\n|` + breaks)

const breaks = `[\n\v\f\r\x{85}\x{2028}\x{2029}]`

// section is a line that could be taken for the heading of a section.
var section = lazyregexp.New(`(?:^|` + breaks + `)[\s\p{Z}]*?§`)

// Section is a section of a text under a heading such as §3. A line in it that looks
// like a heading is indented, so that no line but ours begins with §.
func Section(number int, text string) string {
	return fmt.Sprintf("§%d\n%s", number, section.ReplaceAllStringFunc(text, func(found string) string {
		return strings.TrimSuffix(found, "§") + "  §"
	}))
}

// mark is what could be taken for one of our marks: its first character, or a way to
// write that, and then the tag in any case, with spaces, slashes and what cannot be
// seen between. What was escaped already is found too, so that escaping can be
// undone.
var mark = lazyregexp.New(`(?i)(?:[` + openings + `]|&(?:amp;)*(?:lt|#x[0-9a-f]{2,4});)` +
	between + `(?:` + spelled(tag) + `|` + spelled(pinnedTag) + `|` + spelled(summaryTag) + `)`)

// blockMark is a mark of a block that is not escaped.
var blockMark = lazyregexp.New(`(?i)[` + openings + `]` + between + `(?:` + spelled(pinnedTag) + `|` + spelled(summaryTag) + `)`)

// spelled is a tag with anything between its letters that cannot be seen.
func spelled(tag string) string { return strings.Join(strings.Split(tag, ""), unseen) }

const (
	// openings look like <.
	openings = `<\x{FF1C}\x{FE64}\x{2039}\x{27E8}\x{3008}\x{2329}\x{276E}\x{1438}\x{02C2}`
	unseen   = `[\p{Cf}\p{Mn}\p{Me}\x{115F}\x{1160}\x{2800}\x{3164}\x{FFA0}]*`
	between  = `[\s/\\\p{Z}\p{Cc}\p{Cf}\p{Mn}\p{Me}\x{115F}\x{1160}\x{2800}\x{3164}\x{FFA0}]*`
)

// escape makes marks in a text harmless.
func escape(text string) string {
	if !strings.ContainsAny(text, "<&\uFF1C\uFE64\u2039\u27E8\u3008\u2329\u276E\u1438\u02C2") {
		return text
	}
	return mark.ReplaceAllStringFunc(text, escapeMark)
}

func escapeMark(found string) string {
	switch first, size := utf8.DecodeRuneInString(found); first {
	case '<':
		return "&lt;" + found[1:]
	case '&':
		return "&amp;" + found[1:]
	default:
		return fmt.Sprintf("&#x%X;", first) + found[size:]
	}
}

// unescape undoes escape.
func unescape(text string) string {
	return mark.ReplaceAllStringFunc(text, func(found string) string {
		if rest, escaped := strings.CutPrefix(found, "&amp;"); escaped {
			return "&" + rest
		}
		name, rest, _ := strings.Cut(strings.TrimPrefix(found, "&"), ";")
		return html.UnescapeString("&"+name+";") + rest
	})
}

// Block is one piece of a prompt: what we say, or what is quoted.
type Block struct {
	Origin Origin
	Quoted bool
	Text   string // as it was, but for a line break at its end
}

var (
	opening    = lazyregexp.New(`(?m)^<` + tag + `((?: [a-z]+="[^"\n]*")*)>$`)
	attributes = lazyregexp.New(` ([a-z]+)="([^"]*)"`)
)

const closing = "\n</" + tag + ">"

// Parse reads a prompt by its marks. Tests use it to see what a model is shown as
// quoted.
func Parse(prompt string) []Block {
	var blocks []Block
	for {
		at := opening.FindStringSubmatchIndex(prompt)
		if at == nil {
			break
		}
		if at[0] > 0 {
			blocks = append(blocks, Block{Text: prompt[:at[0]]})
		}
		block := Block{Quoted: true}
		for _, pair := range attributes.FindAllStringSubmatch(prompt[at[2]:at[3]], -1) {
			value := html.UnescapeString(pair[2])
			switch pair[1] {
			case "source":
				block.Origin.Source = value
			case "author":
				block.Origin.Author = value
			case "access":
				block.Origin.Access = value
			}
		}
		inside, rest, closed := strings.Cut(prompt[at[1]:], closing)
		block.Text = unescape(strings.TrimPrefix(inside, "\n"))
		blocks = append(blocks, block)
		prompt = rest
		if !closed {
			break
		}
	}
	if prompt != "" {
		blocks = append(blocks, Block{Text: prompt})
	}
	return blocks
}
