package web

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html"
)

// maxFolds is how deep parts that can be folded may stand in one another, and maxSummary how
// many bytes of a summary are enough: no piece of text is added after them.
const (
	maxFolds   = 8
	maxSummary = 500
)

// Elements of HTML that people write in Markdown.
const (
	detailsElement = "details"
	summaryElement = "summary"
)

var kindFold = ast.NewNodeKind("Fold")

// foldNode is a part of a text that can be folded: <details> with its <summary>.
type foldNode struct {
	ast.BaseBlock

	open    bool
	summary string
}

// Kind implements ast.Node.
func (f *foldNode) Kind() ast.NodeKind { return kindFold }

// Dump implements ast.Node.
func (f *foldNode) Dump(source []byte, level int) { ast.DumpHelper(f, source, level, nil, nil) }

var kindTask = ast.NewNodeKind("Task")

// taskNode is the text of an item of a task list with its box, for which it is the label.
type taskNode struct {
	ast.BaseInline

	done bool
}

// Kind implements ast.Node.
func (t *taskNode) Kind() ast.NodeKind { return kindTask }

// Dump implements ast.Node.
func (t *taskNode) Dump(source []byte, level int) { ast.DumpHelper(t, source, level, nil, nil) }

// blocks makes nodes of <details> and <summary>, which the library has as HTML that is left
// out, and of the items of task lists. A node is whole whatever the text has: an end
// without a beginning is left out, and what is not ended ends with what it stands in.
type blocks struct{}

// Transform implements parser.ASTTransformer.
func (blocks) Transform(document *ast.Document, source text.Reader, _ parser.Context) {
	var holders []ast.Node
	var boxes []*extension.TaskCheckBox
	known := make(map[ast.Node]bool)
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) { // the function never fails
		switch one := node.(type) {
		case *ast.HTMLBlock:
			if entering && !known[one.Parent()] {
				known[one.Parent()] = true
				holders = append(holders, one.Parent())
			}
		case *extension.TaskCheckBox:
			if entering {
				boxes = append(boxes, one)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, box := range boxes {
		label(box)
	}
	for _, holder := range holders {
		foldIn(holder, source.Source())
	}
}

// label makes what stands behind a box its label. A box with nothing behind it is left as it is:
// see writeBox.
func label(box *extension.TaskCheckBox) {
	text := box.Parent()
	text.Parent().SetAttributeString("class", []byte("task")) // the parser makes boxes in items of lists only
	if box.NextSibling() == nil {
		return
	}
	item := &taskNode{done: box.IsChecked}
	for child := box.NextSibling(); child != nil; {
		next := child.NextSibling()
		item.AppendChild(item, child)
		child = next
	}
	text.ReplaceChild(text, box, item)
}

// foldIn puts what stands between <details> and </details> into nodes of their own.
func foldIn(holder ast.Node, source []byte) {
	var children []ast.Node
	for child := holder.FirstChild(); child != nil; child = child.NextSibling() {
		children = append(children, child)
	}
	holder.RemoveChildren(holder)
	into := &folding{open: []ast.Node{holder}}
	for _, child := range children {
		if block, is := child.(*ast.HTMLBlock); is {
			if raw := rawBlock(block, source); folds(raw) {
				into.takeHTML(raw)
				continue
			}
		}
		into.add(child)
	}
}

// rawBlock is a block of HTML as it was written.
func rawBlock(block *ast.HTMLBlock, source []byte) []byte {
	raw := bytes.Clone(block.Lines().Value(source))
	if block.HasClosure() {
		raw = append(raw, block.ClosureLine.Value(source)...)
	}
	return raw
}

// folds says whether a block of HTML may begin or end something that can be folded.
func folds(raw []byte) bool {
	lower := bytes.ToLower(raw)
	return bytes.Contains(lower, []byte(detailsElement)) || bytes.Contains(lower, []byte(summaryElement))
}

// folding is the parts that have begun and have not ended: the first is what all stands in.
type folding struct {
	open      []ast.Node
	ignored   int // parts that have begun too deep
	inSummary bool
	silent    string // the element whose text is not for people
}

func (f *folding) top() ast.Node { return f.open[len(f.open)-1] }

func (f *folding) add(node ast.Node) { f.top().AppendChild(f.top(), node) }

// takeHTML reads a block of HTML. Of its elements only <details> and <summary> count; the
// text of others is text.
func (f *folding) takeHTML(raw []byte) {
	tokens := html.NewTokenizer(bytes.NewReader(raw))
	for {
		switch tokens.Next() {
		case html.ErrorToken: // the end
			f.inSummary, f.silent = false, ""
			return
		case html.TextToken:
			f.takeText(string(tokens.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			f.begin(tokens.Token())
		case html.EndTagToken:
			name, _ := tokens.TagName()
			f.end(string(name))
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

func (f *folding) begin(tag html.Token) {
	switch tag.Data {
	case detailsElement:
		f.inSummary = false
		if len(f.open) > maxFolds {
			f.ignored++
			return
		}
		node := new(foldNode)
		for _, attribute := range tag.Attr {
			node.open = node.open || attribute.Key == "open"
		}
		f.add(node)
		f.open = append(f.open, node)
	case summaryElement:
		f.inSummary = true
	case "script", "style":
		f.silent = tag.Data
	}
}

func (f *folding) end(name string) {
	switch {
	case name == f.silent:
		f.silent = ""
	case name == summaryElement:
		f.inSummary = false
	case name == detailsElement && f.ignored > 0:
		f.ignored--
	case name == detailsElement && len(f.open) > 1:
		f.inSummary = false
		f.open = f.open[:len(f.open)-1]
	}
}

// takeText takes the text between tags: of the summary, or as a paragraph.
func (f *folding) takeText(text string) {
	text = strings.TrimSpace(text)
	if text == "" || f.silent != "" {
		return
	}
	if node, is := f.top().(*foldNode); is && f.inSummary {
		if len(node.summary) > maxSummary {
			return
		}
		node.summary = strings.TrimSpace(node.summary + " " + text)
		return
	}
	words := ast.NewString([]byte(text))
	words.SetRaw(true) // the renderer escapes it, and reads no Markdown in it
	paragraph := ast.NewParagraph()
	paragraph.AppendChild(paragraph, words)
	f.add(paragraph)
}

// blockRenderer writes what the library does not know, or writes otherwise.
type blockRenderer struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (blockRenderer) RegisterFuncs(to renderer.NodeRendererFuncRegisterer) {
	to.Register(kindFold, writeFold)
	to.Register(kindTask, writeTask)
	to.Register(extension.KindTaskCheckBox, writeBox)
}

func writeFold(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	fold, is := node.(*foldNode)
	if !is {
		return ast.WalkContinue, nil
	}
	if !entering {
		_, err := w.WriteString("</details>\n")
		return ast.WalkContinue, err
	}
	tag := "<details>"
	if fold.open {
		tag = `<details open="">`
	}
	if fold.summary != "" { // without one the browser has a word in the language of the reader
		tag += "<summary>" + html.EscapeString(fold.summary) + "</summary>"
	}
	_, err := w.WriteString(tag + "\n")
	return ast.WalkContinue, err
}

// writeTask writes a box that nobody can tick here, and its label.
func writeTask(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	item, is := node.(*taskNode)
	if !is {
		return ast.WalkContinue, nil
	}
	tag := "</label>"
	switch {
	case entering && item.done:
		tag = `<label><input type="checkbox" checked="" disabled=""> `
	case entering:
		tag = `<label><input type="checkbox" disabled=""> `
	}
	_, err := w.WriteString(tag)
	return ast.WalkContinue, err
}

// writeBox writes a box without a text as a character: a field of a form would need a name that
// says what it is for.
func writeBox(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	box, is := node.(*extension.TaskCheckBox)
	if !is || !entering {
		return ast.WalkContinue, nil
	}
	sign := "☐"
	if box.IsChecked {
		sign = "☑"
	}
	_, err := w.WriteString(`<span class="box">` + sign + "</span> ")
	return ast.WalkContinue, err
}
