package docsite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/toryo-dev/toryo/internal/task"
)

// source is one file.
type source struct {
	file, name string
	language   task.Language
	text       []byte
	document   ast.Node
	headings   []*heading
	anchors    map[string]string // the anchors of the file itself, and what they are on the server
	// linked are the names of the pages that a block at the top level leads to, in order. It is
	// known when the page is made.
	linked map[ast.Node][]string
}

// heading is one of a file, with its anchor on the server.
type heading struct {
	*ast.Heading

	text, id string
}

func parse(file, name string, language task.Language, content []byte) *source {
	s := &source{file: file, name: name, language: language, text: content, anchors: make(map[string]string), linked: make(map[ast.Node][]string)}
	s.document = reader().Parser().Parse(text.NewReader(content))
	used := make(map[string]int)
	each(s.document, func(node *ast.Heading) {
		title := textOf(node, content)
		own := anchor(title)
		used[own]++
		if n := used[own] - 1; n > 0 {
			own += "-" + strconv.Itoa(n)
		}
		s.headings = append(s.headings, &heading{node, title, own})
		s.anchors[own] = own
	})
	return s
}

// each calls a function for every node of a kind, in the order of the text.
func each[T ast.Node](root ast.Node, do func(T)) {
	_ = ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) { // the function never fails
		if one, is := node.(T); is && entering {
			do(one)
		}
		return ast.WalkContinue, nil
	})
}

// anchor is the anchor of a heading as GitHub, GitLab and Gitea make it: small letters, without
// punctuation, with hyphens for spaces.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '-'
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// follow takes over the anchors of the page that this one is a translation of.
func (s *source) follow(original *source) error {
	if len(s.headings) != len(original.headings) {
		return fmt.Errorf("%s has %d headings, and %s has %d", s.file, len(s.headings), original.file, len(original.headings))
	}
	for i, h := range s.headings {
		if h.Level != original.headings[i].Level {
			return fmt.Errorf("%s: the heading %q is of level %d, and that of %s is of level %d", s.file, h.text, h.Level, original.file, original.headings[i].Level)
		}
		s.anchors[h.id] = original.headings[i].id
	}
	for i, h := range s.headings {
		h.id = original.headings[i].id
	}
	return nil
}

// page makes the page.
func (s *source) page(all *shelf, l *Library) (*Page, error) {
	page := &Page{Name: s.pageName(), Title: s.name, Language: s.language}
	if len(s.headings) > 0 && s.headings[0].Level == 1 {
		page.Title = s.headings[0].text
	}
	var wrong []error
	for block := s.document.FirstChild(); block != nil; block = block.NextSibling() {
		wrong = append(wrong, s.leadLinks(block, all), s.showImages(block, all, l))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	for _, h := range s.headings {
		h.SetAttributeString("id", []byte(h.id))
		if h.Level > 1 {
			page.Headings = append(page.Headings, Heading{h.Level, h.id, h.text})
			h.link()
		}
	}
	var err error
	page.HTML, err = render(s)
	return page, err
}

func (s *source) pageName() string {
	if s.name == index {
		return ""
	}
	return s.name
}

// link makes a heading a link to itself, for people who want to tell others of it.
func (h *heading) link() {
	linked := false
	each(h.Heading, func(*ast.Link) { linked = true })
	if linked {
		return
	}
	link := ast.NewLink()
	link.Destination = []byte("#" + h.id)
	moveChildren(h.Heading, link)
	h.AppendChild(h.Heading, link)
}

func moveChildren(from, to ast.Node) {
	for child := from.FirstChild(); child != nil; {
		next := child.NextSibling()
		to.AppendChild(to, child) // takes it from where it was
		child = next
	}
}

// leadLinks makes links to files links to pages. What a link to another place in the
// repository says stays as text: the server does not have the repository.
func (s *source) leadLinks(block ast.Node, all *shelf) error {
	var links []*ast.Link
	each(block, func(link *ast.Link) { links = append(links, link) })
	var wrong []error
	for _, link := range links {
		to, err := s.resolve(string(link.Destination), all)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if to.page != nil {
			s.linked[block] = append(s.linked[block], to.page.pageName())
		}
		if to.address == "" {
			unlink(link)
			continue
		}
		link.Destination = []byte(to.address)
	}
	return errors.Join(wrong...)
}

func unlink(link *ast.Link) {
	parent := link.Parent()
	for child := link.FirstChild(); child != nil; {
		next := child.NextSibling()
		parent.InsertBefore(parent, link, child)
		child = next
	}
	parent.RemoveChild(parent, link)
}

// target is where a link leads to: to an address, or nowhere on the server.
type target struct {
	address string
	page    *source // if it is a page
}

// resolve finds out where a link in the file leads to.
func (s *source) resolve(destination string, all *shelf) (target, error) {
	to, err := url.Parse(destination)
	if err != nil {
		return target{}, fmt.Errorf("%s: %w", s.file, err)
	}
	if to.Scheme != "" || to.Host != "" {
		return target{address: destination}, nil
	}
	file := s.file
	if to.Path != "" {
		file = path.Join(path.Dir(s.file), to.Path)
	}
	found := all.files[file]
	if found == nil {
		if s.outside(file) {
			return target{}, nil
		}
		return target{}, fmt.Errorf("%s: %s leads nowhere", s.file, destination)
	}
	address := (&Page{Name: found.pageName()}).Path()
	if to.Path == "" {
		address = ""
	}
	if to.Fragment == "" {
		return target{address, found}, nil
	}
	there, known := found.anchors[to.Fragment]
	if !known {
		return target{}, fmt.Errorf("%s: %s leads to no heading", s.file, destination)
	}
	return target{address + "#" + there, found}, nil
}

// outside reports whether a file is none of those that pages are made of: these are in the
// folder of the English pages, or beside the one that names them.
func (s *source) outside(file string) bool {
	folder := path.Dir(file)
	return path.Ext(file) != extension || folder != "." && folder != path.Dir(s.file)
}

// Image is a picture. Its path changes with its content, so that browsers can keep it for
// good.
type Image struct {
	Path    string
	Content []byte
}

// showImages makes the sources of images paths of the server.
func (s *source) showImages(block ast.Node, all *shelf, l *Library) error {
	var wrong []error
	each(block, func(image *ast.Image) {
		file := path.Join(path.Dir(s.file), string(image.Destination))
		content, err := fs.ReadFile(all.fs, file)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: the image %s is not there: %w", s.file, image.Destination, err))
			return
		}
		sum := sha256.Sum256(content)
		made := Image{Root + "/images/" + hex.EncodeToString(sum[:6]) + "/" + path.Base(file), content}
		l.images[made.Path] = made
		image.Destination = []byte(made.Path)
	})
	return errors.Join(wrong...)
}

// textOf is what a node says, without markup.
func textOf(node ast.Node, source []byte) string {
	var out bytes.Buffer
	writeText(&out, node, source)
	return strings.Join(strings.Fields(out.String()), " ")
}

// writeText writes what is in a node. Blocks are apart; lines of Japanese go on without a
// space.
func writeText(out *bytes.Buffer, node ast.Node, source []byte) {
	_ = ast.Walk(node, func(node ast.Node, entering bool) (ast.WalkStatus, error) { // the function never fails
		if !entering {
			if node.Type() == ast.TypeBlock {
				out.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Text:
			out.Write(n.Value(source))
			if (n.SoftLineBreak() || n.HardLineBreak()) && !joined(n, source) {
				out.WriteByte(' ')
			}
		case *ast.String:
			out.Write(n.Value)
		case *ast.AutoLink:
			out.Write(n.Label(source))
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			out.Write(node.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
}

// joined reports whether the line that ends with the text goes on without a space: both its
// end and what follows are of a writing without spaces. So does the renderer.
func joined(n *ast.Text, source []byte) bool {
	next, is := n.NextSibling().(*ast.Text)
	if !is {
		return false
	}
	before, after := []rune(string(n.Value(source))), []rune(string(next.Value(source)))
	return len(before) > 0 && len(after) > 0 && util.IsEastAsianWideRune(before[len(before)-1]) && util.IsEastAsianWideRune(after[0])
}
