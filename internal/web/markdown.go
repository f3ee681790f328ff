package web

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/a-h/templ"
	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Two walls stand between a text and the page: the renderer leaves out markup
// that stands in the text, but for what blocks makes nodes of, and the policy lets through
// a short list of elements.
var reader = sync.OnceValue(func() goldmark.Markdown {
	// A URL in a text. Unlike that of the library it may have any host, also localhost or
	// one without a dot, and it ends where other writing begins.
	address := regexp.MustCompile(`^https?://[-A-Za-z0-9._~:/?#@!$&()*+,;=%\[\]]+`)
	return goldmark.New(
		goldmark.WithExtensions(extension.NewLinkify(extension.WithLinkifyURLRegexp(address)), extension.Table, extension.Strikethrough, extension.TaskList),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(imagesAreLinks{}, 100), util.Prioritized(blocks{}, 200))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blockRenderer{}, 100))),
	)
})

var sieve = sync.OnceValue(func() *bluemonday.Policy {
	policy := bluemonday.NewPolicy()
	policy.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre", "blockquote",
		"ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", detailsElement, summaryElement)
	policy.AllowAttrs("open").OnElements(detailsElement)
	policy.AllowAttrs("class").Matching(regexp.MustCompile("^task$")).OnElements("li")
	policy.AllowAttrs("class").Matching(regexp.MustCompile("^box$")).OnElements("span")
	policy.AllowNoAttrs().OnElements("label")
	policy.AllowAttrs("type").Matching(regexp.MustCompile("^checkbox$")).OnElements("input")
	policy.AllowAttrs("checked", "disabled").OnElements("input")
	policy.AllowAttrs("href").OnElements("a")
	policy.AllowURLSchemes("http", "https", "mailto")
	policy.AllowRelativeURLs(false)
	policy.RequireNoFollowOnLinks(true)
	policy.RequireNoReferrerOnLinks(true)
	policy.AddTargetBlankToFullyQualifiedLinks(true)
	return policy
})

// imagesAreLinks turns images into links: to load one would tell its server who
// reads the page, and when.
type imagesAreLinks struct{}

// Transform implements parser.ASTTransformer.
func (imagesAreLinks) Transform(document *ast.Document, _ text.Reader, _ parser.Context) {
	var images []*ast.Image
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) { // the function below never fails
		if image, is := node.(*ast.Image); is && entering {
			images = append(images, image)
		}
		return ast.WalkContinue, nil
	})
	for _, image := range images {
		link := ast.NewLink()
		link.Destination, link.Title = image.Destination, image.Title
		for child := image.FirstChild(); child != nil; {
			next := child.NextSibling()
			link.AppendChild(link, child)
			child = next
		}
		if link.ChildCount() == 0 {
			link.AppendChild(link, ast.NewString(image.Destination))
		}
		image.Parent().ReplaceChild(image.Parent(), image, link)
	}
}

// reference is an item of the same repository, as people name it.
var reference = regexp.MustCompile(`(^|[\s(,、。（])#([1-9][0-9]{0,9})\b`)

// itemMarkdown is markdown on an item of the board: #7 leads to that item.
func itemMarkdown(repository, source string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		var plain bytes.Buffer
		if err := markdown(source).Render(ctx, &plain); err != nil {
			return err
		}
		link := `$1<a href="` + templ.EscapeString("/board/"+strings.ReplaceAll(repository, "$", "$$")+"/items/") + `$2">#$2</a>`
		_, err := io.WriteString(w, outsideLinks(plain.String(), func(text string) string { return reference.ReplaceAllString(text, link) }))
		return err
	})
}

// outsideLinks changes the text of a page, but not what is a link or code already.
// The page comes from the renderer of Markdown, so that every < begins an element.
func outsideLinks(html string, change func(text string) string) string {
	var out strings.Builder
	inside, at := 0, 0
	text := func(piece string) {
		if inside > 0 {
			out.WriteString(piece)
			return
		}
		out.WriteString(change(piece))
	}
	for _, found := range element.FindAllStringIndex(html, -1) {
		text(html[at:found[0]])
		tag := html[found[0]:found[1]]
		switch {
		case strings.HasPrefix(tag, "<a ") || tag == "<code>":
			inside++
		case tag == "</a>" || tag == "</code>":
			inside--
		}
		out.WriteString(tag)
		at = found[1]
	}
	text(html[at:])
	return out.String()
}

// markdown shows a text that someone wrote. Whatever it contains, nothing of it
// runs and nothing is loaded.
func markdown(source string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error { return writeMarkdown(ctx, w, source) })
}

// writePlain writes a text as it is.
func writePlain(w io.Writer, source string) error {
	_, err := io.WriteString(w, "<pre>"+templ.EscapeString(source)+"</pre>")
	return err
}
