package forge

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Neutraliser makes text that a model or a stranger wrote safe to post, so that
// it cannot become a command of the forge:
//
//   - a quick action ("/close" at the start of a line) gets a backslash, which
//     Markdown does not show;
//   - a mention of someone who is not in the thread is broken by an invisible
//     character, outside of code;
//   - a closing keyword before anything but what may be closed ("fixes #12") is
//     broken the same way: the reference stays a link;
//   - a hidden HTML comment becomes visible.
//
// The first, third and last are done in code as well: forges do not agree on what
// code is, and a stranger could write text that one of them reads differently
// from us.
//
// The zero value allows no mention and closes nothing.
type Neutraliser struct {
	Repository   string     // that a bare "#12" refers to
	Participants []string   // logins that may be mentioned
	Closes       []task.Key // items that the text may close, normally the task's own
	// Mask masks secrets; nil means that there are none.
	Mask func(text string) string
}

// invisible is the zero-width space.
const invisible = "\u200b"

// Text makes a body safe and cuts it to [MaxText].
func (n Neutraliser) Text(raw string) Text {
	raw = n.masked(Clean(raw)) // a secret with invisible characters in it is one without them
	// What is far too long is cut first as well, to save the work.
	if limit := 2 * MaxText; len(raw) > limit {
		return Text{cut(n.neutralise(raw[:limit]), MaxText, true)}
	}
	return Text{cut(n.neutralise(raw), MaxText, false)}
}

// Title makes a title safe: one line, and not longer than every forge takes.
func (n Neutraliser) Title(raw string) Text {
	line := n.masked(textfmt.OneLine(Clean(raw)))
	if len(line) > maxTitle {
		line = strings.ToValidUTF8(line[:maxTitle-len("…")], "") + "…"
	}
	return Text{n.neutralise(line)}
}

func (n Neutraliser) masked(text string) string {
	if n.Mask == nil {
		return text
	}
	return n.Mask(text)
}

func (n Neutraliser) neutralise(raw string) string {
	body := Clean(raw)
	body = strings.ReplaceAll(body, "<!--", `<\!--`)
	body = quickAction.ReplaceAllString(body, `$1\/$2$3`)
	body = n.breakClosing(body)
	return n.breakMentions(body)
}

// quickAction matches the start of a line that could be a command to GitLab, or
// to one of the many bots that copy it: a slash and one word. In front of it may
// stand what Markdown or a forge skips. A path, with a second slash, is none.
var quickAction = lazyregexp.New(`(?m)^([\s\p{Z}\p{Cf}>*+-]*)/([\p{L}\p{N}_-]+)([^/\p{L}\p{N}_-]|$)`)

const (
	closingWord = `\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?|reopen(?:s|ed|ing)?)`
	// closingGap is what may be between the word and the reference.
	closingGap = "[\\s\\p{Z}:*_~`\"'(\\[<]+(?:issues?[\\s\\p{Z}]+)?"
	reference  = `(?:(?:[\w.-]+(?:/[\w.-]+)+)?[#!]\d+|https?://\S+/(?:issues|pulls?|merge_requests|work_items)/\d+|[a-z][a-z0-9_]*-\d+)`
	nextInList = `[\s\p{Z},;&]+(?:(?:and|or)[\s\p{Z}]+)?`
)

var (
	closing       = lazyregexp.New(`(?i)(` + closingWord + `)(` + closingGap + `)(` + reference + `(?:` + nextInList + reference + `)*)`)
	referenceOnly = lazyregexp.New(`(?i)` + reference)
)

// breakClosing puts the invisible character behind each closing keyword that
// would close something that may not be closed.
func (n Neutraliser) breakClosing(body string) string {
	var out strings.Builder
	rest := 0
	for _, at := range closing.FindAllStringSubmatchIndex(body, -1) {
		all := referenceOnly.FindAllString(body[at[6]:at[7]], -1)
		if !slices.ContainsFunc(all, func(ref string) bool { return !n.mayClose(ref) }) {
			continue
		}
		out.WriteString(body[rest:at[3]])
		out.WriteString(invisible)
		rest = at[3]
	}
	out.WriteString(body[rest:])
	return out.String()
}

// mayClose reports whether the reference is to one of the items in Closes.
func (n Neutraliser) mayClose(ref string) bool {
	return slices.ContainsFunc(n.Closes, func(key task.Key) bool {
		number := strconv.FormatInt(key.Number, 10)
		long := key.Repository + "#" + number
		if ref == "#"+number && strings.EqualFold(key.Repository, n.Repository) {
			return true
		}
		return strings.EqualFold(ref, long)
	})
}

// mention matches an at sign, also one written as an HTML entity, and a name.
var mention = lazyregexp.New(`(@|&#0*64;|&#[xX]0*40;|&commat;)([A-Za-z0-9_][\w.-]*(?:/[\w.-]+)*)`)

// breakMentions puts the invisible character into each mention of someone who is
// not a participant.
func (n Neutraliser) breakMentions(body string) string {
	found := mention.FindAllStringSubmatchIndex(body, -1)
	if found == nil {
		return body
	}
	code := codeRanges(body)
	var out strings.Builder
	rest := 0
	for _, at := range found {
		start, name := at[0], body[at[4]:at[5]]
		if start > 0 && alphanumeric(body[start-1]) || code.contains(start) || n.mayMention(name) {
			continue
		}
		out.WriteString(body[rest:start])
		if inAddress(body, start) {
			out.WriteString("%40")
		} else {
			out.WriteString("@" + invisible)
		}
		rest = at[4]
	}
	out.WriteString(body[rest:])
	return out.String()
}

func (n Neutraliser) mayMention(name string) bool {
	name = strings.TrimRight(name, ".-")
	return slices.ContainsFunc(n.Participants, func(p string) bool { return task.SameLogin(p, name) })
}

// alphanumeric reports whether an at sign behind the byte is part of an e-mail
// address rather than the start of a mention.
func alphanumeric(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

// inAddress reports whether the at sign begins a part of the path of a URL.
func inAddress(body string, at int) bool {
	word := body[strings.LastIndexAny(body[:at], " \t\n")+1 : at]
	return strings.HasSuffix(word, "/") && strings.Contains(word, "://")
}

type ranges [][2]int

func (r ranges) contains(at int) bool {
	return slices.ContainsFunc(r, func(span [2]int) bool { return span[0] <= at && at < span[1] })
}

// markdown reads as much of Markdown as decides what is code: blocks, code spans,
// and what binds as tightly as those. Links and emphasis do not, and to read them
// takes time that grows with the square of what an attacker writes.
var markdown = parser.NewParser(
	parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	parser.WithInlineParsers(
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
		util.Prioritized(parser.NewRawHTMLParser(), 400),
	),
	parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
)

// codeRanges returns where the body is code on every forge: fenced blocks and
// code spans. Indented blocks are left out, and spans with a bar in them, because
// in a footnote or a table a forge reads them as text.
func codeRanges(body string) ranges {
	if Costly(body) {
		return nil // then mentions are broken in code as well
	}
	source := []byte(body)
	var found ranges
	document := markdown.Parse(text.NewReader(source))
	walk := func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.FencedCodeBlock:
			for _, line := range node.Lines().Sliced(0, node.Lines().Len()) {
				found = append(found, [2]int{line.Start, line.Stop})
			}
		case *ast.CodeSpan:
			found = append(found, spanRanges(node, source)...)
		}
		return ast.WalkContinue, nil
	}
	// The walk returns an error only if the function does.
	_ = ast.Walk(document, walk)
	return found
}

func spanRanges(span *ast.CodeSpan, source []byte) ranges {
	var found ranges
	for child := span.FirstChild(); child != nil; child = child.NextSibling() {
		part, ok := child.(*ast.Text)
		if !ok || strings.ContainsAny(string(part.Segment.Value(source)), "|\n") {
			continue
		}
		found = append(found, [2]int{part.Segment.Start, part.Segment.Stop})
	}
	return found
}
