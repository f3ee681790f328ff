package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The limits of a configuration file. The YAML parser takes time and memory that
// grow with the square of the tokens and of the nesting, so that without them a
// small file could stop the program. A real one is far below.
const (
	maxFileSize = 256 << 10
	maxTokens   = 10_000
	maxNesting  = 50
	maxEntries  = 10_000 // that aliases and merges may unfold to
)

// position is a place in the file; columns count characters.
type position struct{ line, column int }

func positionOf(node ast.Node) position {
	if node == nil || node.GetToken() == nil || node.GetToken().Position == nil {
		return position{}
	}
	at := node.GetToken().Position
	return position{at.Line, max(at.Column, 1)}
}

// fault is a complaint about a place in the file.
type fault struct {
	complaint
	at position
}

func faultAt(at position, hint, format string, args ...any) *fault {
	return &fault{complaint: *complain(hint, format, args...), at: at}
}

// document is a parsed file.
type document struct {
	body    ast.Node // nil when the file says nothing
	anchors []*ast.AnchorNode
	entries int // counted up to maxEntries
}

// parseDocument reads the text of a file.
func parseDocument(data []byte) (*document, *fault) {
	text, wrong := plainText(data)
	if wrong != nil {
		return nil, wrong
	}
	file, wrong := parseYAML(text)
	if wrong != nil {
		return nil, wrong
	}
	doc := new(document)
	for _, part := range file.Docs {
		if _, directive := part.Body.(*ast.DirectiveNode); directive || part.Body == nil {
			continue
		}
		if doc.body != nil {
			return nil, faultAt(firstPosition(part.Body), "remove the --- line and what follows it", "the file has more than one YAML document")
		}
		doc.body = part.Body
		ast.Walk(doc, part.Body)
	}
	return doc, nil
}

// Visit collects the anchors, for [ast.Walk].
func (d *document) Visit(node ast.Node) ast.Visitor {
	if anchor, ok := node.(*ast.AnchorNode); ok {
		d.anchors = append(d.anchors, anchor)
	}
	return d
}

// plainText checks that the data is text and gives it LF line ends and no byte
// order mark.
func plainText(data []byte) (string, *fault) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(data) > maxFileSize {
		return "", faultAt(position{}, "a configuration file has a few hundred lines: is this the right file?", "the file is larger than %d KiB", maxFileSize>>10)
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	at := position{line: 1, column: 1}
	for rest := data; len(rest) > 0; {
		char, size := utf8.DecodeRune(rest)
		if char == utf8.RuneError && size == 1 || char == 0 {
			return "", faultAt(at, "save it as UTF-8", "the file is not UTF-8 text")
		}
		rest = rest[size:]
		at.column++
		if char == '\n' {
			at = position{line: at.line + 1, column: 1}
		}
	}
	return string(data), nil
}

// tokenError is how the parser says where it stopped.
type tokenError interface {
	GetToken() *token.Token
	GetMessage() string
}

// parseYAML calls the parser. The file is input from outside, and a parser that
// trips over it must not take the program down.
func parseYAML(text string) (file *ast.File, wrong *fault) {
	const hint = "fix the YAML there or just above"
	defer func() {
		if recover() != nil {
			file, wrong = nil, faultAt(position{}, "write it in plain key: value lines", "the file cannot be read as YAML")
		}
	}()
	tokens := lexer.Tokenize(text)
	if wrong := checkTokens(tokens); wrong != nil {
		return nil, wrong
	}
	// Duplicate keys are found later, together with everything else.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	var stopped tokenError
	switch {
	case err == nil:
		return file, nil
	case errors.As(err, &stopped) && stopped.GetToken() != nil && stopped.GetToken().Position != nil:
		at := stopped.GetToken().Position
		if strings.Contains(stopped.GetMessage(), "\t") {
			return nil, faultAt(position{at.Line, max(at.Column, 1)}, "indent with spaces", "a tab is not allowed here")
		}
		// What the parser quotes may be a secret.
		message, _, _ := strings.Cut(stopped.GetMessage(), `"`)
		return nil, faultAt(position{at.Line, max(at.Column, 1)}, hint, "broken YAML: %s", strings.TrimSpace(message))
	default:
		return nil, faultAt(position{}, "write it in plain key: value lines", "the file cannot be read as YAML")
	}
}

// checkTokens keeps from the parser what it cannot cope with.
func checkTokens(tokens token.Tokens) *fault {
	count, open, entries, line := 0, 0, 0, 0
	for _, t := range tokens {
		if t.Type == token.CommentType {
			continue
		}
		count++
		if t.Position.Line != line {
			line, entries = t.Position.Line, 0
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			open++
		case token.MappingEndType, token.SequenceEndType:
			open--
		case token.SequenceEntryType, token.MappingKeyType:
			entries++
		}
		at := position{t.Position.Line, max(t.Position.Column, 1)}
		if open > maxNesting || entries > maxNesting {
			return faultAt(at, "write it in plain key: value lines", "the YAML is nested too deeply")
		}
		if count > maxTokens {
			return faultAt(at, "a configuration file has a few hundred lines: is this the right file?", "the file has too many keys and values")
		}
	}
	return nil
}

// firstPosition is where a value begins; for a mapping that is its first key.
func firstPosition(node ast.Node) position {
	switch node := node.(type) {
	case *ast.MappingNode:
		if len(node.Values) > 0 && !node.IsFlowStyle {
			return positionOf(node.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return positionOf(node.Key)
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return positionOf(node)
	}
	return positionOf(node)
}

// resolve follows anchors and aliases to the value itself.
func (d *document) resolve(node ast.Node) (ast.Node, *fault) {
	for range maxNesting {
		switch at := node.(type) {
		case *ast.AnchorNode:
			node = at.Value
		case *ast.AliasNode:
			anchor := d.anchorBefore(at)
			if anchor == nil {
				return nil, faultAt(positionOf(at), "define it with & above, or write the value out", "the alias has no anchor")
			}
			node = anchor.Value
		case *ast.TagNode:
			return nil, faultAt(positionOf(at), "remove the tag", "tags such as !!str are not supported")
		default:
			return node, nil
		}
	}
	return nil, faultAt(positionOf(node), "write the value out", "the aliases go round in a circle")
}

// anchorBefore is the last anchor of the alias's name above the alias.
func (d *document) anchorBefore(alias *ast.AliasNode) *ast.AnchorNode {
	var last *ast.AnchorNode
	for _, anchor := range d.anchors {
		if anchor.GetToken().Position.Offset < alias.GetToken().Position.Offset &&
			anchor.Name.GetToken().Value == alias.Value.GetToken().Value {
			last = anchor
		}
	}
	return last
}

// pair is one key of a mapping with its value.
type pair struct {
	key   string
	at    position
	value ast.Node
}

// pairs lists what a mapping holds, in order; keys that come by merge (<<) follow
// the mapping's own, which go over them. A key that is given twice is listed
// twice. The result is nil for a node that is not a mapping.
func (d *document) pairs(node ast.Node, depth int) ([]pair, []*fault) {
	var values []*ast.MappingValueNode
	switch node := node.(type) {
	case *ast.MappingNode:
		values = node.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{node}
	default:
		return nil, nil
	}
	var own, merged []pair
	var wrong []*fault
	for _, value := range values {
		if d.entries++; d.entries > maxEntries || depth > maxNesting {
			wrong = append(wrong, faultAt(positionOf(value.Key), "write the values out", "the aliases unfold to too much"))
			return own, wrong
		}
		switch value.Key.(type) {
		case *ast.MergeKeyNode:
			more, faults := d.merge(value.Value, depth+1)
			merged, wrong = append(merged, more...), append(wrong, faults...)
		case *ast.StringNode, *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
			own = append(own, pair{value.Key.GetToken().Value, positionOf(value.Key), value.Value})
		default:
			wrong = append(wrong, faultAt(positionOf(value.Key), "write it in plain key: value lines", "a key must be a plain word"))
		}
	}
	return withMerged(own, merged), wrong
}

// withMerged adds the merged keys that are not there yet.
func withMerged(own, merged []pair) []pair {
	known := make(map[string]bool, len(own))
	for _, p := range own {
		known[p.key] = true
	}
	for _, p := range merged {
		if !known[p.key] {
			known[p.key] = true
			own = append(own, p)
		}
	}
	return own
}

// merge lists what the value of a merge key brings.
func (d *document) merge(value ast.Node, depth int) ([]pair, []*fault) {
	node, wrong := d.resolve(value)
	if wrong != nil {
		return nil, []*fault{wrong}
	}
	switch node := node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return d.pairs(node, depth)
	case *ast.SequenceNode:
		var all []pair
		var faults []*fault
		for _, item := range node.Values {
			if d.entries > maxEntries || depth > maxNesting {
				return all, append(faults, faultAt(positionOf(item), "write the values out", "the aliases unfold to too much"))
			}
			more, wrong := d.merge(item, depth+1)
			all, faults = append(all, more...), append(faults, wrong...)
		}
		return all, faults
	}
	return nil, []*fault{faultAt(positionOf(value), "merge a section, as in <<: *name", "<<: needs the alias of a section")}
}

// scalar is a single value.
type scalar struct {
	text   string
	quoted bool // written as text, whatever it looks like
	null   bool
}

// scalarOf reads a single value; false when the node is something else.
func scalarOf(node ast.Node) (scalar, bool) {
	switch node := node.(type) {
	case nil, *ast.NullNode:
		return scalar{null: true}, true
	case *ast.StringNode:
		return scalar{text: node.Value, quoted: node.Token.Type != token.StringType}, true
	case *ast.LiteralNode:
		return scalar{text: strings.TrimSuffix(node.Value.Value, "\n"), quoted: true}, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return scalar{text: node.GetToken().Value}, true
	}
	return scalar{}, false
}

// sortOf names what a node is, for people.
func sortOf(node ast.Node) string {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a section"
	case *ast.SequenceNode:
		return "a list"
	}
	if _, ok := scalarOf(node); ok {
		return "a single value"
	}
	return fmt.Sprintf("of the type %v", node.Type())
}
