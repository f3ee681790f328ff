package docsite

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	markup "github.com/yuin/goldmark/extension"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// reader reads Markdown. Markup that stands in a text is left out; lines of Japanese are
// joined without a space.
var reader = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(markup.Table, markup.Strikethrough, markup.NewCJK(markup.WithEastAsianLineBreaks())))
})

// sieve lets through what pages of the documentation need. The files are our own; still,
// nothing in them can become a script.
var sieve = sync.OnceValue(func() *bluemonday.Policy {
	policy := bluemonday.NewPolicy()
	policy.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre", "blockquote",
		"ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td")
	policy.AllowAttrs("id").OnElements("h1", "h2", "h3", "h4", "h5", "h6")
	policy.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	policy.AllowAttrs("href").OnElements("a")
	policy.AllowAttrs("src", "alt").OnElements("img")
	policy.AllowURLSchemes("http", "https", "mailto")
	policy.AllowRelativeURLs(true)
	policy.RequireNoReferrerOnFullyQualifiedLinks(true)
	policy.AddTargetBlankToFullyQualifiedLinks(true)
	return policy
})

// regions are elements that may be wider than the page. They scroll by themselves, so that
// they have to be reached with the keyboard. A cell without text heads nothing.
var regions = strings.NewReplacer(
	"<table>", `<div class="wide-table" tabindex="0"><table>`, "</table>", "</table></div>", "<pre>", `<pre tabindex="0">`, "<th></th>", "<td></td>")

// noHead is the head of a table without names: Markdown has no tables without a head.
var noHead = lazyregexp.New(`<thead>\s*<tr>\s*(<td></td>\s*)+</tr>\s*</thead>\s*`)

// render makes a page of what was read and changed.
func render(s *source) (string, error) {
	var made bytes.Buffer
	if err := reader().Renderer().Render(&made, s.text, s.document); err != nil {
		return "", fmt.Errorf("%s: %w", s.file, err)
	}
	return noHead.ReplaceAllString(regions.Replace(sieve().SanitizeReader(&made).String()), ""), nil
}
